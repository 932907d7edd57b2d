"""Fields that a kind does not have: what `fieldValidation` warns of or refuses.

Admission calls `unknown` with a tree as the client sent it. Paths are written as the server writes them in
`unknown field "spec.containers[0].imagee"`; the order is that of the tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numalign.simulator.apiserver.schemas.shapes import TypeDef


def unknown(value: Any, shape: TypeDef, path: str = "") -> Iterator[str]:
    """The path of every field that is not declared; what lies below such a field is not looked at."""
    if isinstance(value, dict):
        for key, child in value.items():
            below = shape.child(key)
            where = f"{path}.{key}" if path else key
            if below is None:
                yield where
            elif below.type or below.fields:
                yield from unknown(child, below, where)
    elif isinstance(value, list) and shape.items is not None:
        for index, item in enumerate(value):
            yield from unknown(item, shape.items, f"{path}[{index}]")
