"""Rooms as the managers make them: where CPUs, memory or devices of a request may go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import strategies as st
from msgspec import structs

from numalign.kubelet.topologymanager import hints as topologyhints
from numalign.kubelet.topologymanager import mask as masks
from numalign.kubelet.topologymanager.hints import Groups, Room, SocketAlignment, Supply
from tests.strategies.kubelet import zone_ids


@contextmanager
def too_many_zones_to_list() -> Iterator[None]:
    """Treat every machine as one whose masks cannot be listed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(topologyhints, "LISTABLE", 0)
        topologyhints._smallest.cache_clear()
        yield
    topologyhints._smallest.cache_clear()


@st.composite
def supplies(draw: st.DrawFn, zones: tuple[int, ...]) -> Supply:
    size = {1 << zone: draw(st.integers(0, 6)) for zone in zones}
    free = {zone: draw(st.integers(0, amount)) for zone, amount in size.items()}
    return Supply(draw(st.integers(1, 14)), size, free)


@st.composite
def cpu_rooms(draw: st.DrawFn, max_zones: int = 6, aligned: bool = False) -> Room:
    """Some zones may hold CPUs that the pod's init containers left, which are not free for others."""
    zones = draw(zone_ids(max_zones))
    supply = draw(supplies(zones))
    spare = [zone for zone in zones if supply.size[1 << zone] > supply.free[1 << zone]]
    holding = draw(st.sets(st.sampled_from(spare), max_size=2)) if spare else set()
    return Room(
        zones,
        (structs.replace(supply, held=len(holding)),),
        must_include=masks.of(holding),
        alignment=draw(alignments(zones)) if aligned else None,
    )


@st.composite
def alignments(draw: st.DrawFn, zones: tuple[int, ...]) -> SocketAlignment:
    sockets = draw(st.integers(1, len(zones)))
    return SocketAlignment({zone: 1 << place % sockets for place, zone in enumerate(zones)}, len(zones) // sockets)


@st.composite
def device_rooms(draw: st.DrawFn, max_zones: int = 6) -> Room:
    """Devices in one or several zones, some of them left by the pod's init containers."""
    zones = draw(zone_ids(max_zones))
    places = st.sets(st.sampled_from(zones), min_size=1, max_size=3).map(masks.of)
    devices = draw(st.lists(st.tuples(places, st.sampled_from(("free", "busy", "reused"))), max_size=8))
    reused = [place for place, use in devices if use == "reused"]
    supply = Supply(
        need=draw(st.integers(1, 6)),
        size=Counter(place for place, _ in devices),
        free=Counter(place for place, use in devices if use == "free"),
        held=len(reused),
    )
    return Room(zones, (supply,), must_touch=tuple(reused))


@st.composite
def memory_rooms(draw: st.DrawFn, max_zones: int = 6) -> Room:
    """One or two types; zones idle, busy on their own or in a group; memory that init containers left in some mask."""
    zones = draw(zone_ids(max_zones))
    groups = draw(memory_groups(zones))
    places = st.one_of(
        st.sampled_from(sorted(groups.cells.values())), st.sets(st.sampled_from(zones), min_size=1).map(masks.of)
    )
    drawn = [draw(supplies(zones)) for _ in range(draw(st.integers(1, 2)))]
    leftovers = [draw(st.dictionaries(places, st.integers(0, 6), max_size=2)) for _ in drawn]
    return Room(
        zones,
        tuple(structs.replace(each, reusable=left) for each, left in zip(drawn, leftovers, strict=True)),
        groups=groups,
    )


@st.composite
def memory_groups(draw: st.DrawFn, zones: tuple[int, ...]) -> Groups:
    """Which zones are busy, and with which others; idle ones are groups of their own."""
    label = {zone: draw(st.integers(0, len(zones))) for zone in zones}
    busy = masks.of(zone for zone in zones if label[zone])
    cells = {
        zone: masks.of(other for other in zones if label[other] == label[zone]) if label[zone] else 1 << zone
        for zone in zones
    }
    return Groups(busy, cells)
