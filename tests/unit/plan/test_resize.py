"""`plan resize`: what the API server refuses, what the kubelet says, and what a new pod would find."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from numalign.api.decode import quantity
from numalign.api.errors import BadObject
from numalign.api.nrt import normalise
from numalign.api.objects.pod import Pod
from numalign.kube.resources import TOPOLOGIES
from numalign.plan.questions import resize
from numalign.plan.questions.resize import NewRequests, ResizePlan
from numalign.scheduler.snapshot.snapshot import Snapshot
from tests.machinescenes import node
from tests.unit.plan.plannedclusters import cluster, pending
from tests.unit.scheduler import waitingpods
from tests.unit.scheduler.servers import owned, trainer


def burstable(name: str) -> Pod:
    resources = {"requests": {"cpu": "4", "memory": "1Gi"}, "limits": {"cpu": "8", "memory": "2Gi"}}
    return waitingpods.pod(name, {"containers": [{"name": "main", "resources": resources}]})


def asked(taken: Snapshot, pod: str, container: str = "", **amounts: str) -> ResizePlan:
    wanted = {name.replace("gpu", "nvidia.com/gpu"): quantity.parse(text) for name, text in amounts.items()}
    return resize.answer(taken, f"default/{pod}", NewRequests(container, wanted))


def test_a_guaranteed_pod_under_static_managers_cannot_be_resized_and_a_new_one_can_be_placed() -> None:
    taken = cluster(node("a", "2x16", running=[trainer("pod", 0, "4")]))
    found = asked(taken, "pod", cpu="6")
    assert (found.verdict, found.by, found.reason) == ("infeasible", "kubelet", "Infeasible")
    assert found.message == 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"'
    assert found.instead is not None
    assert (found.instead.same_node, found.instead.node) == (True, "a")
    assert not found.fits


def test_memory_follows_its_own_manager() -> None:
    without = cluster(node("a", "2x16", running=[trainer("pod", 0, "4")]))
    assert asked(without, "pod", memory="2Gi").fits


def test_without_a_static_cpu_manager_the_totals_decide() -> None:
    running = [trainer("pod", 0, "4"), trainer("other", 0, "20")]
    taken = cluster(node("a", "2x16", "none", running, cpu_policy="none", reserved_cpus=0))
    assert asked(taken, "pod", cpu="8").fits
    full = asked(taken, "pod", cpu="16")
    assert (full.verdict, full.reason) == ("deferred", "Deferred")
    assert full.message.startswith("Node didn't have enough resource: cpu, requested: 16000, used: 20000")
    never = asked(taken, "pod", cpu="64")
    assert (never.verdict, never.message[:35]) == ("infeasible", "Node didn't have enough capacity: c")


def test_a_burstable_pod_is_none_of_the_managers_business() -> None:
    taken = cluster(node("a", "2x16", running=[burstable("pod")]))
    found = asked(taken, "pod", cpu="6")
    assert found.fits
    assert any("not Guaranteed" in note for note in found.notes)


def test_devices_in_more_zones_than_necessary_defer_a_resize() -> None:
    """Two GPUs, one of each zone: the hints of a resize come from what the pod holds, and `restricted` refuses them."""
    running = [trainer("first", 3, "1"), trainer("second", 3, "1"), trainer("wide", 2, "1")]
    taken = cluster(node("a", policy="best-effort", running=running))
    assert asked(taken, "wide", memory="2Gi").fits
    (report,) = taken.every(TOPOLOGIES)
    strict = {**taken.objects, TOPOLOGIES.plural: (_with_policy(report, "restricted"),)}
    found = asked(structs.replace(taken, objects=strict), "wide", memory="2Gi")
    assert (found.verdict, found.message) == ("deferred", "Resources cannot be allocated with Topology locality")
    assert asked(structs.replace(taken, objects=strict), "first", memory="2Gi").fits


def _with_policy(written: Any, policy: str) -> Any:
    topology = normalise.normalise(written)
    manager = structs.replace(topology.manager, policy=policy)
    return normalise.encode(structs.replace(topology, manager=manager))


@pytest.mark.parametrize(
    "amounts, why",
    [
        ({"gpu": "2"}, "only cpu and memory can be resized"),
        ({"cpu": "-1"}, "is negative"),
        ({"cpu": "9"}, "is more than the limit of 8"),
        ({"cpu": "8", "memory": "2Gi"}, "the QoS class may not change: it is Burstable, and would be Guaranteed"),
    ],
)
def test_what_the_api_server_refuses(amounts: dict[str, str], why: str) -> None:
    taken = cluster(node("a", "2x16", running=[burstable("pod")]))
    found = asked(taken, "pod", **amounts)
    assert (found.verdict, found.by) == ("refused", "API server")
    assert why in found.message


def test_a_pod_of_a_node_without_a_report_is_not_known() -> None:
    taken = cluster(node("a", "2x16", running=[trainer("pod", 0, "4")], publisher=""))
    assert asked(taken, "pod", cpu="6").verdict == "unknown"


@pytest.mark.parametrize(
    "pod, container, why",
    [
        ("ghost", "", "is not in the cluster"),
        ("waits", "", "has no node yet"),
        ("pod", "side", "has no container side"),
    ],
)
def test_what_cannot_be_asked(pod: str, container: str, why: str) -> None:
    taken = cluster(node("a", "2x16", running=[trainer("pod", 0, "4")]), pending(owned(trainer("waits"), "set-1")))
    with pytest.raises(BadObject, match=why):
        asked(taken, pod, container, cpu="6")
