"""Reads lengths of time, sizes and requests that options are given, as 1h30m, 256Mi and cpu=4,memory=8Gi.

`record`, `scheduler run`, `capacity` and `plan` call it. Errors are BadObject, with the option and an example."""

from __future__ import annotations

from numalign.api.decode import fields, quantity
from numalign.api.decode.quantity import Quantity
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


def requests(written: str, option: str) -> dict[str, Quantity]:
    found = {}
    for part in written.split(","):
        name, equals, amount = part.partition("=")
        try:
            if not (name and equals):
                raise ValueError("write NAME=AMOUNT, such as cpu=4")
            found[name] = quantity.parse(amount)
        except ValueError as problem:
            raise BadObject("Option", option, "", f"{part}: {problem}") from None
    return found
