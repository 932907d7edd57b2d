"""Durations in scenario files: 500ms, 10s, 1m30s, 2h, or a number of seconds."""

import re
from typing import Final

from msgspec import Struct

from numalign.api import errors
from numalign.api.decode import fields
from numalign.api.decode.fields import Field

SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
PART: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|s|m|h|d)")
LONGEST: Final = 366 * 86400.0


class Span(Struct, frozen=True):
    """A uniform distribution between two durations."""

    least: float
    most: float


def read(field: Field) -> float:
    """Seconds, from 0 to one year."""
    seconds = _seconds(field)
    if not 0 <= seconds <= LONGEST:
        raise field.bad(f"{errors.echo(field.value)} is not between 0 and one year")
    return seconds


def span(field: Field) -> Span | None:
    """One duration, or [shortest, longest]; None if the field is absent."""
    if not field.given:
        return None
    ends = [read(each) for each in fields.items(field)] if isinstance(field.value, list) else [read(field)] * 2
    if len(ends) != 2 or ends[0] > ends[1]:
        raise field.bad("write one duration, or [shortest, longest]")
    return Span(*ends)


def text(seconds: float) -> str:
    """The shortest text that reads back as the same duration: 90 s is 1m30s."""
    whole, parts = round(seconds * 1000), []
    for unit in ("h", "m", "s", "ms"):
        count, whole = divmod(whole, round(SECONDS[unit] * 1000))
        parts += [f"{count}{unit}"] if count else []
    return "".join(parts) or "0s"


def _seconds(field: Field) -> float:
    written = field.value
    if isinstance(written, int | float) and not isinstance(written, bool):
        return float(written)
    if not isinstance(written, str) or PART.sub("", written) or not written:
        raise field.bad(f"{errors.echo(written)} is not a duration; write for example 500ms, 10s or 1m30s")
    return sum(float(count) * SECONDS[unit] for count, unit in PART.findall(written))
