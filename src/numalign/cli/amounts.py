"""Reads lengths of time and sizes that options are given, as 1h30m and 256Mi.

`record` and `scheduler run` call it. Errors are BadObject, with the option and an example."""

from __future__ import annotations

from numalign.api.decode import fields, quantity
from numalign.api.errors import BadObject


def seconds(written: str, command: str, option: str) -> float:
    found = fields.seconds(written)
    if found is None or not 0 <= found <= fields.LONGEST_DURATION:
        raise BadObject(command, written, option, "is not a length of time; write one like 90s, 10m or 1h30m")
    return found


def size(written: str, command: str, option: str) -> int:
    """Bytes."""
    try:
        found = quantity.parse(written).value
    except ValueError:
        found = -1
    if found < 0:
        raise BadObject(command, written, option, "is not a size; write one like 256Mi or 1G")
    return found
