"""Compares recorded merges of Koordinator's scheduler with the kubelet's merge.

The kubelet aligns the pods of our nodes, so its merge is the one that counts (Koordinator spec 20.1). A deliberate
difference must show exactly the result of Koordinator's own merge (Koordinator spec 8.2 to 8.6), which is repeated here
without scores. Koordinator's flag `unsatisfied` and its failure texts are compared only by presence."""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import product
from operator import and_
from typing import Any, NamedTuple

from numalign.kubelet.topologymanager import mask as masks
from numalign.kubelet.topologymanager import policies
from numalign.kubelet.topologymanager.hints import Hint, HintList
from numalign.kubelet.topologymanager.merge import HintMap, Rules
from numalign.kubelet.topologymanager.policies import PolicyResult
from numalign.oracle.harness import suite
from numalign.oracle.harness.divergence import Case, Difference
from numalign.oracle.harness.suite import DeliberateDifference, Suite
from numalign.oracle.kubelet import forms

RawHint = tuple[list[int] | None, bool]


class Candidate(NamedTuple):
    """One hint of each resource, combined."""

    zones: masks.Mask
    preferred: bool = False
    unsatisfied: bool = False

    def rank(self) -> tuple[bool, tuple[int, int]]:
        return not self.preferred, masks.width(self.zones)


def answer(given: Mapping[str, Any]) -> dict[str, Any]:
    """Zones, preference and admission."""
    every, policy = masks.of(given["numa_nodes"]), given["policy"]
    found = (_combined(given, every, hints) for hints in product(*_groups(given)))
    best = min([Candidate(every), *(each for each in found if each.zones)], key=Candidate.rank)
    if policy == "best-effort" and best.unsatisfied:
        best = Candidate(every)
    unbound = policy == "single-numa-node" and best.zones == every
    return {
        "affinity": None if unbound else list(masks.members(best.zones)),
        "preferred": best.preferred,
        "admit": best.preferred or policy == "best-effort",
    }


def _combined(given: Mapping[str, Any], every: masks.Mask, hints: Sequence[RawHint | None]) -> Candidate:
    """None means that the resource is unavailable."""
    known = [hint for hint in hints if hint is not None]
    narrowing = [masks.of(zones) for zones, _ in known if zones is not None]
    shared = reduce(and_, narrowing, every)
    preferred = len(known) == len(hints) and all(preferred for _, preferred in known) and len(set(narrowing)) <= 1
    widest = max((zones.bit_count() for zones in narrowing), default=shared.bit_count())
    unsatisfied = len(known) < len(hints) or widest != shared.bit_count()
    return Candidate(shared, preferred and not _is_forbidden(given, shared), unsatisfied)


def _groups(given: Mapping[str, Any]) -> Iterator[Sequence[RawHint | None]]:
    is_single = given["policy"] == "single-numa-node"
    for provider in given["providers"]:
        for hints in (provider or {}).values():
            if hints is not None:
                yield [hint for hint in hints or [None] if not is_single or _is_single(hint)]


def _is_single(hint: RawHint | None) -> bool:
    return hint is not None and hint[1] and (hint[0] is None or len(hint[0]) == 1)


def _is_forbidden(given: Mapping[str, Any], shared: masks.Mask) -> bool:
    """Whether an exclusive pod would share its zones."""
    if not wants_exclusion(given):
        return False
    states = [given["zone_states"][zone] for zone in masks.members(shared)]
    return states == ["shared"] if len(states) == 1 else "single" in states


def wants_exclusion(given: Mapping[str, Any]) -> bool:
    return given.get("exclusive") == "Required"


def _merge(given: Mapping[str, Any]) -> PolicyResult:
    rules = Rules(given["policy"], tuple(given["numa_nodes"]))
    return policies.merge([_offered(provider) for provider in given["providers"]], rules)


def _merged(case: Case) -> object:
    merged = _merge(case["input"])
    best = forms.hint(merged.best)
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
    unavailable = any(hints == [] for provider in given["providers"] for hints in (provider or {}).values())
    return unavailable or any(overlaps)


def _is_koordinators(case: Case) -> bool:
    """The recording equals the result of Koordinator's own merge."""
    merged, expect = answer(case["input"]), case["expect"]
    return all(expect[key] == merged[key] for key in merged) and bool(expect["reasons"]) is not merged["admit"]


NARROWER = DeliberateDifference(
    "koordinator-narrower",
    "where one resource wants fewer zones than another the kubelet keeps what they share",
    _is_given_up,
    _is_koordinators,
)
EXCLUSIVE = DeliberateDifference(
    "koordinator-exclusive",
    "a kubelet keeps no zones apart; in direct mode, where no hints are merged, suite tm.exclusive compares the rule",
    wants_exclusion,
    _is_koordinators,
)

SUITES: tuple[Suite, ...] = (Suite("tm.merge", _merged, _comparable, (NARROWER, EXCLUSIVE)),)
