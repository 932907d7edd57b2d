"""Selects the pods to evict from one node: as few and as unimportant ones as possible.

`dryrun` calls `chosen` for each node. All pods of a lower priority are removed first; then each is reprieved, the most
important first, as long as the preemptor still fits (kube-scheduler spec 1.20). Importance says nothing about zones: so
the pods of each single zone are tried, too, and where that ranks better by kube-scheduler's own criteria, they are
selected. Pure: `fits` is an argument."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from numalign.api.objects.pod import Pod

LOWEST: Final = 1 << 31
"""Added to every priority in a sum, so that fewer victims rank better whatever their priorities."""

Fits = Callable[[Collection[str]], bool]
"""Whether the preemptor fits with pods of these uids gone."""
Rank = tuple[int, int, int, int, float]
"""The criteria by which kube-scheduler ranks candidates; lower is better."""


class Victims(Struct, frozen=True):
    pods: tuple[Pod, ...]
    """The most important first."""
    violations: int
    """The number of victims that violate a disruption budget."""
    rank: Rank


def importance(pod: Pod) -> tuple[int, float]:
    """More important pods come first: of a higher priority, or running for longer."""
    return -pod.spec.priority, started(pod)


def started(pod: Pod) -> float:
    """The start time in seconds. A pod that has not started sorts after all others."""
    written = pod.status.start_time
    return datetime.fromisoformat(written).timestamp() if written else math.inf


def chosen(lower: Sequence[Pod], violating: Collection[str], zones: Mapping[str, int], fits: Fits) -> Victims | None:
    """The victims; None: no victim is needed.

    `lower`: pods by importance; the preemptor fits if all of them are gone. `zones`: by uid, a mask of the zones that
    the pod uses."""
    best = _reprieved(lower, violating, fits)
    # One victim is optimal: less important pods were tried when this one could not be reprieved.
    for of_zone in _by_zone(lower, zones) if len(best.pods) > 1 else ():
        if len(of_zone) < len(lower) and fits([pod.metadata.uid for pod in of_zone]):
            best = min(best, _reprieved(of_zone, violating, fits), key=lambda each: each.rank)
    return best if best.pods else None


def _reprieved(lower: Sequence[Pod], violating: Collection[str], fits: Fits) -> Victims:
    removed = {pod.metadata.uid: pod for pod in lower}
    # Pods that a disruption budget protects are reprieved first.
    for pod in sorted(lower, key=lambda pod: pod.metadata.uid not in violating):
        uid = pod.metadata.uid
        del removed[uid]
        if not fits(removed.keys()):
            removed[uid] = pod
    return of([pod for pod in lower if pod.metadata.uid in removed], violating)


def of(pods: Sequence[Pod], violating: Collection[str]) -> Victims:
    violations = sum(pod.metadata.uid in violating for pod in pods)
    highest = max((pod.spec.priority for pod in pods), default=-LOWEST)
    worth = sum(pod.spec.priority + LOWEST for pod in pods)
    earliest = min((started(pod) for pod in pods if pod.spec.priority == highest), default=math.inf)
    return Victims(tuple(pods), violations, (violations, highest, worth, len(pods), -earliest))


def _by_zone(lower: Iterable[Pod], zones: Mapping[str, int]) -> Iterator[list[Pod]]:
    masks = [(pod, zones.get(pod.metadata.uid, 0)) for pod in lower]
    widest = max((mask.bit_length() for _, mask in masks), default=0)
    for position in range(widest):
        inside = [pod for pod, mask in masks if mask >> position & 1]
        if inside:
            yield inside
