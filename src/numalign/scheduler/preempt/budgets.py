"""PodDisruptionBudgets that were seen, and which of some pods they would not let go.

`watching` brings them, preemption asks. What a budget allows is what its status says; nothing is charged here, as the
disruption controller hears of evictions by itself (kube-scheduler spec 1.20). Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from msgspec import Struct

from numalign.api.objects.disruption import PodDisruptionBudget
from numalign.api.objects.pod import Pod
from numalign.placement.rules.pods.matchers import Matcher


class TrackedBudget(Struct, frozen=True):
    budget: PodDisruptionBudget
    selector: Matcher

    def covers(self, pod: Pod) -> bool:
        """A budget whose selector asks for nothing covers nobody, and nobody without labels is covered."""
        labels = pod.metadata.labels
        return bool(labels) and not self.selector.is_empty and self.selector.matches(labels)


class Budgets:
    def __init__(self) -> None:
        self._kept: defaultdict[str, dict[str, TrackedBudget]] = defaultdict(dict)
        """By namespace and name."""
        self.selections = 0
        """Raised whenever other pods are covered than before."""
        self.generation = 0
        """Raised with every change."""

    def put(self, budget: PodDisruptionBudget) -> None:
        meta = budget.metadata
        before = self._kept[meta.namespace].get(meta.name)
        kept = TrackedBudget(budget, Matcher(budget.spec.selector))
        self._kept[meta.namespace][meta.name] = kept
        self._changed(before is None or before.selector != kept.selector)

    def drop(self, namespace: str, name: str) -> None:
        if self._kept[namespace].pop(name, None) is not None:
            self._changed(True)

    def cover(self, pods: Iterable[Pod]) -> bool:
        """Whether any budget speaks for any of them."""
        return any(True for pod in pods for _ in self._covering(pod))

    def violated_by(self, pods: Iterable[Pod]) -> set[str]:
        """By uid, those whose end goes beyond a budget, if all of them ended, one after the other."""
        left: dict[tuple[str, str], int] = {}
        found: set[str] = set()
        for pod in pods:
            for kept in self._covering(pod):
                meta, status = kept.budget.metadata, kept.budget.status
                if pod.metadata.name in status.disrupted_pods:
                    continue
                key = meta.namespace, meta.name
                left[key] = left.get(key, status.disruptions_allowed) - 1
                if left[key] < 0:
                    found.add(pod.metadata.uid)
                    # Further budgets of a pod that is counted already are left as they are, as stock does.
                    break
        return found

    def __len__(self) -> int:
        return sum(map(len, self._kept.values()))

    def _covering(self, pod: Pod) -> Iterator[TrackedBudget]:
        return (kept for kept in self._kept.get(pod.metadata.namespace, {}).values() if kept.covers(pod))

    def _changed(self, selects_otherwise: bool) -> None:
        self.generation += 1
        self.selections += selects_otherwise
