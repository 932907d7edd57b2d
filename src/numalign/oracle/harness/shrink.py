"""Shrinks a disagreement: drops parts of a case as long as the two sides still disagree.

`fuzz` calls `shrunk`. Each source passes a function that yields smaller variants of a case; the other functions here
help to write one for cases in JSON. Reductions are tried greedily, larger parts first, and each candidate is put to
both sides again."""

from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from typing import Any

from numalign.oracle.harness.divergence import Case

Place = tuple[str | int, ...]
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


def candidates(case: Case, found: Iterable[tuple[Place, Any]]) -> Iterator[Case]:
    """Copies of the case, each with one of the found items, slices or keys removed, larger cuts first."""
    for place, gone in sorted(found, key=lambda cut: len(cut[0])):
        candidate = deepcopy(case)
        del at(candidate, place)[gone]
        yield candidate


def blocks(length: int) -> Iterator[tuple[int, int]]:
    """All items, halves, quarters, and so on down to single items."""
    size = length
    while size > 0:
        yield from ((start, min(start + size, length)) for start in range(0, length, size))
        size = size // 2


def objects(value: Any, place: Place = (), closed: frozenset[str] = frozenset()) -> Iterator[tuple[Place, Case]]:
    """Every object inside `value` with its place, outer before inner. Values of `closed` keys are skipped."""
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from objects(item, (*place, number), closed)
    if isinstance(value, dict):
        yield place, value
        for key, child in value.items():
            if key not in closed:
                yield from objects(child, (*place, key), closed)


def at(case: Case, place: Place) -> Any:
    """The value at `place`; None if an object has no such key."""
    found: Any = case
    for step in place:
        found = found.get(step) if isinstance(found, dict) and isinstance(step, str) else found[step]
    return found
