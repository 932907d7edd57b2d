"""On machines with too many zones to list masks, answers are the same as if they had been listed."""

from hypothesis import assume
from hypothesis import strategies as st

from numalign.kubelet.topologymanager import mask as masks
from numalign.kubelet.topologymanager.hints import HintList, Room, UnlistedHints, best_for_memory
from numalign.kubelet.topologymanager.mask import Mask
from tests.campaigns import holds_for
from tests.strategies.lives import Life, Moment, lives
from tests.strategies.rooms import cpu_rooms, device_rooms, memory_rooms, too_many_zones_to_list

ROOMS = st.one_of(cpu_rooms(), cpu_rooms(aligned=True), device_rooms(), memory_rooms())
PARTS = st.integers(0, (1 << 32) - 1)
"""Any zones, to be cut to those of a machine."""


def both(room: Room) -> tuple[HintList, UnlistedHints]:
    listed = room.hints()
    with too_many_zones_to_list():
        unlisted = Room(**{name: getattr(room, name) for name in Room.__struct_fields__}).hints()
        assert isinstance(unlisted, UnlistedHints)
        assert unlisted.room.smallest == room.smallest
    assert isinstance(listed, HintList)
    return listed, unlisted


@holds_for(ROOMS, examples=150)
def test_the_same_masks_are_preferred(room: Room) -> None:
    listed, unlisted = both(room)
    for mask, _ in masks.enumerated(room.zones):
        assert unlisted.prefers(mask) == listed.prefers(mask)


@holds_for(ROOMS, examples=100)
def test_a_mask_with_a_strange_zone_is_not_preferred(room: Room) -> None:
    beyond = 1 << room.zones[-1] + 1
    assert not any(hints.prefers(mask | beyond) for hints in both(room) for mask in (0, room.domain))


@holds_for(ROOMS, examples=100)
def test_the_narrowest_mask_is_as_narrow(room: Room) -> None:
    listed, unlisted = both(room)
    assert unlisted.narrowest == listed.narrowest


@holds_for(ROOMS, PARTS, examples=150)
def test_cut_to_some_zones_the_same_parts_are_left(room: Room, part: Mask) -> None:
    listed, unlisted = both(room)
    assert unlisted.cut_to(part & room.domain) == {mask & part & room.domain for mask in listed.masks}


@holds_for(memory_rooms(), PARTS, examples=150)
def test_memory_finds_the_same_best_hint(room: Room, part: Mask) -> None:
    listed, unlisted = both(room)
    assert best_for_memory(unlisted) == best_for_memory(listed)
    including = part & room.domain
    assert best_for_memory(unlisted, including) == best_for_memory(listed, including)


@holds_for(ROOMS, examples=100)
def test_what_the_kubelet_would_enumerate_is_counted(room: Room) -> None:
    listed, unlisted = both(room)
    assert listed.count <= unlisted.count == (1 << len(room.zones)) - 1


def answers(moment: Moment) -> list[tuple[object, ...]]:
    """All but the hints offered, which are in another form."""
    return [(each.verdict, each.reason, each.message, each.placement) for each in moment.outcomes.values()]


@holds_for(lives(pod_level=True), examples=50)
def test_a_node_lives_the_same_life(life: Life) -> None:
    """With align-by-socket alone, larger machines may be left undecided."""
    listed = list(life.moments())
    with too_many_zones_to_list():
        unlisted = list(life.moments())
    undecided = any(each.verdict == "undecided" for moment in unlisted for each in moment.outcomes.values())
    assume(not (undecided and "align-by-socket" in life.kubelet.settings.cpu_options))
    assert [moment.state for moment in unlisted] == [moment.state for moment in listed]
    assert [answers(moment) for moment in unlisted] == [answers(moment) for moment in listed]
