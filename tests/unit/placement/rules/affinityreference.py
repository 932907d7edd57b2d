"""Pod affinity by the specification, one node and one pod at a time: what the arrays must agree with.

Nodes are (labels, pods there); namespaces are labels by name (kube-scheduler spec 1.13)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from numalign.api.objects import selectors
from numalign.api.objects.pod import Pod, PodAffinity, PodAffinityTerm
from tests.unit.placement.rules.spreadreference import Site

Namespaces = Mapping[str, Mapping[str, str]]
Sums = Counter[tuple[str, str]]
NONE = PodAffinity()


def near(pod: Pod) -> PodAffinity:
    return (pod.spec.affinity and pod.spec.affinity.pod_affinity) or NONE


def away(pod: Pod) -> PodAffinity:
    return (pod.spec.affinity and pod.spec.affinity.pod_anti_affinity) or NONE


def means(owner: Pod, term: PodAffinityTerm, other: Pod, namespaces: Namespaces, *, incoming: bool) -> bool:
    """Whether the owner's term is about the other pod. The incoming pod's terms choose among known namespaces."""
    where = other.metadata.namespace
    chosen = where in (term.namespaces or ())
    if not term.namespaces and term.namespace_selector is None:
        chosen = where == owner.metadata.namespace
    if term.namespace_selector is not None:
        known = where in namespaces or term.namespace_selector.is_empty or not incoming
        chosen |= known and selectors.matches(term.namespace_selector, namespaces.get(where, {}))
    return chosen and selectors.matches(term.label_selector, other.metadata.labels)


def verdicts(asking: Pod, sites: Sequence[Site], namespaces: Namespaces) -> list[str | None]:
    friends, foes, objections = Sums(), Sums(), Sums()
    required = near(asking).required
    for site, pod in _pods(sites):
        if required and all(means(asking, term, pod, namespaces, incoming=True) for term in required):
            _add(friends, site, [term.topology_key for term in required])
        unloved = [term for term in away(asking).required if means(asking, term, pod, namespaces, incoming=True)]
        _add(foes, site, [term.topology_key for term in unloved])
        held = [term for term in away(pod).required if means(pod, term, asking, namespaces, incoming=False)]
        _add(objections, site, [term.topology_key for term in held])
    first = not friends and all(means(asking, term, asking, namespaces, incoming=True) for term in required)
    return [_verdict(asking, site.labels, (friends, foes, objections), first) for site in sites]


def _verdict(asking: Pod, labels: Mapping[str, str], sums: tuple[Sums, Sums, Sums], first: bool) -> str | None:
    friends, foes, objections = sums
    keys = [term.topology_key for term in near(asking).required]
    if any(key not in labels for key in keys) or not (first or all(friends[key, labels[key]] for key in keys)):
        return "affinity"
    met = [term.topology_key for term in away(asking).required if term.topology_key in labels]
    if any(foes[key, labels[key]] for key in met):
        return "anti-affinity"
    return "existing" if any(objections[pair] for pair in labels.items()) else None


def scores(asking: Pod, sites: Sequence[Site], namespaces: Namespaces, hard_weight: int) -> list[int]:
    total = Sums()
    for site, pod in _pods(sites):
        for sign, own, theirs in ((1, near(asking), near(pod)), (-1, away(asking), away(pod))):
            for each in own.preferred:
                if means(asking, each.pod_affinity_term, pod, namespaces, incoming=True):
                    _add(total, site, [each.pod_affinity_term.topology_key], sign * each.weight)
            for each in theirs.preferred:
                if means(pod, each.pod_affinity_term, asking, namespaces, incoming=False):
                    _add(total, site, [each.pod_affinity_term.topology_key], sign * each.weight)
        for term in near(pod).required:
            if means(pod, term, asking, namespaces, incoming=False):
                _add(total, site, [term.topology_key], hard_weight)
    return [sum(total[pair] for pair in site.labels.items()) for site in sites]


def normalized(raw: Sequence[int]) -> list[int]:
    least, most = min(raw), max(raw)
    return [int(100 * ((score - least) / (most - least))) if most > least else 0 for score in raw]


def _pods(sites: Sequence[Site]) -> Iterator[tuple[Site, Pod]]:
    return ((site, pod) for site in sites for pod in site.pods)


def _add(sums: Sums, site: Site, keys: Sequence[str], weight: int = 1) -> None:
    for key in keys:
        if key in site.labels:
            sums[key, site.labels[key]] += weight
