"""Compares recorded merges of Koordinator's scheduler with the kubelet's merge.

The kubelet aligns the pods of our nodes, so its merge is the one that counts (Koordinator spec 20.1). Koordinator's
flag `unsatisfied` and its failure texts are compared only by presence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from numalign.kubelet import mask as masks
from numalign.kubelet import policies
from numalign.kubelet.hints import Hint, HintList
from numalign.kubelet.merge import HintMap, Rules
from numalign.kubelet.policies import PolicyResult
from numalign.oracle.divergence import Difference
from numalign.oracle.families import encodings
from numalign.oracle.koordinator import koordinatormerge
from numalign.oracle.koordinator.koordinatormerge import RawHint
from numalign.oracle.plugin.suites import suite
from numalign.oracle.plugin.suites.suite import Case, Deliberate, Suite


def _merge(given: Mapping[str, Any]) -> PolicyResult:
    rules = Rules(given["policy"], tuple(given["numa_nodes"]))
    return policies.merge([_offered(provider) for provider in given["providers"]], rules)


def _merged(case: Case) -> object:
    merged = _merge(case["input"])
    best = encodings.hint(merged.best)
    admit = merged.admitted is not None
    affinity = None if best.mask is None else list(best.mask)
    return {"affinity": affinity, "preferred": best.preferred, "admit": admit, "refused": not admit}


def _offered(provider: Mapping[str, Sequence[RawHint] | None] | None) -> HintMap | None:
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


def _is_given_up(given: Mapping[str, Any]) -> bool:
    """No hint is preferred by all resources, and a resource is unavailable or hints of two resources overlap without
    being equal."""
    if given["policy"] == "single-numa-node" or _merge(given).best.preferred:
        return False
    lists = list(_lists(given))
    pairs = ((one, other) for place, one in enumerate(lists) for other in lists[place + 1 :])
    overlaps = (first & second and first != second for pair in pairs for first, second in product(*pair))
    return _lacks_a_resource(given) or any(overlaps)


def _lacks_a_resource(given: Mapping[str, Any]) -> bool:
    return any(hints == [] for provider in given["providers"] for hints in (provider or {}).values())


def _is_koordinators(case: Case) -> bool:
    """The recording equals the result of Koordinator's own merge."""
    merged, expect = koordinatormerge.answer(case["input"]), case["expect"]
    return all(expect[key] == merged[key] for key in merged) and bool(expect["reasons"]) is not merged["admit"]


NARROWER = Deliberate(
    "koordinator-narrower",
    "where one resource wants fewer zones than another the kubelet keeps what they share",
    _is_given_up,
    _is_koordinators,
)
EXCLUSIVE = Deliberate(
    "koordinator-exclusive",
    "zones for one pod alone wait for a mode in which we enforce placement ourselves",
    koordinatormerge.wants_exclusion,
    _is_koordinators,
)

SUITES: tuple[Suite, ...] = (Suite("tm.merge", _merged, _comparable, (NARROWER, EXCLUSIVE)),)
