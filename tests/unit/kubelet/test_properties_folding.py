"""Which intersections the lists can reach: pair by pair, by superset sums, or by the definition, it is one set."""

from collections.abc import Set
from functools import reduce
from itertools import product
from operator import and_
from typing import NamedTuple

from hypothesis import strategies as st

from numalign.kubelet.topologymanager import mask as masks
from numalign.kubelet.topologymanager import merge
from numalign.kubelet.topologymanager.hints import Hint, HintList
from numalign.kubelet.topologymanager.mask import Mask
from tests.campaigns import holds_for
from tests.strategies.kubelet import zone_ids


class Lists(NamedTuple):
    """Sets of masks over some zones."""

    zones: tuple[int, ...]
    options: list[Set[Mask]]

    def intersections(self) -> Set[Mask]:
        """Pair by pair, without a limit."""
        return reduce(lambda reached, more: {one & other for one in reached for other in more}, self.options)


@st.composite
def lists(draw: st.DrawFn, max_zones: int, max_lists: int, max_masks: int = 20) -> Lists:
    zones = draw(zone_ids(max_zones))
    dense = st.integers(0, (1 << len(zones)) - 1)
    options = st.sets(
        dense.map(lambda index: masks.of(zones[place] for place in masks.members(index))),
        min_size=1,
        max_size=max_masks,
    )
    return Lists(zones, draw(st.lists(options, min_size=1, max_size=max_lists)))


@holds_for(lists(max_zones=6, max_lists=14), examples=100)
def test_superset_sums_reach_the_same_masks_as_pairs(case: Lists) -> None:
    assert merge._folded_by_sums(case.options, case.zones) == case.intersections()


@holds_for(lists(max_zones=8, max_lists=4, max_masks=60), examples=60)
def test_folding_changes_from_pairs_to_sums_without_a_trace(case: Lists) -> None:
    assert merge._folded(case.options, case.zones) == case.intersections()


@holds_for(lists(max_zones=4, max_lists=4, max_masks=6), examples=100)
def test_a_mask_is_reachable_if_it_is_the_intersection_of_one_hint_from_each_list(case: Lists) -> None:
    hints = [HintList.of(Hint(mask, preferred=False) for mask in each if mask) for each in case.options]
    permutations = product(*(each.masks for each in hints))
    expected = {reduce(and_, permutation, masks.of(case.zones)) for permutation in permutations}
    assert merge.reachable(hints, case.zones) == expected
