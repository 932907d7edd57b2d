"""Which devices a plugin of each policy would like to hand out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.agent.deviceplugin import offer
from numalign.agent.deviceplugin.offer import POLICIES, Policy
from numalign.kubelet.device import Preference

ZONES: dict[str, tuple[int, ...] | None] = {
    "a0": (0,), "a1": (0,), "a2": (0,), "b0": (1,), "b1": (1,), "c0": (2,), "s0": (0, 1), "x0": None, "x1": (),
}  # fmt: skip

CASES: dict[str, tuple[Policy, str, str, int, str]] = {
    "lowest takes the first": ("lowest", "b1 b0 a2 a1", "", 2, "a1 a2"),
    "lowest keeps what it must": ("lowest", "a0 a1 b1", "b1", 2, "a0 b1"),
    "packed fills the zone that is just enough": ("packed", "a0 a1 a2 b0 b1", "", 2, "b0 b1"),
    "packed stays where something must be": ("packed", "a0 a1 b0 b1 c0", "a0", 2, "a0 a1"),
    "packed takes the largest zone first where none is enough": ("packed", "a0 a1 a2 b0 b1 c0", "", 4, "a0 a1 a2 c0"),
    "packed takes what has no zone last": ("packed", "a0 x0 x1", "", 2, "a0 x0"),
    "packed counts a device on two zones in both": ("packed", "a0 b0 s0", "", 2, "a0 s0"),
    "spread takes one of each zone": ("spread", "a0 a1 a2 b0 b1 c0", "", 3, "a0 b0 c0"),
    "spread goes round again where most is left": ("spread", "a0 a1 a2 b0 b1", "", 3, "a0 a1 b0"),
    "spread counts what it must": ("spread", "a0 a1 b0", "a0", 2, "a0 b0"),
    "not enough is all there is": ("packed", "a0 b0", "", 5, "a0 b0"),
    "none asked for": ("spread", "a0 b0", "", 0, ""),
}


def ids(text: str) -> frozenset[str]:
    return frozenset(text.split())


@pytest.mark.parametrize("policy, available, needed, size, chosen", CASES.values(), ids=CASES)
def test_choice(policy: Policy, available: str, needed: str, size: int, chosen: str) -> None:
    asked = Preference("r", ids(available), ids(needed), size)
    assert offer.preferred(policy, asked, ZONES) == ids(chosen)


@given(st.sampled_from(POLICIES), st.sets(st.sampled_from(sorted(ZONES)), min_size=1), st.data())
def test_a_choice_is_of_the_size_and_has_what_it_must(policy: Policy, available: set[str], data: st.DataObject) -> None:
    needed = data.draw(st.sets(st.sampled_from(sorted(available))))
    size = data.draw(st.integers(len(needed), len(available)))
    asked = Preference("r", frozenset(available), frozenset(needed), size)
    chosen = offer.preferred(policy, asked, ZONES)
    assert needed <= chosen <= available
    assert len(chosen) == size


@given(st.sets(st.sampled_from(["a0", "a1", "a2", "b0", "b1", "c0"]), min_size=1), st.data())
def test_packed_needs_one_zone_where_one_has_enough(available: set[str], data: st.DataObject) -> None:
    largest = max(sum(each[0] == zone for each in available) for zone in "abc")
    asked = Preference("r", frozenset(available), frozenset(), data.draw(st.integers(1, largest)))
    assert len({ZONES[each] for each in offer.preferred("packed", asked, ZONES)}) == 1
