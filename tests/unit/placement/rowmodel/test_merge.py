"""From lists to masks: who agrees on what, and what may still turn out."""

from collections.abc import Collection

import pytest
from msgspec import structs

from numalign.placement.columns.noderules import NodeRules
from numalign.placement.rowmodel import merge
from numalign.placement.rowmodel.causes import Cause, Refuses, Unsure, Want
from numalign.placement.rowmodel.merge import Alignment, Listing

RULES = NodeRules(zones=(0, 1, 2), policy="restricted")
BEST_EFFORT = structs.replace(RULES, policy="best-effort")
SINGLE = structs.replace(RULES, policy="single-numa-node")
A, B, C, AB, AC, BC, ABC = 1, 2, 4, 3, 5, 6, 7


def listing(*room: int, smallest: int = 1, maybe: Collection[int] | None = None, **more: object) -> Listing:
    """Masks that have room, and where that is not all that is known, those that may."""

    def certain(mask: int) -> bool:
        return mask in room

    def possible(mask: int) -> bool:
        return mask in room or mask in (maybe or ())

    return Listing(
        wants=lambda: (Want(0, 1, smallest, ()),),
        domain=ABC,
        smallest=smallest,
        certain=certain,
        possible=certain if maybe is None else possible,
        **more,  # type: ignore[arg-type]
    )


AGREED = {
    "the lowest zone with room for all": ((listing(A, B), listing(B, C)), B),
    "masks of one size must be the same, not overlap": ((listing(AB, smallest=2), listing(AB, BC, smallest=2)), AB),
    "room in wider masks does not count": ((listing(B, AB, ABC), listing(B)), B),
    "memory without room anywhere takes no part": ((listing(C), listing(drops_out=True)), C),
}


@pytest.mark.parametrize("listings, mask", AGREED.values(), ids=AGREED)
def test_the_first_mask_that_everybody_prefers_wins(listings: tuple[Listing, ...], mask: int) -> None:
    assert merge.merged(listings, RULES).masks == (mask,)


REFUSED = {
    "no zone has room for both": ((listing(A), listing(B)), Cause.NO_COMMON_ZONES),
    "one needs two zones, the other one": ((listing(A, AB), listing(AB, smallest=2)), Cause.DIFFERENT_ZONE_COUNTS),
    "nothing has room": ((listing(),), Cause.NO_COMMON_ZONES),
    "memory with room elsewhere": ((listing(A), listing(B, drops_out=True)), Cause.NO_COMMON_ZONES),
}


@pytest.mark.parametrize("listings, cause", REFUSED.values(), ids=REFUSED)
def test_without_a_common_mask_the_pod_is_refused(listings: tuple[Listing, ...], cause: Cause) -> None:
    with pytest.raises(Refuses) as refused:
        merge.merged(listings, RULES)
    assert refused.value.cause is cause


def test_a_mask_that_may_have_room_and_ranks_before_is_possible_too() -> None:
    assert merge.merged([listing(C, maybe={A})], RULES).masks == (A, C)


def test_a_mask_that_may_have_room_and_ranks_after_is_not() -> None:
    assert merge.merged([listing(B, maybe={C})], RULES).masks == (B,)


def test_where_room_is_not_certain_the_answer_is_not() -> None:
    with pytest.raises(Unsure):
        merge.merged([listing(maybe={A})], RULES)


def test_memory_that_may_take_no_part_leaves_the_answer_open() -> None:
    with pytest.raises(Unsure):
        merge.merged([listing(A), listing(maybe={B}, drops_out=True)], RULES)


def test_a_size_that_is_not_known_matters_only_where_several_zones_may_be_preferred() -> None:
    doubtful = listing(A, size_unknown=True)
    assert merge.merged([doubtful], SINGLE).masks == (A,)
    with pytest.raises(Unsure):
        merge.merged([doubtful], RULES)


def test_best_effort_falls_back_on_the_intersection_of_what_there_is() -> None:
    alignment = merge.merged([listing(AB, ABC), listing(BC, ABC)], BEST_EFFORT)
    assert (alignment.masks, alignment.preferred) == ((AB,), False)


def test_best_effort_on_vague_amounts_may_end_anywhere() -> None:
    alignment = merge.merged([listing(AB, maybe={A})], BEST_EFFORT)
    assert (alignment.masks, alignment.known) == ((ABC,), False)


NOTHING = {"single-numa-node": (SINGLE, ()), "restricted": (RULES, (ABC,)), "best-effort": (BEST_EFFORT, (ABC,))}


@pytest.mark.parametrize("rules, masks", NOTHING.values(), ids=NOTHING)
def test_without_lists_every_zone_will_do(rules: NodeRules, masks: tuple[int, ...]) -> None:
    assert merge.merged([], rules) == Alignment(masks, preferred=True)


def test_on_a_machine_of_one_zone_any_zone_is_stored() -> None:
    lone = NodeRules(zones=(3,), policy="single-numa-node")
    assert merge.merged([structs.replace(listing(A), domain=A)], lone).masks == ()


def test_closer_zones_rank_first_where_the_node_asks_for_it() -> None:
    far = structs.replace(RULES, distances=((10, 30, 12), (30, 10, 30), (12, 30, 10)))
    assert merge.merged([listing(AB, AC, smallest=2)], RULES).masks == (AB,)
    assert merge.merged([listing(AB, AC, smallest=2)], far).masks == (AC,)


def test_masks_that_an_option_prefers_besides_count_as_preferred() -> None:
    aligned = listing(AB, smallest=1, also_prefers=lambda mask: mask == AB)
    assert merge.merged([aligned], RULES).masks == (AB,)


def test_machines_too_large_to_search_are_not_decided() -> None:
    large = NodeRules(zones=tuple(range(40)), policy="restricted")
    with pytest.raises(Unsure) as unsure:
        merge.merged([listing(smallest=20)], large)
    assert unsure.value.cause is Cause.MANY_ZONES


def test_the_mask_that_serves_most_came_closest() -> None:
    with pytest.raises(Refuses) as refused:
        merge.merged([listing(A, B), listing(B), listing(C)], RULES)
    assert refused.value.best == B
