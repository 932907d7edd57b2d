"""Chooses what to suggest for a pod that no node takes: the best suggestion first.

`numalign explain` calls `found`. Uncordoning a node comes first, because it touches no pod. Freeing few pods and asking
for a little less come before other changes of rules, and those before freeing many pods or asking for much less."""

from __future__ import annotations

from itertools import islice
from typing import Final

from numalign.placement.explain import wording
from numalign.placement.explain.reasons import AnySuggestion, Freeing, Relaxing, Shrinking, Waiting
from numalign.placement.rowmodel.causes import Cause
from numalign.scheduler.choose.choose import AttemptContext
from numalign.scheduler.explain import freepods, relax, shrink
from numalign.scheduler.explain.explanations import Explained
from numalign.scheduler.explain.trial import FitSearch
from numalign.scheduler.profiles import Profile

NODES_TRIED: Final = 6
"""Number of closest nodes on which freeing pods is tried."""
CHANGES: Final = (Freeing, Shrinking, Relaxing)
"""Suggestions of which each alone helps."""
MOST_SAID: Final = 3
FEW: Final = 3
"""Number of pods up to which freeing them counts as easy."""
MOST: Final = 0.5
"""Part of the request down to which asking for less counts as easy."""


def found(explained: Explained, profile: Profile, around: AttemptContext) -> tuple[AnySuggestion, ...]:
    """The suggestions, best first. Empty: the pod fits, or no tried change helps."""
    if explained.fits or explained.problem is not None:
        return ()
    search = FitSearch(around, profile, explained.pod)
    freed, smaller = _freed(explained, search), shrink.found(explained, search)
    relaxed, too_large = relax.found(explained, search), shrink.oversized(explained, search, smaller)
    if too_large is not None:
        smaller = None
    # Where another rule is all that a pod needs, it is not too large.
    each = (freed, smaller, *relaxed, too_large, _waiting(explained))
    return tuple(sorted(filter(None, each), key=_cost))


def line(found: tuple[AnySuggestion, ...]) -> str:
    """The best suggestions as one line; empty: there is none."""
    if not found:
        return ""
    first, *others = found
    also = filter(_is_specific, others) if isinstance(first, CHANGES) else ()
    said = (wording.suggestion(each).replace("would fit", "or", 1) for each in islice(also, MOST_SAID - 1))
    return "; ".join([wording.suggestion(first), *said])


def _is_specific(each: AnySuggestion) -> bool:
    return isinstance(each, CHANGES) and not (isinstance(each, Relaxing) and each.plugin not in relax.SPECIAL)


def _cost(each: AnySuggestion) -> int:
    if isinstance(each, Relaxing) and each.is_uncordon:
        return 0
    if isinstance(each, Freeing):
        return 1 if len(each.pods) <= FEW else 4
    if isinstance(each, Shrinking):
        return 2 if each.amount >= MOST * each.instead_of else 5
    if isinstance(each, Waiting):
        return 6
    return 3


def _freed(explained: Explained, search: FitSearch) -> Freeing | None:
    found: list[Freeing] = []
    for node in explained.closest[:NODES_TRIED]:
        answer = explained.refused[node]
        if answer.distance[0] > 1:
            continue
        freed = freepods.found(explained.pod, node, answer, search)
        if freed is not None:
            found.append(freed)
            if len(freed.pods) == 1:
                break
    return min(found, key=lambda each: len(each.pods), default=None)


def _waiting(explained: Explained) -> Waiting | None:
    for node in explained.closest:
        reason = explained.refused[node].reason
        if reason is not None and reason.cause is Cause.UNSETTLED_PODS and reason.waiting_for:
            return Waiting(node=node, pods=reason.waiting_for)
    return None
