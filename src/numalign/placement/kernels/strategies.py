"""What makes one fitting row better than another, as its owner configures it.

`plans` turns a `Scoring` into numbers; `scoring` has the arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from numalign.placement.referenceargs import Strategy

KINDS: Final = (
    Strategy.LEAST_ALLOCATED,
    Strategy.MOST_ALLOCATED,
    Strategy.BALANCED_ALLOCATION,
    Strategy.LEAST_NUMA_NODES,
)
LEAST, MOST, BALANCED, FEWEST_ZONES = range(4)
"""Their numbers in a plan."""
HEAVIEST: Final = 1 << 20
"""Weights are cut to this: sums of weighted scores stay small."""


class Scoring(Struct, frozen=True):
    """A strategy with its weights as (column, weight); 1 where nothing is said."""

    strategy: Strategy = Strategy.LEAST_ALLOCATED
    weights: tuple[tuple[int, int], ...] = ()

    def weights_of(self, columns: Sequence[int]) -> list[int]:
        if not self.weights:
            return [1] * len(columns)
        known = dict(self.weights)
        return [min(max(0, known.get(column, 1)), HEAVIEST) for column in columns]
