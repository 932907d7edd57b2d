"""Which devices a plugin would like the kubelet to hand out, by policy.

`deviceplugin` answers GetPreferredAllocation with it. `lowest` is what the kubelet model assumes of a plugin that is
asked. Pure; equal choices go to the lower zone and the lower id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from typing import Final, Literal

from numalign.kubelet import device
from numalign.kubelet.device import Ids, Preference

Policy = Literal["none", "lowest", "packed", "spread"]
POLICIES: Final[tuple[Policy, ...]] = ("none", "lowest", "packed", "spread")
NOWHERE: Final = 1 << 16
"""Stands for the zone of devices without one, and comes after all others."""

Zones = Mapping[str, tuple[int, ...] | None]


def preferred(policy: Policy, asked: Preference, zones: Zones) -> Ids:
    """As many as asked for, what must be included first; less where there are not enough."""
    if policy == "packed":
        return _packed(asked, zones)
    return _spread(asked, zones) if policy == "spread" else device.lowest_ids(asked)


def _packed(asked: Preference, zones: Zones) -> Ids:
    """As few zones as possible: those in use already, then the fullest that has enough, then the emptiest."""
    chosen, free = set(asked.must_include), set(asked.available - asked.must_include)
    while free and (missing := asked.size - len(chosen)) > 0:
        zone = _tightest(missing, set(_zones_of(chosen, zones)), Counter(_zones_of(free, zones)))
        taken = sorted(each for each in free if zone in _places(each, zones))[:missing]
        chosen.update(taken)
        free.difference_update(taken)
    return frozenset(chosen)


def _tightest(missing: int, used: Container[int], left: Counter[int]) -> int:
    def rank(zone: int) -> tuple[int, ...]:
        enough = left[zone] >= missing
        return zone == NOWHERE, zone not in used, not enough, left[zone] if enough else -left[zone], zone

    return min(left, key=rank)


def _spread(asked: Preference, zones: Zones) -> Ids:
    """One after the other, from the zone that gave the fewest so far and of these has the most left."""
    chosen, free = set(asked.must_include), set(asked.available - asked.must_include)
    while free and len(chosen) < asked.size:
        given, left = Counter(_zones_of(chosen, zones)), Counter(_zones_of(free, zones))
        zone = min(left, key=lambda zone: (given[zone], -left[zone], zone))
        taken = min(each for each in free if zone in _places(each, zones))
        chosen.add(taken)
        free.remove(taken)
    return frozenset(chosen)


def _zones_of(ids: Iterable[str], zones: Zones) -> Iterable[int]:
    return (zone for each in ids for zone in _places(each, zones))


def _places(each: str, zones: Zones) -> tuple[int, ...]:
    return zones.get(each) or (NOWHERE,)
