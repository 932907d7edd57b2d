"""Shrinks a disagreement: drops parts of a case as long as the two sides still disagree.

`fuzz` calls it. Reductions are tried greedily, larger parts first; each candidate is put to both sides again.
Candidates with a new flaw are not tried."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy

from numalign.oracle.shrinking import cuts, mending, validity
from numalign.oracle.shrinking.anatomy import Case

Smaller = Callable[[Case], Iterator[Case]]


def shrunk(case: Case, still_differs: Callable[[Case], bool], smaller: Smaller, *, tries: int = 500) -> Case:
    """The smallest case found within `tries` on which the two sides still disagree."""
    best, left = case, tries
    progress = True
    while progress and left > 0:
        progress = False
        for candidate in smaller(best):
            left -= 1
            if left <= 0:
                break
            if still_differs(candidate):
                best, progress = candidate, True
                break
    return best


def smaller(case: Case) -> Iterator[Case]:
    """Smaller variants of a case of the kubelet's families without new flaws, larger cuts first."""
    known = validity.flaws(case)
    for cut in cuts.of(case):
        candidate = deepcopy(case)
        cut(candidate)
        if validity.flaws(mending.mended(candidate)) <= known:
            yield candidate
