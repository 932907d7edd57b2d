"""Shrinks a disagreement: drops parts of a case as long as the two sides still disagree.

`fuzz` calls it. Reductions are tried greedily, larger parts first; each candidate is put to both sides again.
Candidates with a new flaw are not tried."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy

from numalign.oracle.shrinking import cuts, mending, validity
from numalign.oracle.shrinking.generic import Case


def smaller(case: Case) -> Iterator[Case]:
    """Smaller variants of a case of the kubelet's families without new flaws, larger cuts first."""
    known = validity.flaws(case)
    for cut in cuts.of(case):
        candidate = deepcopy(case)
        cut(candidate)
        if validity.flaws(mending.mended(candidate)) <= known:
            yield candidate
