"""Lists the differences between two JSON values: a recorded or real answer, and ours.

All judges use it. Every key of either side counts, the order of lists counts, and 1, 1.0 and true are three different
values."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from numalign.api import errors

Case = dict[str, Any]
"""A case of any kind as plain JSON; recorded ones include the expected answer."""
Raw = Mapping[str, Any]
"""An object inside a case that is only read."""
PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Difference(Struct, frozen=True):
    """One place where the two sides differ. UNSET means that this side has no value there."""

    path: str
    expected: Any | UnsetType = UNSET
    answered: Any | UnsetType = UNSET


def no_answer(problem: Exception, expected: Any | UnsetType = UNSET) -> Difference:
    """The difference of a case that raised an exception instead of giving an answer."""
    return Difference("", expected, f"no answer: {type(problem).__name__}: {problem}")


def canonical(value: object) -> bytes:
    """JSON with sorted keys: equal bytes are equal values, including the type of every number."""
    return msgspec.json.encode(value, order="sorted")


def between(expected: bytes, answered: bytes) -> tuple[Difference, ...]:
    """All differences between two values in canonical form."""
    if expected == answered:
        return ()
    return tuple(_walk(msgspec.json.decode(expected), msgspec.json.decode(answered), ""))


def _walk(expected: Any, answered: Any, path: str) -> Iterator[Difference]:
    if isinstance(expected, dict) and isinstance(answered, dict):
        for key in sorted(expected.keys() | answered.keys()):
            yield from _beside(expected.get(key, UNSET), answered.get(key, UNSET), path + _step(key, first=not path))
    elif isinstance(expected, list) and isinstance(answered, list):
        for place in range(max(len(expected), len(answered))):
            yield from _beside(_item(expected, place), _item(answered, place), f"{path}[{place}]")
    elif type(expected) is not type(answered) or expected != answered:
        yield Difference(path, expected, answered)


def _beside(expected: Any, answered: Any, path: str) -> Iterator[Difference]:
    if expected is UNSET or answered is UNSET:
        yield Difference(path, expected, answered)
    else:
        yield from _walk(expected, answered, path)


def _item(values: list[Any], place: int) -> Any:
    return values[place] if place < len(values) else UNSET


def _step(key: str, *, first: bool) -> str:
    """`.cpus`, or `[hugepages-2Mi]` for a key that is not a plain name."""
    name = errors.clipped(key)
    if not PLAIN_KEY.fullmatch(key):
        return f"[{name}]"
    return name if first else f".{name}"
