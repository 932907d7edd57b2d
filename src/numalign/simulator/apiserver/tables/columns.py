"""What a table layout is made of, and the texts that several kinds of objects share.

`podcolumns`, `workloadcolumns`, `clustercolumns` and `storagecolumns` describe one `Layout` per kind with these pieces,
`tables` puts them together. A row is a plain function of one object and the time; columns with priority 1 are those
that `kubectl get -o wide` shows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from numalign.simulator.apiserver.tables import ages
from numalign.simulator.trees import Tree

Row = Callable[[Tree, datetime], list[Any]]

NONE: Final = "<none>"
UNSET: Final = "<unset>"


@dataclass(frozen=True)
class Column:
    name: str
    type: str = "string"
    priority: int = 0
    format: str = ""
    description: str = ""

    def definition(self) -> Tree:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


@dataclass(frozen=True)
class Layout:
    columns: tuple[Column, ...]
    row: Row


NAME: Final = Column("Name", format="name")
AGE: Final = Column("Age")


def named(*columns: Column | str) -> tuple[Column, ...]:
    """The columns of a kind behind its name; a bare text is a column of strings."""
    return NAME, *(Column(column) if isinstance(column, str) else column for column in columns)


def integers(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, "integer") for name in names)


def booleans(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, "boolean") for name in names)


def wide(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, priority=1) for name in names)


def name(tree: Tree) -> str:
    return str(tree["metadata"].get("name", ""))


def age(tree: Tree, now: datetime) -> str:
    return ages.since(tree["metadata"].get("creationTimestamp"), now)


def part(tree: Tree, field: str) -> Tree:
    """The object under the field; an absent one and a null are empty."""
    return tree.get(field) or {}


def items(tree: Tree, field: str) -> list[Any]:
    return tree.get(field) or []


def labels(wanted: Mapping[str, str] | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((wanted or {}).items())) or NONE


def template(tree: Tree) -> Tree:
    """The pod spec inside a workload."""
    return part(part(part(tree, "spec"), "template"), "spec")


def container_cells(tree: Tree) -> list[str]:
    """The last columns of every workload: names and images of its containers."""
    containers = items(template(tree), "containers")
    return [",".join(str(each.get(field, "")) for each in containers) for field in ("name", "image")]


def is_true(conditions: Sequence[Tree], kind: str) -> bool:
    return any(each.get("type") == kind and each.get("status") == "True" for each in conditions)
