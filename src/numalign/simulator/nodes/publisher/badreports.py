"""Reports that say what no node can be, in forms that the schema lets pass.

`exporter` garbles a report when its faults say so. Each way has been seen, or is what a publisher's known defect would
write (exporter spec 12): readers must survive all of them and believe none."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from numalign.simulator import trees
from numalign.simulator.trees import Tree


def garbled(tree: Tree, chances: random.Random) -> Tree:
    """A copy of the report, spoilt in one way."""
    spoilt = trees.copied(tree)
    chances.choice(WAYS)(spoilt)
    return spoilt


def _negative(tree: Tree) -> None:
    for each in _resources(tree):
        each["available"] = "-1"


def _more_than_there_is(tree: Tree) -> None:
    for each in _resources(tree):
        each["available"] = "9223372036854775807"


def _strange_names(tree: Tree) -> None:
    for zone in tree["zones"]:
        zone["name"] = zone["name"].replace("-", "_")


def _twice(tree: Tree) -> None:
    tree["zones"] = tree["zones"] + tree["zones"]


def _no_zones(tree: Tree) -> None:
    tree["zones"] = []


def _unreadable_attributes(tree: Tree) -> None:
    tree["attributes"] = [each | {"value": "\u2620 0,,-"} for each in tree.get("attributes") or ()]


def _resources(tree: Tree) -> list[Tree]:
    return [each for zone in tree["zones"] for each in zone.get("resources") or ()]


WAYS: Final[tuple[Callable[[Tree], None], ...]] = (
    _negative,
    _more_than_there_is,
    _strange_names,
    _twice,
    _no_zones,
    _unreadable_attributes,
)
