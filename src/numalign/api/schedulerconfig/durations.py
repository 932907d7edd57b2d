"""Lengths of time as Kubernetes configurations write them: 15s, 1m30s, 500ms, 1.5h; always text, never a number."""

from __future__ import annotations

import re
from typing import Final

from numalign.api import errors
from numalign.api.decode import fields
from numalign.api.decode.fields import Field

SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
PART: Final = re.compile(r"([0-9]{1,18}(?:\.[0-9]{0,18})?|\.[0-9]{1,18})(ns|us|µs|μs|ms|s|m|h)")
WHOLE: Final = re.compile(rf"[+-]?(?:0|(?:{PART.pattern})+)")
LONGEST: Final = 9.0e9
"""Close to what 64 bits of nanoseconds can hold."""


def read(field: Field, default: float) -> float:
    """Seconds; nothing at all, and no time at all, stand for the default."""
    return (seconds(field) if field.given else 0.0) or default


def seconds(field: Field) -> float:
    written = fields.text(field)
    if not WHOLE.fullmatch(written):
        raise field.bad(f"{errors.echo(written)} is not a length of time; write one like 15s, 1m30s or 500ms")
    total = sum(float(count) * SECONDS[unit] for count, unit in PART.findall(written))
    if total > LONGEST:
        raise field.bad(f"{errors.echo(written)} is longer than can be counted")
    return -total if written.startswith("-") else total


def text(seconds: float) -> str:
    """As it would be written: 90 is 1m30s."""
    hours, rest = divmod(seconds, 3600)
    minutes, rest = divmod(rest, 60)
    parts = [(hours, "h"), (minutes, "m"), (rest, "s")]
    return "".join(f"{count:g}{unit}" for count, unit in parts if count) or "0s"
