"""Affinity terms of pods on nodes: which of them apply to a given pod, and on which rows they are held.

`interpodaffinity` asks for every pending pod, so equal terms are one entry with a count per row, and entries are
indexed by a label that a matching pod must have (kube-scheduler spec 1.13)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Final

import numpy as np
from msgspec import Struct

from numalign.api.objects.pod import Pod, PodAffinity, PodAffinityTerm
from numalign.placement.rules.clusterstate import AssignedPod, ClusterState
from numalign.placement.rules.pods.matchers import Matcher, Pair
from numalign.placement.rules.pods.podcounts import Counts, PodCount

NO_TERMS: Final = PodAffinity()


class Role(Enum):
    MUST_BE_NEAR = 1
    MUST_BE_AWAY = 2
    LIKES_NEAR = 3
    LIKES_AWAY = 4


class AffinityTerm(Struct, frozen=True):
    """A term of some pod: which pods it is about, and the label that says what near means."""

    key: str
    namespaces: frozenset[str]
    namespace_selector: Matcher
    selector: Matcher

    def is_about(self, pod: Pod, namespace_labels: Mapping[str, str]) -> bool:
        meta = pod.metadata
        chosen = meta.namespace in self.namespaces or self.namespace_selector.matches(namespace_labels)
        return chosen and self.selector.matches(meta.labels)


class HeldTerm(Struct, frozen=True):
    role: Role
    term: AffinityTerm
    weight: int = 0


class TermHolders:
    """By row, how many times pods there hold one term; an array after the first read."""

    def __init__(self) -> None:
        self._rows: dict[int, int] = {}
        self._answer: PodCount | None = None

    def __bool__(self) -> bool:
        return bool(self._rows)

    def add(self, row: int, count: int) -> None:
        self._rows[row] = self._rows.get(row, 0) + count
        if self._rows[row] == 0:
            del self._rows[row]
        if self._answer:
            self._answer.add(row, count)

    def by_row(self, rows: int) -> Counts:
        if self._answer is None:
            self._answer = PodCount(rows)
            self._answer.by_row[np.fromiter(self._rows, np.intp)] = np.fromiter(self._rows.values(), np.int64)
        self._answer.make_room(rows)
        return self._answer.by_row


class PodTerms:
    """The affinity terms of assigned pods; follows a cluster state."""

    def __init__(self, world: ClusterState) -> None:
        self._world = world
        self._holders: dict[HeldTerm, TermHolders] = {}
        self._by_anchor: dict[Pair | None, dict[HeldTerm, None]] = {}
        self._of_uid: dict[str, tuple[HeldTerm, ...]] = {}
        self.generation = 0
        """Incremented when a term appears or its last holder goes."""
        world.follow(self)

    def may_mean(self, pod: Pod) -> bool:
        """Whether any term may match the pod; a quick check that may return True wrongly."""
        by_anchor = self._by_anchor
        return bool(by_anchor) and (None in by_anchor or not by_anchor.keys().isdisjoint(pod.metadata.labels.items()))

    def about(self, pod: Pod, namespace_labels: Mapping[str, str]) -> Iterator[tuple[HeldTerm, Counts]]:
        """Terms of other pods that match this one, with the rows of those pods."""
        for anchor in (None, *pod.metadata.labels.items()):
            for held in self._by_anchor.get(anchor, ()):
                if held.term.is_about(pod, namespace_labels):
                    yield held, self._holders[held].by_row(self._world.capacity)

    def node_changed(self, row: int) -> None:
        """Counts are per row, whatever node it has."""

    def pod_added(self, assigned: AssignedPod) -> None:
        if assigned.pod.spec.affinity is None:
            return
        terms = tuple(of_pod(assigned.pod))
        if terms:
            self._of_uid[assigned.uid] = terms
        for held in terms:
            if held not in self._holders:
                self.generation += 1
                self._holders[held] = TermHolders()
                for anchor in _anchors(held):
                    self._by_anchor.setdefault(anchor, {})[held] = None
            self._holders[held].add(assigned.row, 1)

    def pod_removed(self, assigned: AssignedPod) -> None:
        for held in self._of_uid.pop(assigned.uid, ()):
            self._holders[held].add(assigned.row, -1)
            if not self._holders[held]:
                self._forget(held)

    def _forget(self, held: HeldTerm) -> None:
        self.generation += 1
        del self._holders[held]
        for anchor in _anchors(held):
            del self._by_anchor[anchor][held]
            if not self._by_anchor[anchor]:
                del self._by_anchor[anchor]


def of_pod(pod: Pod) -> Iterator[HeldTerm]:
    """All the pod's terms about other pods, in any role."""
    affinity = pod.spec.affinity
    if affinity is None:
        return
    near, away = affinity.pod_affinity or NO_TERMS, affinity.pod_anti_affinity or NO_TERMS
    for terms, must, likes in (
        (near, Role.MUST_BE_NEAR, Role.LIKES_NEAR),
        (away, Role.MUST_BE_AWAY, Role.LIKES_AWAY),
    ):
        yield from (HeldTerm(must, of(term, pod)) for term in terms.required)
        yield from (HeldTerm(likes, of(each.pod_affinity_term, pod), each.weight) for each in terms.preferred)


def of(term: PodAffinityTerm, owner: Pod) -> AffinityTerm:
    """Without namespaces and without a selector of them, a term is about the namespace of its owner."""
    is_own = not term.namespaces and term.namespace_selector is None
    return AffinityTerm(
        key=term.topology_key,
        namespaces=frozenset((owner.metadata.namespace,) if is_own else term.namespaces),
        namespace_selector=Matcher(term.namespace_selector),
        selector=Matcher(term.label_selector),
    )


def _anchors(held: HeldTerm) -> set[Pair | None]:
    # In with no values matches nothing, so that nothing to find it by is right for it too.
    return set(held.term.selector.anchors()) or {None}
