"""Koordinator's own merge of hints (Koordinator spec 8.2 to 8.6), without scores.

`koordinator` uses it to check that a deliberate difference shows exactly Koordinator's result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import product
from operator import and_
from typing import Any, NamedTuple

from numalign.kubelet import mask as masks

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
