"""What a run allocates by the percent of demand that has arrived, and the results of a run.

`onezone` and `zoned` fill it. As published, a percent stands for all pods whose arrival rounds to it."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

PERCENTS: Final = 131
"""Of arrived demand, from 0 on."""


class Packed(Struct, frozen=True, kw_only=True):
    """Allocated and fragmented amounts in percent of all GPUs."""

    allocated_100: float
    allocated_130: float
    fragmented_130: float
    unallocated_gpus: float
    pods: int
    dropped: int
    rejected: int = 0
    stranded_gpus: float = 0.0
    free_sockets: int = 0


class Curve:
    """Thousandths of GPUs, of a total."""

    def __init__(self, total: int) -> None:
        self._total, self._arrived = total, 0
        self._sums, self._counts = [0] * PERCENTS, [0] * PERCENTS

    def add(self, asked: int, used: int) -> None:
        """A pod arrived; `used`: what is allocated now."""
        self._arrived += asked
        percent = min(PERCENTS - 1, int(self._arrived * 100.0 / self._total + 0.5))
        self._sums[percent] += used
        self._counts[percent] += 1

    def mean(self, percent: int) -> float:
        """In percent of the total; of the last percent before at which a pod arrived, if none did at this one."""
        there = max((each for each in range(percent + 1) if self._counts[each]), default=0)
        return 100.0 * self._sums[there] / max(1, self._counts[there]) / self._total
