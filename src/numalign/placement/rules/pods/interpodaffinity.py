"""InterPodAffinity: pods that must be near other pods, or away from them; and what pods on nodes demand of new ones.

Here are the conditions; the preferences are `affinityscore`. A pod is near another if their nodes share the value of a
label. The first pod of a group that wants to be near itself may go anywhere (kube-scheduler spec 1.13)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from numalign.api.objects.pod import Pod
from numalign.api.schedulerconfig.podruleargs import InterPodAffinityArgs
from numalign.placement.rules.clusterstate import ClusterState, Flags
from numalign.placement.rules.pods import affinityscopes, domains, podterms
from numalign.placement.rules.pods.affinityscopes import ScopedTerm
from numalign.placement.rules.pods.affinityscore import AffinityScore
from numalign.placement.rules.pods.domains import Domains
from numalign.placement.rules.pods.namespaces import Namespaces
from numalign.placement.rules.pods.podcounts import Counts, PodCounts, PodQuery
from numalign.placement.rules.pods.podterms import PodTerms, Role
from numalign.placement.rules.rule import FITS, Codes, Refusal, Refusals

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
    """Terms of pods on nodes that want to be away from this pod."""
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
        own = affinityscopes.of_pod(pod, self._namespaces)
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
        return {term.key: domains.summed(world.labels.column(term.key), by_row) for term in near}

    def _foes(self, away: list[ScopedTerm], world: ClusterState) -> ByKey:
        return by_key(((term.key, self._counts.by_row(term.question)) for term in away), world)

    def _objections(self, pod: Pod, world: ClusterState, namespace_labels: Mapping[str, str]) -> ByKey:
        about = self._terms.about(pod, namespace_labels)
        return by_key(((held.term.key, rows) for held, rows in about if held.role is Role.MUST_BE_AWAY), world)


def by_key(parts: Iterable[tuple[str, Counts]], world: ClusterState) -> ByKey:
    rows: dict[str, Counts] = {}
    for key, by_row in parts:
        rows[key] = rows[key] + by_row if key in rows else by_row
    return {key: domains.summed(world.labels.column(key), by_row) for key, by_row in rows.items()}


def _near(prepared: PreparedPodAffinity) -> Flags:
    labelled = np.ones(prepared.world.capacity, np.bool_)
    with_friends = labelled.copy()
    for each in prepared.friends.values():
        labelled &= each.labelled
        with_friends &= each.at_rows() > 0
    return labelled & (with_friends | _may_start(prepared, 0))


def _may_start(prepared: PreparedPodAffinity, friends: int) -> bool:
    """Nobody in the cluster meets the terms, but the pod itself would: someone has to be first."""
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
    # A term whose label the node does not have says nothing about it.
    return {key: more.count(key) - less.count(key) for key in {*more, *less} if key in labels}
