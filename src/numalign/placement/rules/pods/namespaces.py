"""Namespaces and their labels, for pod affinity terms that choose namespaces by label.

Whoever takes in facts writes; `interpodaffinity` reads. A namespace that nobody has told about counts as one without
labels when a pod is in it, and is chosen by no term (kube-scheduler spec 1.13)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from numalign.api.caches import LruCache
from numalign.placement.rules.pods.matchers import Matcher

NO_LABELS: Final[Mapping[str, str]] = {}
MOST_ANSWERS: Final = 256


class Namespaces:
    def __init__(self) -> None:
        self._labels: dict[str, Mapping[str, str]] = {}
        self._chosen: LruCache[Matcher, frozenset[str]] = LruCache(MOST_ANSWERS)
        self.generation = 0
        """Raised whenever a namespace comes, goes, or changes its labels."""

    def put(self, name: str, labels: Mapping[str, str]) -> None:
        if self._labels.get(name) != labels:
            self._labels[name] = labels
            self._changed()

    def drop(self, name: str) -> None:
        if self._labels.pop(name, None) is not None:
            self._changed()

    def labels(self, name: str) -> Mapping[str, str]:
        return self._labels.get(name, NO_LABELS)

    def matching(self, matcher: Matcher) -> frozenset[str]:
        return self._chosen.get(
            matcher, lambda: frozenset(name for name, labels in self._labels.items() if matcher.matches(labels))
        )

    def _changed(self) -> None:
        self.generation += 1
        self._chosen = LruCache(MOST_ANSWERS)
