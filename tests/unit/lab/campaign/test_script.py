"""What a campaign is made of: the same seed, the same pods and faults; every pod can run somewhere."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest

from numalign.lab.campaign import script
from numalign.lab.campaign.script import (
    Create,
    Delete,
    DeleteReports,
    Drain,
    Fault,
    Join,
    Leave,
    Operation,
    Rest,
    RollOut,
    Step,
)

NODES = script.nodes()
SECONDS = 600.0
STEPS = script.drawn(5, SECONDS, NODES)
FAULTS = [step for step in STEPS if isinstance(step, Fault)]
RESTS = [step.at for step in STEPS if isinstance(step, Rest)]


def test_a_seed_always_draws_the_same_and_another_one_something_else() -> None:
    assert script.drawn(5, SECONDS, NODES) == STEPS
    assert script.drawn(6, SECONDS, NODES) != STEPS


def test_steps_are_in_the_order_of_time_and_end_with_a_rest() -> None:
    assert [step.at for step in STEPS] == sorted(step.at for step in STEPS)
    assert RESTS == [120.0, 240.0, 360.0, 480.0, 600.0]


@pytest.mark.parametrize("seconds, rests", [(30.0, [30.0]), (140.0, [140.0]), (200.0, [120.0, 200.0])])
def test_short_campaigns_have_one_rest_at_their_end(seconds: float, rests: list[float]) -> None:
    assert [step.at for step in script.drawn(1, seconds, NODES) if isinstance(step, Rest)] == rests


def test_every_pod_fits_on_some_empty_node() -> None:
    for step in STEPS:
        if isinstance(step, Create):
            home = step.body["spec"].get("nodeSelector", {}).get("kubernetes.io/hostname")
            assert any(script.fits(node, step.body) for node in NODES if home in (None, node.name)), step.name


def test_pods_are_deleted_after_they_were_made_and_some_stay() -> None:
    made = {step.name: step.at for step in STEPS if isinstance(step, Create)}
    deleted = {step.name: step.at for step in STEPS if isinstance(step, Delete)}
    assert all(made[name] <= at for name, at in deleted.items())
    assert 0 < len(deleted) < len(made)


def test_nothing_is_taken_away_twice_at_once_and_all_is_back_before_a_rest() -> None:
    back: dict[str, float] = {}
    for fault in FAULTS:
        rest = next(at for at in RESTS if at > fault.at)
        assert back.get(fault.part, 0.0) <= fault.at
        assert fault.at + fault.away < rest
        back[fault.part] = fault.at + fault.away


def test_an_hour_takes_every_program_away_in_every_way() -> None:
    hour = script.drawn(1, 3600.0, NODES)
    done = {(step.part.rpartition("/")[2], step.how) for step in hour if isinstance(step, Fault)}
    programs = ("kubelet", "agent", "device-plugin", "kube-apiserver", *script.SCHEDULERS)
    assert done == {(program, how) for program in programs for how in ("kill", "end", "hang")}


def operations(steps: Sequence[Step]) -> list[Operation]:
    return [step for step in steps if isinstance(step, DeleteReports | RollOut | Drain | Join | Leave)]


@pytest.mark.parametrize("moving", [True, False], ids=["joins and leaves", "others"])
def test_operations_come_one_after_the_other_and_are_over_before_a_rest(moving: bool) -> None:
    last = 0.0
    for each in [each for each in operations(STEPS) if isinstance(each, Join | Leave) is moving]:
        assert last <= each.at
        last = each.at + each.lasts
        assert last < next(at for at in RESTS if at > each.at)


def test_a_node_joins_before_it_leaves_and_not_twice() -> None:
    moves = [type(each) for each in operations(script.drawn(1, 3600.0, NODES)) if isinstance(each, Join | Leave)]
    assert moves[:4] == [Join, Leave, Join, Leave]
    assert all(one is not other for one, other in pairwise(moves))


@pytest.mark.parametrize("seed", range(5))
def test_a_short_campaign_has_every_operation(seed: int) -> None:
    done = {type(each) for each in operations(script.drawn(seed, 180.0, NODES))}
    assert done == {DeleteReports, RollOut, Drain, Join, Leave}


def test_an_hour_has_every_operation() -> None:
    hour = operations(script.drawn(1, 3600.0, NODES))
    assert {type(each) for each in hour} == {DeleteReports, RollOut, Drain, Join, Leave}
    deleted = {each.node for each in hour if isinstance(each, DeleteReports)}
    drained = {each.node for each in hour if isinstance(each, Drain)}
    assert deleted == {"", *drained} == {"", *(node.name for node in NODES)}


def test_an_hour_has_pods_of_every_priority() -> None:
    bodies = [step.body for step in script.drawn(1, 3600.0, NODES) if isinstance(step, Create)]
    assert {body["spec"].get("priorityClassName") for body in bodies} == {None, *script.PRIORITIES}


def test_an_hour_has_pods_of_every_sort() -> None:
    bodies = [step.body for step in script.drawn(1, 3600.0, NODES) if isinstance(step, Create)]
    asked = {name for body in bodies for each in body["spec"]["containers"] for name in _requests(each)}
    assert asked == {"cpu", "memory", script.GPU, script.NIC, script.PAGES}
    assert any(not _requests(body["spec"]["containers"][0]) for body in bodies)
    assert {each["name"] for body in bodies for each in body["spec"].get("initContainers", ())} == {
        "before-0",
        "before-1",
        "sidecar",
    }


def _requests(container: dict[str, dict[str, dict[str, str]]]) -> dict[str, str]:
    return container["resources"].get("requests", {})
