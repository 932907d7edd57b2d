"""From what zones hold to hints: which masks a resource offers, in which order, and which of them it prefers."""

from collections import Counter
from collections.abc import Mapping, Sequence

import pytest

from numalign.kubelet.topologymanager import mask as masks
from numalign.kubelet.topologymanager.hints import (
    DONT_CARE,
    UNSATISFIABLE,
    Groups,
    Hint,
    HintList,
    Room,
    SocketAlignment,
    Supply,
    best_for_memory,
)
from tests.nodes import hints, spelled

Spelled = list[tuple[tuple[int, ...], bool]]


def by_zone(amounts: Sequence[int]) -> dict[int, int]:
    return {1 << zone: amount for zone, amount in enumerate(amounts)}


def cpus(need: int, size: Sequence[int], free: Sequence[int], *, reused: Sequence[int] = ()) -> Room:
    """CPUs by zone; `reused` are the zones of CPUs that init containers left."""
    supply = Supply(need, by_zone(size), by_zone(free), held=len(reused))
    return Room(tuple(range(len(size))), (supply,), must_include=masks.of(reused))


def devices(
    need: int,
    free: Sequence[Sequence[int]],
    *,
    busy: Sequence[Sequence[int]] = (),
    reused: Sequence[Sequence[int]] = (),
) -> Room:
    """Devices by the zones they are attached to, on a machine of three zones."""
    size = Counter(map(masks.of, [*free, *busy, *filter(None, reused)]))
    supply = Supply(need, size, Counter(map(masks.of, free)), held=len(reused))
    return Room((0, 1, 2), (supply,), must_touch=tuple(map(masks.of, reused)))


def memory(*needs: tuple[int, Sequence[int], Sequence[int]], cells: Mapping[int, Sequence[int]] | None = None) -> Room:
    """Needs by size and free, one per type; `cells` are the groups of busy zones."""
    zones = tuple(range(len(needs[0][1])))
    bound = {zone: masks.of((cells or {}).get(zone, [zone])) for zone in zones}
    supplies = tuple(Supply(need, by_zone(size), by_zone(free)) for need, size, free in needs)
    return Room(zones, supplies, groups=Groups(masks.of(cells or ()), bound))


CPUS = {
    "every mask with enough free, in the kubelet's order": (
        cpus(2, size=(4, 4), free=(2, 3)),
        [((0,), True), ((1,), True), ((0, 1), False)],
    ),
    "a zone with too little free is in wider masks only": (
        cpus(3, size=(4, 4), free=(2, 3)),
        [((1,), True), ((0, 1), False)],
    ),
    "preferred is what the hardware could hold, not what is free": (
        cpus(3, size=(4, 4), free=(2, 2)),
        [((0, 1), False)],
    ),
    "more than any zone has: two zones are preferred": (cpus(6, size=(4, 4), free=(4, 3)), [((0, 1), True)]),
    "the largest zone decides how many are preferred": (cpus(5, size=(6, 2), free=(3, 2)), [((0, 1), False)]),
    "two large zones make two preferred, even where three are needed now": (
        cpus(7, size=(4, 4, 4), free=(3, 2, 2)),
        [((0, 1, 2), False)],
    ),
    "too little everywhere": (cpus(5, size=(4, 4), free=(2, 2)), []),
    "zones of reused CPUs have to be in the mask": (
        cpus(2, size=(4, 4), free=(3, 3), reused=[1]),
        [((1,), True), ((0, 1), False)],
    ),
    "reused CPUs count wherever the mask has room for the rest": (
        cpus(3, size=(4, 4), free=(0, 2), reused=[1]),
        [((1,), True), ((0, 1), False)],
    ),
    "CPUs reused in two zones leave only masks with both": (
        cpus(2, size=(4, 4), free=(2, 2), reused=[0, 1]),
        [((0, 1), False)],
    ),
}

DEVICES = {
    "a device in two zones touches each of them": (
        devices(1, free=[(0, 1)]),
        [((0,), True), ((1,), True), ((0, 1), False), ((0, 2), False), ((1, 2), False), ((0, 1, 2), False)],
    ),
    "it counts once in a mask with both": (
        devices(2, free=[(0, 1), (2,)]),
        [((0, 2), True), ((1, 2), True), ((0, 1, 2), False)],
    ),
    "a zone that both are attached to is enough": (
        devices(2, free=[(0, 1), (0,)]),
        [((0,), True), ((0, 1), False), ((0, 2), False), ((0, 1, 2), False)],
    ),
    "busy devices count for what is preferred": (
        devices(2, free=[(0,), (1,)], busy=[(2,), (2,)]),
        [((0, 1), False), ((0, 1, 2), False)],
    ),
    "a reused device has to be touched": (
        devices(1, free=[(0,)], reused=[(1,)]),
        [((1,), True), ((0, 1), False), ((1, 2), False), ((0, 1, 2), False)],
    ),
    "a reused device whose topology names no zone cannot be": (devices(1, free=[(0,)], reused=[()]), []),
}

MEMORY = {
    "left out where even empty zones would be too small": (
        memory((5, (4, 6), (4, 6))),
        [((1,), True), ((0, 1), False)],
    ),
    "every type has to fit": (
        memory((2, (4, 4), (4, 4)), (3, (0, 8), (0, 8))),
        [((1,), True), ((0, 1), False)],
    ),
    "types that fit only in different zones make both preferred": (
        memory((4, (4, 0), (4, 0)), (3, (0, 8), (0, 8))),
        [((0, 1), True)],
    ),
    "zones that are exactly large enough are preferred": (
        memory((4, (4, 0, 0), (4, 0, 0)), (3, (0, 3, 0), (0, 3, 0))),
        [((0, 1), True), ((0, 1, 2), False)],
    ),
    "a zone of a group is not offered on its own": (
        memory((2, (4, 4, 4), (4, 4, 4)), cells={0: (0, 1), 1: (0, 1)}),
        [((2,), True), ((0, 1), False)],
    ),
    "a zone that is used on its own is in no wider mask": (
        memory((2, (4, 4, 4), (4, 4, 4)), cells={0: (0,)}),
        [((0,), True), ((1,), True), ((2,), True), ((1, 2), False)],
    ),
    "preferred is what the hardware could hold, not what groups leave": (
        memory((2, (4, 4), (4, 4)), cells={0: (0, 1), 1: (0, 1)}),
        [((0, 1), False)],
    ),
}


@pytest.mark.parametrize("room, expected", CPUS.values(), ids=CPUS)
def test_what_is_offered_for_cpus(room: Room, expected: Spelled) -> None:
    assert spelled(room.hints()) == expected


@pytest.mark.parametrize("room, expected", DEVICES.values(), ids=DEVICES)
def test_what_is_offered_for_devices(room: Room, expected: Spelled) -> None:
    assert spelled(room.hints()) == expected


@pytest.mark.parametrize("room, expected", MEMORY.values(), ids=MEMORY)
def test_what_is_offered_for_memory(room: Room, expected: Spelled) -> None:
    assert spelled(room.hints()) == expected


def test_reusable_memory_counts_under_its_own_mask_only() -> None:
    supply = Supply(4, by_zone((4, 4)), by_zone((2, 1)), reusable={0b10: 3})
    assert spelled(Room((0, 1), (supply,)).hints()) == [((1,), True)]


@pytest.mark.parametrize(
    "sockets, preferred",
    [
        ({0: 1, 1: 1, 2: 2, 3: 2}, [(0,), (1,), (2,), (3,), (0, 1), (2, 3)]),
        ({0: 1, 1: 2, 2: 1, 3: 2}, [(0,), (1,), (2,), (3,), (0, 2), (1, 3)]),
    ],
    ids=["neighbours share a socket", "every other zone does"],
)
def test_align_by_socket_also_prefers_masks_within_one_socket(
    sockets: dict[int, int], preferred: list[tuple[int, ...]]
) -> None:
    supply = Supply(2, by_zone((4, 4, 4, 4)), by_zone((4, 4, 4, 4)))
    room = Room((0, 1, 2, 3), (supply,), alignment=SocketAlignment(sockets, zones_per_socket=2))
    assert [zones for zones, liked in spelled(room.hints()) if liked] == preferred


BEST = {
    "the narrowest preferred one": (hints(1, 0, (0, 1)), 0, Hint(0b01, True)),
    "a preferred one though another is narrower": (hints(0, (0, 1), preferred=2), 0, Hint(0b11, True)),
    "without a preferred one the narrowest": (hints((1, 2), (0, 3), preferred=1), 0, Hint(0b0110, False)),
    "only masks that include the one to be extended": (hints(0, (1, 2), (0, 1, 2)), 0b10, Hint(0b110, False)),
    "none that includes it": (hints(0, (0, 2)), 0b10, None),
}


@pytest.mark.parametrize("listed, including, best", BEST.values(), ids=BEST)
def test_memory_picks_among_its_own_hints(listed: HintList, including: int, best: Hint | None) -> None:
    assert best_for_memory(listed, including) == best


def test_a_hint_list_keeps_order_and_forgets_repetitions() -> None:
    listed = HintList.of([Hint(2, False), Hint(1, True), Hint(2, True), Hint(None, False)])
    assert list(listed) == [Hint(2, True), Hint(1, True), Hint(None, False)]
    assert (listed.count, listed.narrowest) == (3, 1)


@pytest.mark.parametrize("listed, flag", [(DONT_CARE, True), (UNSATISFIABLE, False)])
def test_having_no_opinion_and_being_impossible_are_lists_without_masks(listed: HintList, flag: bool) -> None:
    assert list(listed) == [Hint(None, flag)]
    assert listed.narrowest is None
