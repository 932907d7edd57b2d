"""CPU sets as integers: bit n means CPU n.

The kubelet model uses the integers as sets (`a & b`, `a & ~b`, `a.bit_count()`). This module converts them from and to
the list format of the kubelet and the kernel ("0-3,8", empty for the empty set)."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

from numalign.api import errors

MAX_CPU: Final = 65_535
HELP: Final = 'write CPU ids and ranges like "0-3,8"'

SPAN: Final = re.compile(r"([0-9]+)(?:-([0-9]+))?")


class CPUSetError(ValueError):
    """The text or the ids do not name a CPU set; the message says which part, and what would."""


@lru_cache(maxsize=4096)
def parse(text: str) -> int:
    """The set that the list names: "0-3,8" is 0b100001111. Order and repetition do not matter."""
    mask = 0
    for part in text.split(",") if text else ():
        mask |= _span(part)
    return mask


def _span(part: str) -> int:
    match = SPAN.fullmatch(part)
    if match is None:
        raise CPUSetError(f"{errors.echo(part)} is not a CPU id or a range; {HELP}")
    first = _cpu_id(match[1])
    last = _cpu_id(match[2]) if match[2] else first
    if first > last:
        raise CPUSetError(f"the range {errors.echo(part)} runs backwards; write the lower CPU id first")
    return (1 << last + 1) - (1 << first)


def _cpu_id(digits: str) -> int:
    significant = digits.lstrip("0") or "0"
    if len(significant) > len(str(MAX_CPU)) or int(significant) > MAX_CPU:
        raise CPUSetError(f"CPU id {errors.echo(digits)} is larger than {MAX_CPU}, which no machine has; {HELP}")
    return int(significant)


def text(mask: int) -> str:
    """The shortest list that `parse` reads back as this set."""
    return ",".join(f"{first}-{last}" if first != last else f"{first}" for first, last in _runs(mask))


def _runs(mask: int) -> Iterator[tuple[int, int]]:
    """First and last CPU of each unbroken run, ascending."""
    base = 0
    while mask:
        gap = (mask & -mask).bit_length() - 1
        mask >>= gap
        length = (~mask & mask + 1).bit_length() - 1
        yield base + gap, base + gap + length - 1
        mask >>= length
        base += gap + length


def members(mask: int) -> tuple[int, ...]:
    """The CPU ids in the set, ascending."""
    return tuple(cpu for first, last in _runs(mask) for cpu in range(first, last + 1))


def of(cpus: Iterable[int]) -> int:
    """The set of these CPU ids."""
    mask = 0
    for cpu in cpus:
        if not 0 <= cpu <= MAX_CPU:
            raise CPUSetError(f"CPU id {errors.echo(cpu)} is not between 0 and {MAX_CPU}")
        mask |= 1 << cpu
    return mask
