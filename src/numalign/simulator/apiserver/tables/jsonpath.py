r"""The part of JSONPath that printer columns of custom resources use.

`printercolumns` compiles a column's path once and asks for its first value per object. Known are fields (`.spec.size`,
`['a.b']`, `.a\.b`), positions, slices, `*`, and filters that compare one field with a constant; recursive descent and
unions are refused with `BadPath`.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

Step = Callable[[Any], Iterator[Any]]


class BadPath(ValueError):
    """The path is none that a printer column can have."""


TOKEN: Final = re.compile(
    r"""(?P<wild>\.\*|\[\*\])
      | \.(?P<field>(?:\\.|[^.\[\]\\*\s])+)
      | \[\s*'(?P<single>(?:\\.|[^'\\])*)'\s*\] | \[\s*"(?P<double>(?:\\.|[^"\\])*)"\s*\]
      | \[(?P<index>-?[0-9]+)\] | \[(?P<slice>-?[0-9]*:-?[0-9]*)\]
      | \[\?\(\s*@(?P<left>[^=!<>\s]*)\s*(?:(?P<operator>==|!=)\s*(?P<right>"[^"]*"|'[^']*'|[^)\s]+)\s*)?\)\]""",
    re.VERBOSE,
)


@lru_cache(maxsize=1024)
def compiled(path: str) -> tuple[Step, ...]:
    steps, at = list[Step](), 0
    while at < len(path):
        match = TOKEN.match(path, at)
        if match is None:
            raise BadPath(f"{path!r}: not understood from character {at + 1} on")
        steps.append(_step(match))
        at = match.end()
    return tuple(steps)


def found(steps: Iterable[Step], tree: Any) -> list[Any]:
    """All values at the end of the path; none where something on the way is missing."""
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
    inner = compiled(left)
    wanted = _constant(right) if right is not None else None

    def holds(value: Any) -> bool:
        here = found(inner, value)
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
        raise BadPath(f"{written}: a filter compares with a text in quotes, a number, true or false") from None
