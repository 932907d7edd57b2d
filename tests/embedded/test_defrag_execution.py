"""Plans of moves are carried out on a cluster: no pod that is evicted stays without a place, whatever goes wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest

from tests.embedded import defragstories
from tests.embedded.defragstories import Told


def judged(seeds: Iterable[int], *, goes_wrong: bool) -> list[Told]:
    found = []
    for seed in seeds:
        told = defragstories.told(seed, goes_wrong=goes_wrong)
        assert (told.homeless, told.held) == ([], []), (seed, told)
        assert all(move.node for move in told.ending.moves), (seed, told)
        found.append(told)
    return found


def test_a_plan_is_carried_out_as_it_was_made() -> None:
    for told in judged(range(8), goes_wrong=False):
        plan, ending = told.first, told.ending
        assert (ending.verdict == "done") == (plan.verdict == "found"), told
        landed = [(move.pod, move.node, move.zones) for move in ending.moves]
        assert [pod for pod, _, _ in landed] == [each.pod for step in plan.steps for each in step.pods]
        assert [node for _, node, _ in landed] == [each.lands.node for step in plan.steps for each in step.pods]
        assert all(zones for _, _, zones in landed), "reports show the zones of every pod"


def test_no_evicted_pod_stays_without_a_place_when_everything_goes_wrong() -> None:
    met = Counter(blow for told in judged(range(100, 115), goes_wrong=True) for blow in told.blows)
    assert met


@pytest.mark.slow
def test_no_evicted_pod_stays_without_a_place_in_a_thousand_runs() -> None:
    told = judged(range(1_000, 2_000), goes_wrong=True)
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
