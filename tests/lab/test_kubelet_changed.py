"""A kubelet starts again with another topology policy or scope: agent and scheduler follow without a restart.

The numbers are those of the acceptance list of the reference operator (13.8 of its specification)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest

from numalign.api.nrt import normalise
from numalign.api.objects.pod import Pod
from numalign.kube import errors
from numalign.kube.resources import PODS, TOPOLOGIES
from numalign.lab import node as nodes
from numalign.lab import spec
from numalign.lab.spec import LabSpec
from numalign.scheduler import profiles
from tests.lab import fleet
from tests.lab.labs import Labs
from tests.lab.live import NAMESPACE, Live, guaranteed

NODE = "changing"
POLICY, SCOPE = "topologyManagerPolicy", "topologyManagerScope"
WIDE = 20
"""CPUs of a pod that fits the node, and no zone of it."""


@pytest.fixture
def changing(labs: Labs) -> Iterator[Live]:
    """A node whose kubelet aligns nothing yet."""
    node = spec.node(NODE, fleet.SMALL, more={POLICY: "none"})
    live = labs.of(LabSpec(name=f"changing-{os.getpid()}", nodes=(node,), agent=True, scheduler=True))
    set_to(live, "none", "container")
    yield live
    live.clear()


def set_to(live: Live, policy: str, scope: str) -> None:
    """As an administrator does: another file, and the kubelet starts again. Ends when the report says so."""
    node = live.node(NODE)
    file = node.place.root / nodes.CONFIG.rpartition("/")[2]
    now = json.loads(file.read_text())
    wanted = now | {POLICY: policy, SCOPE: scope}
    if now != wanted:
        file.write_text(json.dumps(wanted))
        node.kubelet.restart()

    async def reported() -> bool:
        try:
            manager = normalise.normalise(await live.client.get(TOPOLOGIES.at(NODE))).manager
        except errors.NotFound:
            return False
        return (manager.policy, manager.scope) == (policy, scope)

    live.awaited(reported, f"no report with policy {policy} and scope {scope}")


def refusal(live: Live, name: str) -> str:
    """Why the pod waits, once the scheduler has said so."""

    async def said() -> str:
        pod: Pod = await live.client.get(PODS.at(name, NAMESPACE))
        assert pod.status.phase == "Pending", (name, pod.status.phase)
        return next((each.message for each in pod.status.conditions if each.reason == "Unschedulable"), "")

    return live.awaited(said, f"nothing is said about pod {name}")


def ours(name: str, cpu: int, *more: int) -> dict[str, object]:
    """A pod with a container for each number of CPUs."""
    pod = guaranteed(name, cpu, schedulerName=profiles.NAME)
    containers = [guaranteed(name, cpus)["spec"]["containers"][0] for cpus in (cpu, *more)]
    pod["spec"]["containers"] = [{**each, "name": f"c{place}"} for place, each in enumerate(containers)]
    return pod


def test_75354_a_policy_that_is_turned_on_counts_without_a_restart_of_the_scheduler(changing: Live) -> None:
    changing.create(ours("unaligned", WIDE))
    assert changing.settled("unaligned").status.phase == "Running"
    changing.clear()
    set_to(changing, "single-numa-node", "container")
    changing.create(ours("waits", WIDE), ours("aligned", 8))
    assert changing.settled("aligned").status.phase == "Running"
    assert "cannot align" in refusal(changing, "waits")


def test_47585_84315_another_scope_shows_in_the_report_and_in_the_next_decision(changing: Live) -> None:
    set_to(changing, "single-numa-node", "pod")
    changing.create(ours("together", 10, 10))
    assert "cannot align pod" in refusal(changing, "together")
    set_to(changing, "single-numa-node", "container")
    assert changing.settled("together").status.phase == "Running"
