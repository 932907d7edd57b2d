"""InterPodAffinity's preferences: nodes near pods that this one likes, and pods that like it, score higher.

Base of the rule in `interpodaffinity`. The pod's own preferred terms count, those of pods on nodes, and, with a weight
from the profile, what pods on nodes require to be near (kube-scheduler spec 1.13)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from numalign.api.objects.pod import Pod
from numalign.api.schedulerconfig.podruleargs import InterPodAffinityArgs
from numalign.placement.rules.clusterstate import ClusterState
from numalign.placement.rules.pods import affinityscopes, domains
from numalign.placement.rules.pods.domains import Domains
from numalign.placement.rules.pods.namespaces import Namespaces
from numalign.placement.rules.pods.podcounts import Counts, PodCounts
from numalign.placement.rules.pods.podterms import HeldTerm, PodTerms, Role
from numalign.placement.rules.rowclasses import ABSENT
from numalign.placement.rules.rule import MAX_SCORE, Rows, Scores

Weighted = Iterator[tuple[str, int, Counts]]
"""Label, weight, and how many pods count on each row."""


class AffinityScores(Struct, frozen=True):
    """The sum of weights in each domain of each label."""

    by_key: dict[str, Domains]


class AffinityScore:
    def __init__(self, counts: PodCounts, terms: PodTerms, namespaces: Namespaces, args: InterPodAffinityArgs) -> None:
        self._counts, self._terms, self._namespaces, self._args = counts, terms, namespaces, args

    def concerns(self, pod: Pod) -> bool:
        """Whether a term of the pod is about others, or one of theirs about it; quick, and in doubt yes."""
        affinity = pod.spec.affinity
        has_terms = affinity is not None and (affinity.pod_affinity or affinity.pod_anti_affinity) is not None
        return has_terms or self._terms.may_mean(pod)

    @property
    def surroundings(self) -> int:
        return self._terms.generation

    def prepare_score(self, pod: Pod, world: ClusterState, rows: Rows) -> AffinityScores | None:
        if not self.concerns(pod):
            return None
        own = affinityscopes.of_pod(pod, self._namespaces)
        prefers = bool(own[Role.LIKES_NEAR] or own[Role.LIKES_AWAY])
        if self._args.ignore_preferred_terms_of_existing_pods and not prefers:
            return None
        by_key: dict[str, Counts] = {}
        for key, weight, by_row in (*self._own(own), *self._others(pod)):
            if np.any(by_row[world.labels.column(key).ids != ABSENT]):
                by_key[key] = by_key[key] + weight * by_row if key in by_key else weight * by_row
        if not by_key:
            return None
        return AffinityScores({key: domains.summed(world.labels.column(key), by_key[key]) for key in by_key})

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

    def _own(self, terms: affinityscopes.Terms) -> Weighted:
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
