"""The columns of a table, and cells that several kinds share.

The modules of this package describe the columns of each kind with these functions. A cell is a function of one object
and the time; columns of priority 1 are those of `kubectl get -o wide`. `now` always comes from the caller, so the same
objects at the same time give the same table."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import Any, Final

from numalign.simulator import clock
from numalign.simulator.trees import Tree

UNKNOWN: Final = "<unknown>"
INVALID_AGE: Final = "<invalid>"

MINUTE: Final = 60
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR
YEAR: Final = 365 * DAY
Read = Callable[[Tree], Any]
NONE: Final = "<none>"
UNSET: Final = "<unset>"


def age_since(stamp: str | None, now: datetime) -> str:
    """The age of an RFC 3339 timestamp; `<unknown>` if there is none."""
    return duration(clock.seconds_since(stamp, now)) if stamp else UNKNOWN


def duration_between(start: str, end: str) -> str:
    last = clock.parsed(end)
    return INVALID_AGE if last is None else duration(clock.seconds_since(start, last))


def duration(seconds: float | None) -> str:
    return INVALID_AGE if seconds is None else human_duration(seconds)


def human_duration(duration: float) -> str:
    """A duration as kubectl shows it: two or three significant figures, the finer unit only below small values."""
    # Clocks of two machines differ slightly, so up to two seconds in the future count as now.
    if duration <= -2:
        return INVALID_AGE
    whole = max(int(duration), 0)
    if whole < 2 * MINUTE:
        return f"{whole}s"
    if whole < 3 * HOUR:
        return _in_two(whole, (MINUTE, "m"), (1, "s"), fine_below=10)
    if whole < 2 * DAY:
        return _in_two(whole, (HOUR, "h"), (MINUTE, "m"), fine_below=8)
    if whole < 2 * YEAR:
        return _in_two(whole, (DAY, "d"), (HOUR, "h"), fine_below=8)
    return _in_two(whole, (YEAR, "y"), (DAY, "d"), fine_below=8)


def _in_two(whole: int, coarse: tuple[int, str], fine: tuple[int, str], *, fine_below: int) -> str:
    count, rest = divmod(whole, coarse[0])
    remainder = rest // fine[0]
    return f"{count}{coarse[1]}{remainder}{fine[1]}" if count < fine_below and remainder else f"{count}{coarse[1]}"


@dataclass(frozen=True)
class TableColumn:
    name: str
    cell: Callable[[Tree, datetime], Any]
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


def text(name: str, read: Read, type: str = "string", priority: int = 0) -> TableColumn:
    """A column whose cells depend on the object alone."""
    return TableColumn(name, lambda tree, now: read(tree), type, priority)


def wide(name: str, read: Read) -> TableColumn:
    return text(name, read, priority=1)


def integer(name: str, read: Read) -> TableColumn:
    return text(name, read, "integer")


def boolean(name: str, read: Read) -> TableColumn:
    return text(name, read, "boolean")


def field(*path: str, default: Any = "") -> Read:
    """Reads the value at this path; the default if it is absent."""
    *holders, last = path
    return lambda tree: reduce(part, holders, tree).get(last, default)


def name(tree: Tree) -> str:
    return str(tree["metadata"].get("name", ""))


def part(tree: Tree, field: str) -> Tree:
    """The object under the field; empty if absent or null."""
    return tree.get(field) or {}


def items(tree: Tree, field: str) -> list[Any]:
    return tree.get(field) or []


def labels(wanted: Mapping[str, str] | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((wanted or {}).items())) or NONE


def is_true(tree: Tree, kind: str) -> bool:
    """Whether the object has this condition."""
    conditions = items(part(tree, "status"), "conditions")
    return any(each.get("type") == kind and each.get("status") == "True" for each in conditions)


NAME: Final = TableColumn("Name", lambda tree, now: name(tree), format="name")
AGE: Final = TableColumn("Age", lambda tree, now: age_since(tree["metadata"].get("creationTimestamp"), now))
