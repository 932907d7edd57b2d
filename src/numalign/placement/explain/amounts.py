"""Formats amounts: `8 CPUs`, `1.5Gi memory`, `2 example.com/gpu`, and lengths of time.

`wording`, the command line and the dashboard call it. What is needed is rounded up and what is free is rounded down,
so that two amounts that differ never read the same."""

from __future__ import annotations

from typing import Final

from numalign.api.objects import resourcenames

SUFFIXES: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
HUNDREDTHS: Final = 100


def named(resource: str, amount: int, *, up: bool = False) -> str:
    """The amount with the resource's name; cpu is given in thousandths."""
    number = bare(resource, amount, up=up)
    if resource == resourcenames.CPU:
        return f"{number} CPU" if amount == 1000 else f"{number} CPUs"
    return f"{number} {resource}"


def bare(resource: str, amount: int, *, up: bool = False) -> str:
    """The amount without the resource's name."""
    if resource == resourcenames.CPU:
        return _decimal(*divmod(amount, 1000), digits=3)
    return _bytes(amount, up=up) if resourcenames.is_bytes(resource) else str(amount)


def _bytes(amount: int, *, up: bool) -> str:
    """Formats bytes in the largest unit that gives at least 1, with two decimals."""
    power = min(max(0, (amount.bit_length() - 1) // 10), len(SUFFIXES) - 1)
    unit = 1 << 10 * power
    hundredths = -(-amount * HUNDREDTHS // unit) if up else amount * HUNDREDTHS // unit
    return _decimal(*divmod(hundredths, HUNDREDTHS), digits=2) + SUFFIXES[power]


def _decimal(whole: int, rest: int, *, digits: int) -> str:
    return f"{whole}.{rest:0{digits}d}".rstrip("0") if rest else str(whole)


def duration(seconds: float) -> str:
    """12s, 5m, 3h, 2d."""
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds)}s"
