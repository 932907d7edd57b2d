"""Progress of commands that take long, and the seeds that they are given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from numalign.api.errors import BadObject
from numalign.cli import output

T = TypeVar("T")
SOON: Final = 2.0
"""Seconds between two lines."""
MOST_SEEDS: Final = 10_000


class Progress:
    """A line on stderr now and then, with the time that is left."""

    def __init__(self, wanted: int, what: str, clock: Callable[[], float], done: int = 0) -> None:
        """`done`: what an earlier run has finished."""
        self._wanted, self._what, self._clock = wanted, what, clock
        self._before = self._done = done
        self._begun = self._said = clock()

    def of(self, found: Iterable[T]) -> Iterator[T]:
        for each in found:
            self.step()
            yield each

    def step(self) -> None:
        self._done += 1
        now = self._clock()
        if now - self._said < SOON or self._done >= self._wanted:
            return
        self._said = now
        left = (now - self._begun) / (self._done - self._before) * (self._wanted - self._done)
        output.say(f"{self._done:,} of {self._wanted:,} {self._what}, about {left:,.0f} s left")


def seeds_of(written: str, command: str) -> tuple[int, ...]:
    """Such as 42, 42-51 or 42,45-47."""
    found: dict[int, None] = {}
    for part in written.split(","):
        first, dash, last = part.strip().partition("-")
        if not (first.isdecimal() and (last.isdecimal() or not dash)) or len(first + last) > 18:
            raise BadObject(command, written, "--seeds", f"{part!r} is no seed; write 42, 42-51 or 42,45-47")
        lowest, highest = int(first), int(last or first)
        if highest < lowest or highest - lowest >= MOST_SEEDS:
            raise BadObject(command, written, "--seeds", f"{part!r} is not a range of 1 to {MOST_SEEDS} seeds")
        found |= dict.fromkeys(range(lowest, highest + 1))
    return tuple(found)
