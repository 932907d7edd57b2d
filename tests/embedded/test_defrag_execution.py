"""Plans of moves are carried out on a cluster: no pod that is evicted stays without a place, whatever goes wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest

from tests.embedded import defragstories
from tests.embedded.defragstories import Told


def judged(seeds: Iterable[int], *, goes_wrong: bool, direct: bool = False) -> list[Told]:
    found = []
    for seed in seeds:
        told = defragstories.told(seed, goes_wrong=goes_wrong, direct=direct)
        assert (told.homeless, told.held) == ([], []), (seed, told)
        # The story deletes the ReplicaSets of strangers, whose pods then have no successors.
        assert all(move.node for move in told.ending.moves if "/stranger-" not in move.pod), (seed, told)
        found.append(told)
    return found


@pytest.mark.parametrize("direct", [False, True], ids=["predict mode", "direct mode"])
def test_a_plan_is_carried_out_as_it_was_made(direct: bool) -> None:
    for told in judged(range(8), goes_wrong=False, direct=direct):
        plan, ending = told.first, told.ending
        assert (ending.verdict == "done") == (plan.verdict == "found"), told
        assert ending.plans == (plan.verdict == "found"), told
        landed = [(move.pod, move.node, move.zones) for move in ending.moves]
        assert [pod for pod, _, _ in landed] == [each.pod for step in plan.steps for each in step.pods]
        assert [node for _, node, _ in landed] == [each.lands.node for step in plan.steps for each in step.pods]
        assert all(zones for _, _, zones in landed), "reports show the zones of every pod"


@pytest.mark.parametrize("direct", [False, True], ids=["predict mode", "direct mode"])
def test_no_evicted_pod_stays_without_a_place_when_everything_goes_wrong(direct: bool) -> None:
    told = judged(range(100, 115), goes_wrong=True, direct=direct)
    assert Counter(blow for each in told for blow in each.blows)


@pytest.mark.slow
@pytest.mark.parametrize("direct", [False, True], ids=["predict mode", "direct mode"])
def test_no_evicted_pod_stays_without_a_place_in_a_thousand_runs(direct: bool) -> None:
    told = judged(range(1_000, 2_000), goes_wrong=True, direct=direct)
    met = Counter(blow for each in told for blow in each.blows)
    assert set(met) == {"kill_scheduler", "stranger", "forbid", "cordon", "delete"}
    assert sum(each.resumed for each in told) > 100
    assert sum(each.ending.verdict == "done" for each in told) > 700


@pytest.mark.slow
def test_evictions_stay_near_the_least_that_any_plan_needs() -> None:
    """The bound holds where every sequence of moves is looked at, as on these few nodes."""
    told = [each for each in judged(range(2_000, 2_100), goes_wrong=False) if each.first.verdict == "found"]
    made, needed = sum(each.ending.evictions for each in told), sum(each.first.cost.at_least for each in told)
    assert made <= 1.2 * needed
