"""Spreading by the specification, one node at a time over plain lists: what the arrays must agree with.

Nodes are (labels, counted pods); `None` as a verdict is a fit (kube-scheduler spec 1.12)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from numalign.api.objects import selectors
from numalign.api.objects.pod import Pod, TopologySpreadConstraint

HOST = "kubernetes.io/hostname"
Included = Callable[[int, TopologySpreadConstraint], bool]


class Site(Struct):
    labels: Mapping[str, str]
    pods: list[Pod]


def count(site: Site, asking: Pod, constraint: TopologySpreadConstraint) -> int:
    selector = constraint.label_selector
    if selector is None or selector.is_empty:
        return 0
    staying = (pod for pod in site.pods if pod.metadata.deletion_timestamp is None)
    same = (pod for pod in staying if pod.metadata.namespace == asking.metadata.namespace)
    return sum(selectors.matches(selector, pod.metadata.labels) for pod in same)


def verdicts(asking: Pod, sites: Sequence[Site], included: Included) -> list[str | None]:
    hard = [each for each in asking.spec.topology_spread_constraints if each.when_unsatisfiable == "DoNotSchedule"]
    keys = [each.topology_key for each in hard]
    counts: list[dict[str, int]] = []
    for constraint in hard:
        by_value: dict[str, int] = {}
        for number, site in enumerate(sites):
            if all(key in site.labels for key in keys) and included(number, constraint):
                value = site.labels[constraint.topology_key]
                by_value[value] = by_value.get(value, 0) + count(site, asking, constraint)
        counts.append(by_value)
    return [_verdict(asking, site, hard, counts) for site in sites]


def _verdict(
    asking: Pod, site: Site, hard: Sequence[TopologySpreadConstraint], counts: Sequence[Mapping[str, int]]
) -> str | None:
    for constraint, by_value in zip(hard, counts, strict=True):
        if constraint.topology_key not in site.labels:
            return "missing"
        least = min(by_value.values(), default=2**31 - 1)
        wanted = 1 if constraint.min_domains is None else constraint.min_domains
        least = 0 if len(by_value) < wanted else least
        own = selectors.matches(constraint.label_selector, asking.metadata.labels)
        if by_value.get(site.labels[constraint.topology_key], 0) + own - least > constraint.max_skew:
            return "skew"
    return None


def scores(asking: Pod, sites: Sequence[Site], feasible: Sequence[int], included: Included) -> list[int] | None:
    """Of the feasible nodes, raw; an ignored one is -1."""
    soft = [each for each in asking.spec.topology_spread_constraints if each.when_unsatisfiable == "ScheduleAnyway"]
    keys = [each.topology_key for each in soft]
    labelled = [number for number, site in enumerate(sites) if all(key in site.labels for key in keys)]
    kept = [number for number in feasible if number in labelled]
    points = dict.fromkeys(kept, 0.0)
    for constraint in soft:
        key = constraint.topology_key
        values = {sites[number].labels[key] for number in kept}
        weight = math.log((len(kept) if key == HOST else len(values)) + 2)
        for number in kept:
            same = [other for other in labelled if sites[other].labels[key] == sites[number].labels[key]]
            same = [number] if key == HOST else [other for other in same if included(other, constraint)]
            found = sum(count(sites[other], asking, constraint) for other in same)
            points[number] += found * weight + (constraint.max_skew - 1)
    return [math.floor(points[number] + 0.5) if number in points else -1 for number in feasible] if soft else None


def normalized(raw: Sequence[int]) -> list[int]:
    kept = [score for score in raw if score >= 0]
    most, least = max(kept, default=0), min(kept, default=0)
    return [0 if score < 0 else 100 * (most + least - score) // most if most else 100 for score in raw]
