"""Reads recorded histories: the inverse of `history.encode` of scenarios and campaigns."""

from typing import TypeVar

import msgspec

T = TypeVar("T")


def read(raw: bytes, kind: type[T]) -> list[T]:
    return [msgspec.json.decode(line, type=kind) for line in raw.splitlines()]
