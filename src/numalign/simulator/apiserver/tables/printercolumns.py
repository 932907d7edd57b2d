r"""The printer columns of custom resources, and the part of JSONPath that they use.

`tables` passes `additionalPrinterColumns` of the definition and gets the columns of the table: the name, then these. A
value that is absent or of another type than the column is null, which kubectl leaves blank; so is the cell of an
invalid path. Supported are fields (`.spec.size`, `['a.b']`, `.a\.b`), indexes, slices, `*`, and filters that compare
one field with a constant; recursive descent and unions raise `InvalidJSONPath`."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from numalign.simulator.apiserver.tables import columns
from numalign.simulator.trees import Tree

Step = Callable[[Any], Iterator[Any]]
TOKEN: Final = re.compile(
    r"""(?P<wild>\.\*|\[\*\])
      | \.(?P<field>(?:\\.|[^.\[\]\\*\s])+)
      | \[\s*'(?P<single>(?:\\.|[^'\\])*)'\s*\] | \[\s*"(?P<double>(?:\\.|[^"\\])*)"\s*\]
      | \[(?P<index>-?[0-9]+)\] | \[(?P<slice>-?[0-9]*:-?[0-9]*)\]
      | \[\?\(\s*@(?P<left>[^=!<>\s]*)\s*(?:(?P<operator>==|!=)\s*(?P<right>"[^"]*"|'[^']*'|[^)\s]+)\s*)?\)\]""",
    re.VERBOSE,
)
AGE: Final[Tree] = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


class InvalidJSONPath(ValueError):
    """The path is not one that a printer column can have."""


@lru_cache(maxsize=1024)
def compiled_path(path: str) -> tuple[Step, ...]:
    steps, at = list[Step](), 0
    while at < len(path):
        match = TOKEN.match(path, at)
        if match is None:
            raise InvalidJSONPath(f"{path!r}: not understood from character {at + 1} on")
        steps.append(_step(match))
        at = match.end()
    return tuple(steps)


def found_values(steps: Iterable[Step], tree: Any) -> list[Any]:
    """All values at the end of the path; none if something on the way is missing."""
    values = [tree]
    for step in steps:
        values = [after for value in values for after in step(value)]
    return values


def _step(match: re.Match[str]) -> Step:
    if match["wild"]:
        return _children
    if match["index"]:
        return _position(int(match["index"]))
    if match["slice"]:
        return _slice(*match["slice"].split(":"))
    if match["left"] is not None:
        return _filter(match["left"], match["operator"], match["right"])
    written = next(text for text in (match["field"], match["single"], match["double"]) if text is not None)
    return _field(re.sub(r"\\(.)", r"\1", written))


def _children(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _field(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _position(index: int) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= index < len(value):
            yield value[index]

    return step


def _slice(start: str, end: str) -> Step:
    bounds = slice(int(start) if start else None, int(end) if end else None)
    return lambda value: iter(value[bounds] if isinstance(value, list) else ())


def _filter(left: str, operator: str | None, right: str | None) -> Step:
    inner = compiled_path(left)
    wanted = _constant(right) if right is not None else None

    def holds(value: Any) -> bool:
        here = found_values(inner, value)
        if operator is None or not here:
            return bool(here) and operator is None
        return bool((here[0] == wanted) is (operator == "=="))

    def step(value: Any) -> Iterator[Any]:
        return filter(holds, _children(value))

    return step


def _constant(written: str) -> Any:
    if written[0] in "'\"":
        return written[1:-1]
    try:
        return json.loads(written)
    except ValueError:
        raise InvalidJSONPath(f"{written}: a filter compares with a text in quotes, a number, true or false") from None


def layout(definitions: Sequence[Tree]) -> tuple[columns.TableColumn, ...]:
    """A definition without columns shows the age."""
    return columns.NAME, *map(_column, definitions or [AGE])


def _column(definition: Tree) -> columns.TableColumn:
    kind, path = definition.get("type", "string"), definition.get("jsonPath", "")
    try:
        steps = compiled_path(path)
    except InvalidJSONPath:
        steps = None

    def cell(tree: Tree, now: datetime) -> Any:
        values = [] if steps is None else found_values(steps, tree)
        return _shown(kind, values[0], now) if values else None

    return columns.TableColumn(
        definition.get("name", ""),
        cell,
        type=kind,
        priority=definition.get("priority", 0),
        format=definition.get("format", ""),
        description=definition.get("description") or f"JSONPath {path}",
    )


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
            return columns.age_since(value, now) if isinstance(value, str) else None
    return None


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
