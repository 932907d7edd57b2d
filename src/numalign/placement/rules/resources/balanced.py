"""NodeResourcesBalancedAllocation: prefers nodes whose resources are evenly used after placing the pod.

Since 1.36 the change counts, with 75 for no change; before, only the balance afterwards (kube-scheduler spec 1.10).
Floating point follows kube-scheduler's order of operations, because scores are truncated to integers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from numalign.api.objects import requests
from numalign.api.objects.pod import Pod
from numalign.api.schedulerconfig.pluginargs import NodeResourcesBalancedAllocationArgs
from numalign.placement.rules.alike import SomeAmounts
from numalign.placement.rules.clusterstate import ClusterState, Flags
from numalign.placement.rules.resources import strategies
from numalign.placement.rules.resources.strategies import Addition
from numalign.placement.rules.rowclasses import Follows, Small
from numalign.placement.rules.rule import MAX_SCORE, Rows, Scores, span
from numalign.placement.rules.totals import Totals

HALF: Final = MAX_SCORE // 2
DEFAULTS: Final = NodeResourcesBalancedAllocationArgs()

Fractions = NDArray[np.float64]


class AddedPod(Struct, frozen=True):
    """Scores by row."""

    additions: tuple[Addition, ...]
    amounts: Totals

    def rows(self, rows: Rows) -> Small:
        return self.amounts.evaluated(self, rows)

    def of(self, amounts: SomeAmounts) -> Scores:
        usages = list(strategies.usages(self.additions, amounts, as_scored=False))
        there, parts = [each.offered != 0 for each in usages], [np.maximum(each.offered, 1) for each in usages]
        before = balances([_shares(each.before, part) for each, part in zip(usages, parts, strict=True)], there)
        after = balances([_shares(each.after, part) for each, part in zip(usages, parts, strict=True)], there)
        # Shifted, because dividing takes longer: both round down.
        return HALF + ((HALF + after - before) >> 1)

    def row(self, row: int) -> int:
        usages = strategies.usages_of(self.additions, self.amounts, row, as_scored=False)
        before = balance([min(used / offered, 1.0) for used, _, offered, _ in usages])
        after = balance([min(use / offered, 1.0) for _, use, offered, _ in usages])
        return HALF + (HALF + after - before) // 2


class NodeResourcesBalancedAllocation:
    name: Final = "NodeResourcesBalancedAllocation"

    def __init__(self, args: NodeResourcesBalancedAllocationArgs = DEFAULTS) -> None:
        self._resources = args.resources

    def prepare_score(self, pod: Pod, world: ClusterState, rows: Rows) -> AddedPod | None:
        additions = self._additions(pod, world.totals)
        # Pods that ask for nothing would all go to the same node.
        return AddedPod(additions=additions, amounts=world.totals) if any(each.amount for each in additions) else None

    def score(self, prepared: AddedPod, rows: Rows) -> Scores:
        return prepared.amounts.table(prepared)[span(rows)].astype(np.int64)

    def normalized(self, prepared: AddedPod, raw: Scores) -> Scores:
        return raw

    def score_alone(self, prepared: AddedPod) -> Follows:
        return prepared

    def _additions(self, pod: Pod, amounts: Totals) -> tuple[Addition, ...]:
        def read() -> tuple[Addition, ...]:
            return strategies.read(self._resources, amounts.held(pod), amounts)

        return read() if requests.is_resized(pod) else amounts.once((self.name, self._resources), pod, read)


def balances(shares: Sequence[Fractions], there: Sequence[Flags]) -> Scores:
    """By row, 100 when the same share of everything that the node has is used."""
    spread = _half_distance(shares, there) if len(shares) == 2 else _deviation(shares, there)
    return ((1 - spread) * MAX_SCORE).astype(np.int64)


def balance(shares: Sequence[float]) -> int:
    """The same as `balances` for one row, by used shares."""
    if len(shares) == 2:
        spread = abs((shares[0] - shares[1]) / 2)
    elif len(shares) > 2:
        mean = _plain_sum(shares) / len(shares)
        spread = math.sqrt(_plain_sum((share - mean) * (share - mean) for share in shares) / len(shares))
    else:
        spread = 0.0
    return int((1 - spread) * MAX_SCORE)


def _shares(used: Scores, offered: Scores) -> Fractions:
    found = used / offered
    return np.minimum(found, 1.0, out=found)


def _half_distance(shares: Sequence[Fractions], there: Sequence[Flags]) -> Fractions:
    return np.abs((shares[0] - shares[1]) / 2) * (there[0] & there[1])


def _deviation(shares: Sequence[Fractions], there: Sequence[Flags]) -> Fractions:
    """Of the resources that a node has: half the distance of two, 0 for less, else the standard deviation."""
    # Added one after the other: numpy's own sum may take another order, and with it other last digits.
    count = np.maximum(_sum(there), 1)
    mean = _sum(np.where(flags, share, 0.0) for share, flags in zip(shares, there, strict=True)) / count
    squares = _sum(
        np.where(flags, (share - mean) * (share - mean), 0.0) for share, flags in zip(shares, there, strict=True)
    )
    distance = np.where(there, shares, -np.inf).max(axis=0) - np.where(there, shares, np.inf).min(axis=0)
    return np.where(count > 2, np.sqrt(squares / count), np.where(count == 2, distance / 2, 0.0))


def _sum(parts: Iterable[Fractions | Flags]) -> Fractions:
    total: Fractions = np.zeros(())
    for part in parts:
        total = total + part
    return total


def _plain_sum(parts: Iterable[float]) -> float:
    # Python's own sum is more exact than kube-scheduler's.
    total = 0.0
    for part in parts:
        total += part
    return total
