"""The columns that a custom resource definition asks for.

`tables` hands over `additionalPrinterColumns` as they stand in the definition and gets a layout: the name, then one
cell per column, read by JSONPath. A value that is missing or of another type than the column is null, which kubectl
leaves blank; so is the cell of a path that cannot be read.
"""

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final

from numalign.simulator.apiserver.tables import ages, columns, jsonpath
from numalign.simulator.trees import Tree

AGE: Final[Tree] = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def layout(definitions: Sequence[Tree]) -> columns.Layout:
    """A definition without columns shows the age."""
    shown = definitions or [AGE]
    cells = [_cell(each) for each in shown]

    def row(tree: Tree, now: datetime) -> list[Any]:
        return [columns.name(tree), *(cell(tree, now) for cell in cells)]

    return columns.Layout((columns.NAME, *map(_column, shown)), row)


def _column(definition: Tree) -> columns.Column:
    return columns.Column(
        definition.get("name", ""),
        type=definition.get("type", "string"),
        priority=definition.get("priority", 0),
        format=definition.get("format", ""),
        description=definition.get("description") or f"JSONPath {definition.get('jsonPath', '')}",
    )


def _cell(definition: Tree) -> Callable[[Tree, datetime], Any]:
    try:
        steps = jsonpath.compiled(definition.get("jsonPath", ""))
    except jsonpath.BadPath:
        return lambda tree, now: None
    kind = definition.get("type", "string")

    def cell(tree: Tree, now: datetime) -> Any:
        values = jsonpath.found(steps, tree)
        return _shown(kind, values[0], now) if values else None

    return cell


def _shown(kind: str, value: Any, now: datetime) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match kind:
        case "string":
            return _text(value)
        case "integer":
            return int(value) if is_number else None
        case "number":
            return value if is_number else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date":
            return ages.since(value, now) if isinstance(value, str) else None
    return None


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
