"""InterPodAffinity: affinity and anti-affinity between pods, as a filter and as a score.

Two pods are near each other if their nodes have the same value of the topology key. The first pod of a group with
affinity to itself fits anywhere. The filter counts required terms of the pod and required anti-affinity of existing
pods; the score adds preferred terms of both and, with a weight from the profile, required affinity of existing pods
(kube-scheduler spec 1.13). Namespace selectors are resolved to names first. Equal terms are equal queries to
`podcounts`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from numalign.api.objects.pod import Pod
from numalign.api.schedulerconfig.pluginargs import InterPodAffinityArgs
from numalign.placement.rules.clusterstate import ClusterState, Flags
from numalign.placement.rules.pods import podcounts, podterms
from numalign.placement.rules.pods.matchers import Namespaces
from numalign.placement.rules.pods.podcounts import Counts, Domains, PodCounts, PodQuery, PodScope
from numalign.placement.rules.pods.podterms import AffinityTerm, HeldTerm, PodTerms, Role
from numalign.placement.rules.rowclasses import ABSENT
from numalign.placement.rules.rule import FITS, MAX_SCORE, Codes, Refusal, Refusals, Rows, Scores


class ScopedTerm(Struct, frozen=True):
    key: str
    scope: PodScope
    weight: int = 0

    @property
    def question(self) -> PodQuery:
        return PodQuery(scopes=(self.scope,))


Terms = dict[Role, list[ScopedTerm]]


def of_pod(pod: Pod, namespaces: Namespaces) -> Terms:
    terms: Terms = {role: [] for role in Role}
    for held in podterms.of_pod(pod):
        scope = _scope(held.term, namespaces)
        terms[held.role].append(ScopedTerm(key=held.term.key, scope=scope, weight=held.weight))
    return terms


def _scope(term: AffinityTerm, namespaces: Namespaces) -> PodScope:
    chosen = None
    if not term.namespace_selector.is_empty:
        chosen = term.namespaces | namespaces.matching(term.namespace_selector)
    return PodScope(namespaces=chosen, selector=term.selector)


Weighted = Iterator[tuple[str, int, Counts]]
"""Label, weight, and how many pods count on each row."""


class AffinityScores(Struct, frozen=True):
    """The sum of weights in each domain of each label."""

    by_key: dict[str, Domains]


class AffinityScore:
    def __init__(self, counts: PodCounts, terms: PodTerms, namespaces: Namespaces, args: InterPodAffinityArgs) -> None:
        self._counts, self._terms, self._namespaces, self._args = counts, terms, namespaces, args

    def concerns(self, pod: Pod) -> bool:
        """Whether the pod has terms or a term may match it; a quick check that may return True wrongly."""
        affinity = pod.spec.affinity
        has_terms = affinity is not None and (affinity.pod_affinity or affinity.pod_anti_affinity) is not None
        return has_terms or self._terms.may_mean(pod)

    @property
    def surroundings(self) -> int:
        return self._terms.generation

    def prepare_score(self, pod: Pod, world: ClusterState, rows: Rows) -> AffinityScores | None:
        if not self.concerns(pod):
            return None
        own = of_pod(pod, self._namespaces)
        prefers = bool(own[Role.LIKES_NEAR] or own[Role.LIKES_AWAY])
        if self._args.ignore_preferred_terms_of_existing_pods and not prefers:
            return None
        by_key: dict[str, Counts] = {}
        for key, weight, by_row in (*self._own(own), *self._others(pod)):
            if np.any(by_row[world.labels.column(key).ids != ABSENT]):
                by_key[key] = by_key[key] + weight * by_row if key in by_key else weight * by_row
        if not by_key:
            return None
        return AffinityScores({key: podcounts.summed(world.labels.column(key), by_key[key]) for key in by_key})

    def score(self, prepared: AffinityScores, rows: Rows) -> Scores:
        total = np.zeros(len(rows), np.int64)
        for each in prepared.by_key.values():
            total += each.sums[each.of_row[rows]]
        return total

    def normalized(self, prepared: AffinityScores, raw: Scores) -> Scores:
        if len(raw) == 0 or raw.max() == raw.min():
            return np.zeros(len(raw), np.int64)
        share: NDArray[np.float64] = (raw - raw.min()) / (raw.max() - raw.min())
        return (MAX_SCORE * share).astype(np.int64)

    def _own(self, terms: Terms) -> Weighted:
        for role, sign in ((Role.LIKES_NEAR, 1), (Role.LIKES_AWAY, -1)):
            for term in terms[role]:
                yield term.key, sign * term.weight, self._counts.by_row(term.question)

    def _others(self, pod: Pod) -> Weighted:
        labels = self._namespaces.labels(pod.metadata.namespace)
        for held, by_row in self._terms.about(pod, labels):
            weight = self._weight(held)
            if weight:
                yield held.term.key, weight, by_row

    def _weight(self, held: HeldTerm) -> int:
        match held.role:
            case Role.MUST_BE_NEAR:
                return self._args.hard_pod_affinity_weight
            case Role.LIKES_NEAR:
                return held.weight
            case Role.LIKES_AWAY:
                return -held.weight
        return 0


NOT_NEAR: Final = Refusal(("node(s) didn't match pod affinity rules",), unresolvable=True)
NOT_AWAY: Final = Refusal(("node(s) didn't match pod anti-affinity rules",))
UNWANTED: Final = Refusal(("node(s) didn't satisfy existing pods anti-affinity rules",))
NOT_NEAR_CODE, NOT_AWAY_CODE, UNWANTED_CODE = 1, 2, 3
DEFAULTS: Final = InterPodAffinityArgs()

ByKey = dict[str, Domains]
"""Sums by domain, of each label that terms use."""


class PreparedPodAffinity(Struct, frozen=True):
    """What the pod's terms and the terms about it find on nodes, by label and domain."""

    pod: Pod
    world: ClusterState
    namespace_labels: Mapping[str, str]
    near: list[ScopedTerm]
    away: list[ScopedTerm]
    friends: ByKey
    """Pods that meet all the terms to be near."""
    foes: ByKey
    """Pods that a term to be away is about, once for each."""
    objections: ByKey
    """Anti-affinity terms of assigned pods that match this pod."""
    refusals: Refusals
    only: None = None

    @property
    def is_own_friend(self) -> bool:
        return _is_friend(self.pod, self.near)


class InterPodAffinity(AffinityScore):
    name: Final = "InterPodAffinity"

    def __init__(
        self, counts: PodCounts, terms: PodTerms, namespaces: Namespaces, args: InterPodAffinityArgs = DEFAULTS
    ) -> None:
        super().__init__(counts, terms, namespaces, args)

    def prepare(self, pod: Pod, world: ClusterState) -> PreparedPodAffinity | None:
        if not self.concerns(pod):
            return None
        own = of_pod(pod, self._namespaces)
        near, away = own[Role.MUST_BE_NEAR], own[Role.MUST_BE_AWAY]
        labels = self._namespaces.labels(pod.metadata.namespace)
        objections = self._objections(pod, world, labels)
        if not (near or away or any(each.sums.any() for each in objections.values())):
            return None
        return PreparedPodAffinity(
            pod=pod,
            world=world,
            namespace_labels=labels,
            near=near,
            away=away,
            friends=self._friends(near, world),
            foes=self._foes(away, world),
            objections=objections,
            refusals=Refusals(NOT_NEAR, NOT_AWAY, UNWANTED),
        )

    def filter(self, prepared: PreparedPodAffinity) -> Codes:
        codes = np.zeros(prepared.world.capacity, np.int32)
        if prepared.objections:
            codes[_in_any(prepared.objections, prepared.world)] = UNWANTED_CODE
        if prepared.foes:
            codes[_in_any(prepared.foes, prepared.world)] = NOT_AWAY_CODE
        if prepared.near:
            codes[~_near(prepared)] = NOT_NEAR_CODE
        return codes

    def filter_row(
        self, prepared: PreparedPodAffinity, row: int, removed: Collection[str], added: Sequence[Pod]
    ) -> int:
        gone = [prepared.world.on_row[row][uid].pod for uid in removed]
        if not _is_near(prepared, row, _friends_among(added, prepared) - _friends_among(gone, prepared)):
            return NOT_NEAR_CODE
        labels = prepared.world.labels.of_row[row]
        foes = _change(_foes_among(added, prepared), _foes_among(gone, prepared), labels)
        if _is_any(prepared.foes, row, foes):
            return NOT_AWAY_CODE
        objections = _change(_objections_among(added, prepared), _objections_among(gone, prepared), labels)
        return UNWANTED_CODE if _is_any(prepared.objections, row, objections) else FITS

    def _friends(self, near: list[ScopedTerm], world: ClusterState) -> ByKey:
        if not near:
            return {}
        by_row = self._counts.by_row(PodQuery(scopes=tuple(term.scope for term in near)))
        return {term.key: podcounts.summed(world.labels.column(term.key), by_row) for term in near}

    def _foes(self, away: list[ScopedTerm], world: ClusterState) -> ByKey:
        return by_key(((term.key, self._counts.by_row(term.question)) for term in away), world)

    def _objections(self, pod: Pod, world: ClusterState, namespace_labels: Mapping[str, str]) -> ByKey:
        about = self._terms.about(pod, namespace_labels)
        return by_key(((held.term.key, rows) for held, rows in about if held.role is Role.MUST_BE_AWAY), world)


def by_key(parts: Iterable[tuple[str, Counts]], world: ClusterState) -> ByKey:
    rows: dict[str, Counts] = {}
    for key, by_row in parts:
        rows[key] = rows[key] + by_row if key in rows else by_row
    return {key: podcounts.summed(world.labels.column(key), by_row) for key, by_row in rows.items()}


def _near(prepared: PreparedPodAffinity) -> Flags:
    labelled = np.ones(prepared.world.capacity, np.bool_)
    with_friends = labelled.copy()
    for each in prepared.friends.values():
        labelled &= each.labelled
        with_friends &= each.at_rows() > 0
    return labelled & (with_friends | _may_start(prepared, 0))


def _may_start(prepared: PreparedPodAffinity, friends: int) -> bool:
    """No pod in the cluster matches the terms, but the pod itself does: it is the first of its group."""
    known = sum(int(each.sums.sum()) for each in prepared.friends.values())
    return known + friends == 0 and prepared.is_own_friend


def _in_any(sums: ByKey, world: ClusterState) -> Flags:
    rows = np.zeros(world.capacity, np.bool_)
    for each in sums.values():
        rows |= each.at_rows() > 0
    return rows


def _is_near(prepared: PreparedPodAffinity, row: int, change: int) -> bool:
    if not all(each.has(row) for each in prepared.friends.values()):
        return False
    if all(each.at(row) + change > 0 for each in prepared.friends.values()):
        return True
    return _may_start(prepared, change * len(prepared.friends))


def _is_any(sums: ByKey, row: int, change: Mapping[str, int]) -> bool:
    after = {key: each.at(row) for key, each in sums.items()}
    return any(after.get(key, 0) + change.get(key, 0) > 0 for key in {*after, *change})


def _is_friend(pod: Pod, near: Sequence[ScopedTerm]) -> bool:
    return bool(near) and all(term.scope.has_pod(pod) for term in near)


def _friends_among(pods: Iterable[Pod], prepared: PreparedPodAffinity) -> int:
    return sum(_is_friend(pod, prepared.near) for pod in pods)


def _foes_among(pods: Iterable[Pod], prepared: PreparedPodAffinity) -> list[str]:
    return [term.key for pod in pods for term in prepared.away if term.scope.has_pod(pod)]


def _objections_among(pods: Iterable[Pod], prepared: PreparedPodAffinity) -> list[str]:
    held = (each for pod in pods for each in podterms.of_pod(pod) if each.role is Role.MUST_BE_AWAY)
    return [each.term.key for each in held if each.term.is_about(prepared.pod, prepared.namespace_labels)]


def _change(more: Sequence[str], less: Sequence[str], labels: Mapping[str, str]) -> dict[str, int]:
    # A term does not apply to a node without its topology label.
    return {key: more.count(key) - less.count(key) for key in {*more, *less} if key in labels}
