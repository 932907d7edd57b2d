"""Nulls in objects say the same as leaving the field out, so they are left out.

Programs that write every field send them, `creationTimestamp: null` above all; the real server loses them when it reads
a body into its structs. The metadata and what a kind holds without knowing it are none of our business here."""

from typing import Any, Final

from numalign.simulator.trees import Tree

KEPT: Final = ("kind", "apiVersion", "metadata")


def dropped(tree: Tree) -> Tree:
    return {key: value if key in KEPT else without(value) for key, value in tree.items() if value is not None}


def without(thing: Any) -> Any:
    if isinstance(thing, dict):
        return {key: without(value) for key, value in thing.items() if value is not None}
    return [without(value) for value in thing] if isinstance(thing, list) else thing
