"""What a campaign in direct mode is made of: the same seed, the same steps; every pod fits on each empty node."""

from __future__ import annotations

import random
from random import Random

import pytest

from numalign.api.decode import decode
from numalign.api.objects.pod import Pod
from numalign.lab.campaign import directscript
from numalign.lab.campaign.script import Create, Delete, Fault, Rest
from numalign.lab.spec import NodeSpec
from tests.unit.placement import choices
from tests.unit.placement.direct import clusters

NODES = directscript.nodes()
SECONDS = 600.0
STEPS = directscript.drawn(5, SECONDS, NODES)
RESTS = [step.at for step in STEPS if isinstance(step, Rest)]


def test_a_seed_always_draws_the_same_and_another_one_something_else() -> None:
    assert directscript.drawn(5, SECONDS, NODES) == STEPS
    assert directscript.drawn(6, SECONDS, NODES) != STEPS


def test_steps_are_in_the_order_of_time_and_end_with_a_rest() -> None:
    assert [step.at for step in STEPS] == sorted(step.at for step in STEPS)
    assert RESTS == [120.0, 240.0, 360.0, 480.0, 600.0]


def test_programs_run_again_before_the_next_rest_and_none_is_stopped_twice_at_once() -> None:
    back: dict[str, float] = {}
    faults = [step for step in STEPS if isinstance(step, Fault)]
    for fault in faults:
        assert back.get(fault.part, 0.0) < fault.at
        back[fault.part] = fault.at + fault.away
        assert back[fault.part] < next(rest for rest in RESTS if rest > fault.at)
    assert {fault.part.rpartition("/")[2] for fault in faults} >= {"agent", "containerd", "kubelet", "scheduler"}


def test_pods_are_deleted_after_they_were_created() -> None:
    created = {step.name: step.at for step in STEPS if isinstance(step, Create)}
    deleted = [step for step in STEPS if isinstance(step, Delete)]
    assert deleted
    assert all(step.at > created[step.name] for step in deleted)


@pytest.mark.parametrize("node", NODES, ids=lambda node: node.name)
def test_every_pod_fits_on_each_empty_node(node: NodeSpec) -> None:
    chances = random.Random(1)
    on = clusters.engine("n", cpus=len(NODES) * 16, machine=node.machine, settings=node.settings)
    for number in range(200):
        body = directscript.pod(f"p-{number}", chances)
        body["metadata"] |= {"uid": "u", "namespace": "default"}
        found = choices.chosen(on, decode.decode(Pod, body), Random(1))
        assert found.decision is not None, body
        on = clusters.engine("n", cpus=len(NODES) * 16, machine=node.machine, settings=node.settings)
