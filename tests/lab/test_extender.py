"""kube-scheduler with our extender on real kubelets: no kubelet rejects a pod, also where the extender is killed.

The same loads are rejected in part if kube-scheduler is alone (`test_placing`). The whole matrix is slow."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from functools import partial

import pytest

from numalign.api.objects.pod import DEFAULT_SCHEDULER, Pod
from numalign.lab.schedulers import EXTENDER
from numalign.lab.spec import LabSpec
from tests.lab import fleet, loads
from tests.lab.labs import Labs
from tests.lab.live import Live
from tests.lab.sight import Sight

KILLS = 3
KINDS = ["all", *(pytest.param(kind, marks=pytest.mark.slow) for kind in fleet.KINDS if kind != "all")]


@pytest.fixture
def extended(labs: Labs, kind: str) -> Iterator[Live]:
    """Nodes of one kind, under every policy and scope; the quick tier has those that reject pods."""
    strict = kind == "all"
    nodes = tuple(node for node in fleet.of_kind(kind) if not strict or node.settings.topology_policy in fleet.STRICT)
    live = labs.of(LabSpec(name=f"ext-{kind}-{os.getpid()}", nodes=nodes, agent=True, scheduler=True, extender=True))
    live.clear()
    yield live
    live.clear()


@pytest.mark.parametrize("kind", KINDS)
def test_no_kubelet_rejects_a_pod_that_came_through_the_extender(extended: Live) -> None:
    assert extended.run(loads.rejected(extended, extended.lab.nodes, DEFAULT_SCHEDULER)) == []


@pytest.mark.parametrize("kind", ["all"])
def test_no_pod_is_rejected_or_lost_where_the_extender_is_killed_under_load(extended: Live) -> None:
    async def story() -> tuple[list[str], list[str]]:
        nodes = [extended.node(name) for name in extended.lab.nodes]
        async with Sight.of(extended.client) as sight:
            sending = asyncio.gather(*(loads.send(extended, sight, node, DEFAULT_SCHEDULER) for node in nodes))
            for number in range(KILLS):
                await sight.until(partial(has_begun, sight, sending, 4 * number + 1), lambda: "no pod comes")
                await asyncio.to_thread(extended.lab.parts[EXTENDER].restart, signal.SIGKILL)
            await sending
            turns = await sight.until(lambda: settled(loads.turned(sight, nodes)), lambda: "pods are not settled")
            lost = [pod.metadata.name for turn in turns for pod in turn.pods if not is_settled(pod)]
            return [each for turn in turns for each in turn.rejected], lost

    assert extended.run(story()) == ([], [])


def has_begun(sight: Sight, sending: asyncio.Future[list[None]], pods: int) -> bool:
    """Whether so many pods were sent, or all."""
    return sending.done() or len(sight.pods()) >= pods


def settled(turns: list[loads.Turn]) -> list[loads.Turn] | None:
    """Once each pod runs, or waits because no node has room for it."""
    return turns if all(is_settled(pod) for turn in turns for pod in turn.pods) else None


def is_settled(pod: Pod) -> bool:
    unschedulable = any(
        each.type == "PodScheduled" and each.reason == "Unschedulable" for each in pod.status.conditions
    )
    return pod.has_started or pod.status.is_finished or unschedulable
