"""Label selectors as hashable values, and the namespaces that affinity terms select by label.

Spreading and pod affinity use them as cache keys; `selectors.matches` does the matching. A namespace that the API
server has not shown yet has no labels, and no term selects it (kube-scheduler spec 1.13)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from numalign.api.caches import LruCache
from numalign.api.objects import selectors
from numalign.api.objects.selectors import LabelSelector, LabelSelectorRequirement

Pair = tuple[str, str]


class Matcher:
    __slots__ = ("_hash", "_key", "_selector")

    def __init__(self, selector: LabelSelector | None) -> None:
        self._selector = selector
        self._key = selector and (tuple(sorted(selector.match_labels.items())), selector.match_expressions)
        self._hash = hash(self._key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Matcher) and self._key == other._key

    def __repr__(self) -> str:
        return f"Matcher({self._selector})"

    @property
    def is_empty(self) -> bool:
        """Whether the selector is present without requirements and matches every pod. A missing one matches none."""
        return self._selector is not None and self._selector.is_empty

    def matches(self, labels: Mapping[str, str]) -> bool:
        return selectors.matches(self._selector, labels)

    def and_pairs(self, pairs: Mapping[str, str]) -> Matcher:
        """The selector with these labels added; a missing selector stays missing."""
        if self._selector is None or not pairs:
            return self
        added = tuple(LabelSelectorRequirement(key=key, operator="In", values=(pairs[key],)) for key in sorted(pairs))
        expressions = added + self._selector.match_expressions
        return Matcher(LabelSelector(match_labels=self._selector.match_labels, match_expressions=expressions))

    def and_also(self, other: LabelSelector | None) -> Matcher:
        """The conjunction of both; a missing selector adds nothing."""
        if self._selector is None or other is None:
            return self
        both = self.and_pairs(other.match_labels)._selector or self._selector
        expressions = both.match_expressions + other.match_expressions
        return Matcher(LabelSelector(match_labels=both.match_labels, match_expressions=expressions))

    def anchors(self) -> tuple[Pair, ...]:
        """Labels of which a pod has at least one if it matches; none when that cannot be said."""
        if self._selector is None:
            return ()
        for pair in self._selector.match_labels.items():
            return (pair,)
        for each in self._selector.match_expressions:
            if each.operator == "In":
                return tuple((each.key, value) for value in each.values)
        return ()


EVERYTHING: Final = Matcher(LabelSelector())


def with_labels(labels: Iterable[Pair]) -> Matcher:
    return Matcher(LabelSelector(match_labels=dict(labels)))


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
