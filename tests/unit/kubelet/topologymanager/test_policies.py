"""What each policy of the topology manager admits (kubelet spec 3.5)."""

from typing import Any

import pytest

from numalign.kubelet.refusals import Undecided
from numalign.kubelet.settings import TopologyPolicy
from numalign.kubelet.topologymanager import mask as masks
from numalign.kubelet.topologymanager import policies
from numalign.kubelet.topologymanager.hints import Hint, HintList
from numalign.kubelet.topologymanager.merge import HintMap, Rules
from numalign.kubelet.topologymanager.policies import PolicyResult
from tests.nodes import hints

NOTHING, IMPOSSIBLE = None, HintList()
FOUR = (0, 1, 2, 3)


def merged(policy: TopologyPolicy, *providers: HintMap | None, zones: tuple[int, ...] = FOUR) -> PolicyResult:
    return policies.merge(providers, Rules(policy, zones))


def spelled(hint: Hint | None) -> tuple[tuple[int, ...] | None, bool] | None:
    if hint is None:
        return None
    return None if hint.mask is None else masks.members(hint.mask), hint.preferred


# What is merged: best-effort's answer; what restricted admits; what single-numa-node admits.
POLICIES: dict[str, tuple[list[HintMap | None], Any, Any, Any]] = {
    "no providers at all": ([], (FOUR, True), (FOUR, True), (None, True)),
    "nobody has an opinion": ([None, {}, {"a": NOTHING}], (FOUR, True), (FOUR, True), (None, True)),
    "all agree on one zone": ([{"a": hints(0, 1)}, {"b": hints(1, 2)}], ((1,), True), ((1,), True), ((1,), True)),
    "the lowest of several": ([{"a": hints(1, 2)}, {"b": hints(1, 2)}], ((1,), True), ((1,), True), ((1,), True)),
    "overlapping is not agreeing": ([{"a": hints((0, 1))}, {"b": hints(0)}], ((0,), False), None, None),
    "two zones that both prefer": (
        [{"a": hints((0, 1), (1, 2))}, {"b": hints((1, 2))}],
        ((1, 2), True),
        ((1, 2), True),
        None,
    ),
    "one is impossible, the other has a wish": ([{"a": IMPOSSIBLE}, {"b": hints(1)}], ((1,), False), None, None),
    "all are impossible": ([{"a": IMPOSSIBLE}], (FOUR, False), None, None),
    "nothing in common": ([{"a": hints(0)}, {"b": hints(1)}], (FOUR, False), None, None),
    "a hint that is not preferred by its resource": ([{"a": hints(0, preferred=2)}], ((0,), False), None, None),
    "resources of one provider are merged like any others": (
        [{"a": hints(0, 1), "b": hints(1)}],
        ((1,), True),
        ((1,), True),
        ((1,), True),
    ),
}


@pytest.mark.parametrize("providers, best_effort, restricted, single", POLICIES.values(), ids=POLICIES)
def test_what_each_policy_makes_of_it(
    providers: list[HintMap | None], best_effort: object, restricted: object, single: object
) -> None:
    assert spelled(merged("best-effort", *providers).admitted) == best_effort
    assert spelled(merged("restricted", *providers).admitted) == restricted
    assert spelled(merged("single-numa-node", *providers).admitted) == single


def test_policy_none_looks_at_nothing() -> None:
    ignored = merged("none", {"a": hints(0)})
    assert (ignored.admitted, ignored.permutations) == (Hint(None, False), 0)


NOT_PREFERRED = {
    "as wide as the widest of the narrowest": ([hints((0, 1), preferred=1), hints(0, 1, (0, 1), (0, 1, 2))], (0, 1)),
    "narrower rather than wider": (
        [hints((0, 1), (1, 2, 3), preferred=1), hints((0, 2), (1, 2, 3), preferred=1)],
        (0,),
    ),
    "of narrower ones the widest": ([hints((0, 1, 2), preferred=1), hints((1, 2, 3), (2, 3), preferred=1)], (1, 2)),
    "by value, not in the order of the lists": ([hints((0, 3), (1, 2), preferred=1)], (1, 2)),
}


@pytest.mark.parametrize("lists, best", NOT_PREFERRED.values(), ids=NOT_PREFERRED)
def test_without_agreement_the_mask_comes_close_to_what_the_neediest_wants(
    lists: list[HintList], best: tuple[int, ...]
) -> None:
    assert spelled(merged("best-effort", *({"r": each} for each in lists)).best) == (best, False)


SINGLE = {
    "preferred hints of several zones do not count": ([hints((0, 1))], FOUR, None),
    "of the preferred ones only single zones are kept": ([HintList((1, 3), frozenset({1, 3}))], FOUR, ((0,), True)),
    "single zones that are not preferred do not count": ([hints(0, preferred=2)], FOUR, None),
    "the only zone of a machine is stored as any zone": ([hints(5)], (5,), (None, True)),
}


@pytest.mark.parametrize("lists, zones, admitted", SINGLE.values(), ids=SINGLE)
def test_single_numa_node_looks_at_preferred_single_zones_only(
    lists: list[HintList], zones: tuple[int, ...], admitted: object
) -> None:
    assert spelled(merged("single-numa-node", *({"r": each} for each in lists), zones=zones).admitted) == admitted


@pytest.mark.parametrize(
    "policy, best", [("restricted", (FOUR, False)), ("single-numa-node", (None, False)), ("best-effort", (FOUR, False))]
)
def test_the_best_hint_is_reported_even_where_it_is_refused(policy: TopologyPolicy, best: object) -> None:
    assert spelled(merged(policy, {"a": hints(0)}, {"b": hints(1)}).best) == best


# 0 and 1 are far apart, 2 and 3 close; 0-2 and 1-3 the same.
DISTANCES = {0: (10, 40, 20, 30), 1: (40, 10, 30, 20), 2: (20, 30, 10, 12), 3: (30, 20, 12, 10)}
PAIRS = hints((0, 1), (0, 2), (0, 3), (1, 3), (2, 3))


@pytest.mark.parametrize(
    "listed, policy, best",
    [
        (PAIRS, "best-effort", (2, 3)),
        (PAIRS, "restricted", (2, 3)),
        (hints((0, 1), (1, 3), (0, 2)), "restricted", (0, 2)),
        (hints((0, 1), (2,), preferred=1), "restricted", (2,)),
        (hints(3, 1), "single-numa-node", (1,)),
    ],
    ids=[
        "the closest pair",
        "for restricted too",
        "by value where equally close",
        "fewer zones before closer",
        "no say",
    ],
)
def test_prefer_closest_takes_the_zones_that_are_close(listed: HintList, policy: TopologyPolicy, best: object) -> None:
    found = policies.merge([{"r": listed}], Rules(policy, FOUR, DISTANCES)).best
    assert spelled(found) == (best, True)


def test_without_the_option_distances_do_not_matter() -> None:
    assert spelled(merged("restricted", {"r": PAIRS}).best) == ((0, 1), True)


def test_distances_are_looked_up_by_zone_id_which_crashes_the_kubelet_where_ids_have_gaps() -> None:
    rules = Rules("best-effort", (0, 2), {0: (10, 20), 2: (20, 10)})
    with pytest.raises(Undecided, match="crashes on ids with gaps"):
        _ = policies.merge([{"r": hints((0, 2))}], rules).admitted


def test_the_kubelet_walks_every_combination_of_hints() -> None:
    three, two = hints(0, 1, (0, 1)), hints(0, 1)
    assert merged("restricted", {"a": three, "b": two}, None, {"c": IMPOSSIBLE}).permutations == 3 * 2
