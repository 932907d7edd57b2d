"""Built-in objects as the real server would write them back: without what they do not have.

The API server may call `normal` after a patch of a built-in kind; the real one gets there by way of its structs, which
leave out what is empty. Optional zeros and empty texts are kept here, since the table does not tell which of them the
structs would lose."""

from __future__ import annotations

from typing import Any

from numalign.simulator.apiserver.schemas import shapes
from numalign.simulator.apiserver.schemas.shapes import TypeDef


def normal(value: Any, shape: TypeDef) -> Any:
    """A new value where anything is left out below, the same one else."""
    if isinstance(value, list):
        items = shape.items or shapes.ANYTHING
        return [normal(item, items) for item in value]
    if not isinstance(value, dict) or not (shape.fields or shape.values):
        return value
    kept = {}
    for key, child in value.items():
        below = shape.child(key)
        if below is None:
            continue
        if child is None and below is shape.values and below.type == "string":
            # In a map of texts the key is there, so the text is; it is empty.
            kept[key] = ""
        elif child is not None and (child or not _is_left_out(key, child, shape, below)):
            kept[key] = normal(child, below)
    return kept


def _is_left_out(key: str, child: Any, shape: TypeDef, below: TypeDef) -> bool:
    """Empty lists and maps go; an empty struct may mean something, as emptyDir does."""
    return isinstance(child, dict | list) and key in shape.fields and key not in shape.always and not below.model
