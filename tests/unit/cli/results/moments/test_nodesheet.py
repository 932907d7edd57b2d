"""What the dashboard says of a node is what its report and its ledger say, and no more."""

from __future__ import annotations

import pytest

from numalign.api.attributes.directmode import AppliedContainer
from numalign.api.decode import cpuset
from numalign.api.nrt import normalise
from numalign.cli.results.moments import nodesheet
from numalign.cli.results.moments.scene import Scene
from numalign.dashboard.details import CpuUse, Decided, NodeDetail
from tests import machinescenes
from tests.unit.placement.direct import clusters as direct
from tests.unit.placement.direct import machines
from tests.unit.scheduler.servers import trainer

RUNNING = (
    trainer("train-0", gpus=3, cpu="16"),
    trainer("train-1", gpus=2, cpu="24"),
    trainer("serve", gpus=1, cpu="1"),
)


def detail(scene: Scene, name: str = "n") -> NodeDetail:
    found = nodesheet.detail(scene, name)
    assert found is not None
    return found


@pytest.mark.parametrize("machine", ["gpu-8", "dgx-8", "epyc-nps1", "epyc-nps4", "2x32-smt"])
def test_every_cpu_of_the_report_is_there_once_and_held_as_the_report_says(machine: str) -> None:
    gpus = int("gpu" in machine or "dgx" in machine)
    pods = [trainer(f"p-{number}", gpus=gpus, cpu=str(2 + 2 * number)) for number in range(4)]
    scene = machinescenes.read(*machinescenes.node("n", machine, "restricted", pods))
    found, written = detail(scene), scene.cluster.report_of("n")
    assert written is not None
    facts = normalise.normalise(written).facts
    assert sorted(found.cpus) == sorted(cpu for core in facts.cores or () for cpu in core.cpus)
    held = {use.id for use in found.cpus.values() if use.use is CpuUse.HELD}
    assert len(held) == sum(2 + 2 * number for number in range(4))
    named = {cpu for pod in found.pods for container in pod.containers for cpu in container.cpus}
    assert held == named
    assert all(found.cpus[cpu].use is CpuUse.RESERVED for cpu in (0, 1))
    assert {use.use for use in found.cpus.values()} == {CpuUse.FREE, CpuUse.RESERVED, CpuUse.HELD}


def test_the_zones_add_up_to_what_pods_hold() -> None:
    found = detail(machinescenes.read(*machinescenes.node("n", running=RUNNING)))
    for resource in ("cpu", "nvidia.com/gpu"):
        parts = [part for part in found.parts if part.resource == resource]
        holds = sum(held.amount for pod in found.pods for held in pod.holds if held.resource == resource)
        assert sum(part.allocatable - part.free for part in parts) == holds
        assert all(0 <= part.free <= part.allocatable <= part.size for part in parts)
    assert {part.size for part in found.parts if part.resource == "cpu"} == {96_000}


def test_a_pod_that_has_not_arrived_is_predicted_and_has_no_cpus_of_its_own_yet() -> None:
    found = detail(machinescenes.read(*machinescenes.node("n", running=RUNNING[:1], coming=RUNNING[1:2])))
    pods = {pod.name: pod for pod in found.pods}
    assert (pods["default/train-0"].source, pods["default/train-0"].arrived) == ("observed", True)
    assert (pods["default/train-1"].source, pods["default/train-1"].arrived) == ("predicted", False)
    assert pods["default/train-0"].containers[0].cpus
    assert not pods["default/train-1"].containers[0].cpus
    assert pods["default/train-1"].holds


@pytest.mark.parametrize("publisher", ["rte", "nfd"])
def test_a_stock_report_is_not_drawn_with_cpus_that_it_does_not_name(publisher: str) -> None:
    found = detail(machinescenes.read(*machinescenes.node("n", running=RUNNING, publisher=publisher)))
    assert (found.cores, found.cpus, found.sockets) == (None, {}, {})
    assert found.parts
    assert found.assumed
    assert {each.value for each in found.settings if each.note == nodesheet.NOT_REPORTED} == {""}


def test_a_kubelet_that_gives_out_no_cpus_shares_all() -> None:
    found = detail(machinescenes.read(*machinescenes.node("n", cpu_policy="none", reserved_cpus=0)))
    assert {use.use for use in found.cpus.values()} == {CpuUse.SHARED}


def test_a_machine_of_34_zones_has_them_all() -> None:
    found = detail(machinescenes.read(*machinescenes.node("n", "superchip-34", "none")))
    assert found.zones == tuple(range(34))
    assert dict(found.sockets) == {0: (0,), 1: (1,)}


def test_a_node_without_a_report_has_totals_alone() -> None:
    found = detail(machinescenes.read(*machinescenes.node("n", publisher="")))
    assert (found.report, found.zones, found.policy, found.settings) == (None, (), "", ())
    assert found.totals["cpu"][0] == 190_000


def test_a_report_without_a_node_says_so() -> None:
    node, *others = machinescenes.node("n")
    assert node["kind"] == "Node"
    found = detail(machinescenes.read(*machinescenes.node("other"), *others))
    assert not found.exists


def test_what_is_not_there_is_not_made_up() -> None:
    assert nodesheet.detail(machinescenes.read(*machinescenes.node("n")), "m") is None


SINGLE = '{"policy": "SingleNUMANode", "scope": "Container", "memory": "Enforce"}'
TWO = direct.named(machines.pod(6, 4, spec=SINGLE), "two")


def test_a_node_in_direct_mode_shows_what_was_decided_beside_what_the_kernel_lets_containers_use() -> None:
    applied = (
        AppliedContainer(uid="two", container="c0", cpus=cpuset.parse("0-5"), mems=1),
        AppliedContainer(uid="two", container="c1", failure="no such CPU"),
    )
    found = detail(machinescenes.read(*machinescenes.direct("n", TWO, applied=applied)))
    first, second = (each.decided for each in found.pods[0].containers)
    assert (found.is_direct, found.policy) == (True, "none")
    assert first == Decided(cpus="0-5", mems="0", is_applied=True, in_effect="0-5")
    assert second == Decided(cpus="8-11", mems="1", is_applied=False, failure="no such CPU")


def test_cpus_of_a_decision_are_held_and_all_others_are_free_in_direct_mode() -> None:
    found = detail(machinescenes.read(*machinescenes.direct("n", TWO)))
    held = {cpu: use.container for cpu, use in found.cpus.items() if use.use is CpuUse.HELD}
    assert held == dict.fromkeys(range(6), "c0") | dict.fromkeys(range(8, 12), "c1")
    assert {use.use for cpu, use in found.cpus.items() if cpu not in held} == {CpuUse.FREE}
    assert [each.decided.is_applied for each in found.pods[0].containers if each.decided] == [None, None]
