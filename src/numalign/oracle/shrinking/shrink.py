"""Making a disagreement small: drop what is not needed for it, as long as it stays one.

Reductions are tried greedily, larger things first; each candidate is put to the real code and to ours again. What
belongs together is dropped together, and what would no longer be a case that could be is not offered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy

from numalign.oracle.shrinking import cuts, mending, validity
from numalign.oracle.shrinking.anatomy import Case

Smaller = Callable[[Case], Iterator[Case]]


def shrunk(case: Case, still_differs: Callable[[Case], bool], smaller: Smaller, *, tries: int = 500) -> Case:
    """The smallest case found within so many tries that the two sides still disagree about."""
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
    """Cases of the kubelet's families with something less and no flaw more, the larger things gone first."""
    known = validity.flaws(case)
    for cut in cuts.of(case):
        candidate = deepcopy(case)
        cut(candidate)
        if validity.flaws(mending.mended(candidate)) <= known:
            yield candidate
