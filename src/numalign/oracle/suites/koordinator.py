"""Recorded merges of Koordinator's scheduler, held against the kubelet's merge.

Our nodes are aligned by the kubelet, so its merge is the one that counts (Koordinator spec 20.1). Koordinator's flag
`unsatisfied` and its failure texts have no counterpart: only whether there is one of them is compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import product
from operator import and_
from typing import Any, NamedTuple

from numalign.kubelet import mask as masks
from numalign.kubelet import merge as merging
from numalign.kubelet.hints import Hint, HintList
from numalign.oracle import encodings
from numalign.oracle.divergence import Difference
from numalign.oracle.suites import suite
from numalign.oracle.suites.suite import Case, Deliberate, Suite

RawHint = tuple[list[int] | None, bool]


def _merge(given: Mapping[str, Any]) -> merging.Merge:
    rules = merging.Rules(given["policy"], tuple(given["numa_nodes"]))
    return merging.merge([_offered(provider) for provider in given["providers"]], rules)


def _merged(case: Case) -> object:
    merged = _merge(case["input"])
    best = encodings.hint(merged.best)
    admit = merged.admitted is not None
    affinity = None if best.mask is None else list(best.mask)
    return {"affinity": affinity, "preferred": best.preferred, "admit": admit, "refused": not admit}


def _offered(provider: Mapping[str, Sequence[RawHint] | None] | None) -> merging.HintMap | None:
    if provider is None:
        return None
    return {name: None if hints is None else HintList.of(map(_hint, hints)) for name, hints in provider.items()}


def _hint(raw: RawHint) -> Hint:
    zones, preferred = raw
    return Hint(None if zones is None else masks.of(zones), preferred)


def _comparable(expected: Any, answered: Any) -> Sequence[Difference]:
    same = {key: expected[key] for key in ("affinity", "preferred", "admit")}
    return suite.exactly({**same, "refused": bool(expected["reasons"] or expected["unsatisfied"])}, answered)


def _lists(given: Mapping[str, Any]) -> Iterator[list[set[int]]]:
    for provider in given["providers"]:
        for hints in (provider or {}).values():
            yield [set(zones) for zones, _ in hints or () if zones]


def _overlaps(given: Mapping[str, Any]) -> bool:
    """Nothing is preferred by all, and hints of two resources share zones without being the same."""
    if given["policy"] != "best-effort" or _merge(given).best.preferred:
        return False
    lists = list(_lists(given))
    pairs = ((one, other) for place, one in enumerate(lists) for other in lists[place + 1 :])
    return any(first & second and first != second for pair in pairs for first, second in product(*pair))


def _is_koordinators(case: Case) -> bool:
    """Just what Koordinator's own merge makes of the hints (Koordinator spec 8.3 to 8.5, best-effort, no scores)."""
    given, expect = case["input"], case["expect"]
    every = masks.of(given["numa_nodes"])
    found = (_combined(every, hints) for hints in product(*_groups(given)))
    best = min([Candidate(every), *(each for each in found if each.zones)], key=Candidate.rank)
    wanted = Candidate(every) if best.unsatisfied else best
    recorded = [expect[key] for key in ("affinity", "preferred", "admit", "reasons")]
    return recorded == [list(masks.members(wanted.zones)), wanted.preferred, True, []]


class Candidate(NamedTuple):
    """Hints of all resources taken together, one of each."""

    zones: masks.Mask
    preferred: bool = False
    unsatisfied: bool = False

    def rank(self) -> tuple[bool, tuple[int, int]]:
        return not self.preferred, masks.width(self.zones)


def _combined(every: masks.Mask, hints: Sequence[RawHint | None]) -> Candidate:
    """None: the resource cannot be had."""
    known = [hint for hint in hints if hint is not None]
    narrowing = [masks.of(zones) for zones, _ in known if zones is not None]
    shared = reduce(and_, narrowing, every)
    preferred = len(known) == len(hints) and all(preferred for _, preferred in known) and len(set(narrowing)) <= 1
    widest = max((zones.bit_count() for zones in narrowing), default=shared.bit_count())
    return Candidate(shared, preferred, len(known) < len(hints) or widest != shared.bit_count())


def _groups(given: Mapping[str, Any]) -> Iterator[Sequence[RawHint | None]]:
    for provider in given["providers"]:
        for hints in (provider or {}).values():
            if hints is not None:
                yield hints or [None]


NARROWER = Deliberate(
    "koordinator-narrower",
    "where one resource wants fewer zones than another the kubelet keeps what they share",
    _overlaps,
    _is_koordinators,
)

SUITES: tuple[Suite, ...] = (Suite("tm.merge", _merged, _comparable, (NARROWER,)),)
