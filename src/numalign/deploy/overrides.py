"""Settings on a command line, in the notation of Helm's --set: `a.b=1,c[0].d=x,e={y,z}`.

`numalign deploy` applies them to the values of its files. A backslash takes the meaning of the next character. As in
Helm, numbers, true, false and null are themselves, and `text` leaves them as text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from numalign.api import errors
from numalign.api.errors import BadObject

MOST_ITEMS: Final = 1000
NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]{0,17})")
WORDS: Final = {"true": True, "false": False, "null": None}
INDEX: Final = re.compile(r"\[([0-9]{1,5})\]")

Path = list[str | int]


def applied(values: dict[str, Any], setting: str, *, text: bool = False) -> None:
    """Enters the settings of one option into `values`."""
    for each in _split(setting, ","):
        key, equals, value = _partition(each)
        if not equals or not key:
            raise _bad(setting, f"{errors.echo(each)} is not a path, an equals sign and a value")
        _enter(values, list(_path(key, setting)), _value(value, text=text), setting)


def _bad(setting: str, why: str) -> BadObject:
    return BadObject("Setting", errors.clipped(setting), "", why)


def _split(written: str, separator: str) -> Iterator[str]:
    """The parts between separators that are neither escaped nor in braces."""
    part, depth, letters = "", 0, iter(written)
    for letter in letters:
        if letter == "\\":
            part += letter + next(letters, "")
            continue
        depth += (letter == "{") - (letter == "}")
        if letter == separator and depth <= 0:
            yield part
            part = ""
        else:
            part += letter
    yield part


def _partition(written: str) -> tuple[str, str, str]:
    key = next(_split(written, "="))
    return key, written[len(key) : len(key) + 1], written[len(key) + 1 :]


def _path(key: str, setting: str) -> Iterator[str | int]:
    for part in _split(key, "."):
        bracket = next(_split(part, "["))
        name, indexes = _plain(bracket), part[len(bracket) :]
        if not name or "".join(match[0] for match in INDEX.finditer(indexes)) != indexes:
            raise _bad(setting, f"{errors.echo(key)} is not a path; write one like agent.nodeGroups[0].name")
        yield name
        for match in INDEX.finditer(indexes):
            if int(match[1]) >= MOST_ITEMS:
                raise _bad(setting, f"the index {match[1]} is too large")
            yield int(match[1])


def _value(written: str, *, text: bool) -> Any:
    if written.startswith("{") and written.endswith("}"):
        inside = written[1:-1]
        return [_value(each, text=text) for each in _split(inside, ",")] if inside else []
    if text:
        return _plain(written)
    if NUMBER.fullmatch(written):
        return int(written)
    return WORDS[written] if written in WORDS else _plain(written)


def _plain(written: str) -> str:
    return re.sub(r"\\(.?)", r"\1", written, flags=re.DOTALL)


def _enter(values: Any, path: Path, value: Any, setting: str) -> None:
    at = values
    for step, following in zip(path, [*path[1:], None], strict=True):
        if isinstance(step, int):
            if not isinstance(at, list):
                raise _bad(setting, f"[{step}] is not inside a list")
            at.extend([None] * (step + 1 - len(at)))
        elif not isinstance(at, dict):
            raise _bad(setting, f"{errors.echo(step)} is not inside an object")
        if following is None:
            at[step] = value
            return
        inner = at[step] if isinstance(step, int) else at.get(step)
        if inner is None:
            inner = [] if isinstance(following, int) else {}
            at[step] = inner
        at = inner
