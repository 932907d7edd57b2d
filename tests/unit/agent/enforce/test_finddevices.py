"""GPUs and NICs of the kernel: what the scheduler is offered of them, and what a container gets of its decision."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec import structs

from numalign.agent.enforce.devices import NOTHING, VISIBLE, Devices
from numalign.agent.enforce.messages import DeviceNode
from numalign.api.attributes import devicetable
from numalign.api.attributes.directmode import FEATURES, DirectMode
from numalign.api.attributes.directresult import ContainerResult, DeviceGrant, Extension, FunctionGrant
from numalign.api.decode import quantity
from numalign.kubelet import start
from numalign.kubelet.report import directreport, report
from numalign.placement.engine import Engine
from numalign.placement.facts import NodeSeen, ReportSeen
from numalign.simulator import virtualtime
from numalign.simulator.apiserver.storage.resources import NODES
from tests import pcitrees
from tests.runtimes import Runtime
from tests.unit.agent import clusters as towns
from tests.unit.agent.clusters import NODE, Script, Town
from tests.unit.kubelet import made
from tests.unit.placement import choices
from tests.unit.placement.direct import clusters, devices
from tests.unit.placement.direct.clusters import result

MACHINE = made.machine(zones=2, cores=8)
NVIDIA = [("/dev/nvidiactl", 255), ("/dev/nvidia-uvm", 0), ("/dev/nvidia-uvm-tools", 1)]


def looked(root: Path) -> Devices:
    pcitrees.write(root)
    found = Devices({}, root, finds=True)
    found.look()
    return found


def decided(found: Devices, limits: dict[str, int], spec: str = "") -> ContainerResult:
    """What the scheduler decides for a container on this node."""
    assert found.table is not None
    kubelet = start.start(MACHINE, clusters.UNMANAGED)
    plain = report.of("n", kubelet, kubelet.initial())
    mode = DirectMode(frozenset(FEATURES))
    topology = directreport.advertised(plain, MACHINE, clusters.UNMANAGED, mode, shares=found.table)
    on = Engine()
    plain_node = clusters.node()
    amounts = {name: quantity.of(amount) for name, amount in devicetable.offered(found.table).items()}
    offered = {**plain_node.status.allocatable, **amounts}
    status = structs.replace(plain_node.status, capacity=offered, allocatable=offered)
    on.apply(NodeSeen(structs.replace(plain_node, status=status)))
    on.apply(ReportSeen(topology, 0.0))
    pod = devices.pod(limits, devices=spec)
    (own,) = result(choices.chosen(on, pod, Random(1)).decision).containers
    return own


def paths(found: Devices, own: ContainerResult) -> list[str]:
    injected, why = found.injection(own)
    assert why == ""
    return [each.path for each in injected.nodes]


def test_the_table_counts_devices_by_the_bus(tmp_path: Path) -> None:
    table = looked(tmp_path).table
    assert table is not None
    seen = [(each.type, each.minor, each.zone, each.pcie, each.memory >> 30) for each in table.devices]
    assert seen == [
        ("gpu", 0, 0, "pci0000:16", 0),
        ("gpu", 1, 1, "pci0000:64", 0),
        ("gpu", 2, -1, "pci0000:c9", 64),
        ("rdma", 0, 0, "pci0000:16", 0),
    ]
    assert devicetable.decode(devicetable.encode(table)) == table


def test_a_container_gets_the_files_of_the_gpu_and_the_nic_that_were_decided_together(tmp_path: Path) -> None:
    found = looked(tmp_path)
    own = decided(found, {devices.GPU: 100, devices.RDMA: 100}, devices.SAME_PCIE)
    assert paths(found, own) == [
        "/dev/nvidia0",
        *(path for path, _ in NVIDIA),
        "/dev/infiniband/uverbs0",
        "/dev/infiniband/rdma_cm",
    ]
    assert found.injection(own)[0].env == {VISIBLE: "GPU-aaaa"}


def test_a_part_of_a_gpu_is_its_files_and_a_virtual_function_those_of_the_function(tmp_path: Path) -> None:
    found = looked(tmp_path)
    own = decided(found, {devices.CORE: 40, devices.RATIO: 40})
    assert paths(found, own)[0] == "/dev/nvidia0"
    own = decided(found, {devices.RDMA: 50}, '{"types": {"rdma": {"functions": {}}}}')
    assert paths(found, own) == ["/dev/infiniband/uverbs2", "/dev/infiniband/rdma_cm"]


WRONG: dict[str, tuple[str, DeviceGrant, str]] = {
    "another device has its number now": ("gpu", DeviceGrant(0, "GPU-cccc"), "no gpu 0 with the id GPU-cccc"),
    "no such device": ("gpu", DeviceGrant(7), "no gpu 7"),
    "no such type": ("fpga", DeviceGrant(0), "no fpga 0"),
    "no such function": (
        "rdma",
        DeviceGrant(0, pcitrees.NIC, extension=Extension((FunctionGrant(pcitrees.LOOSE_FUNCTION),))),
        f"rdma 0 has no virtual function {pcitrees.LOOSE_FUNCTION}",
    ),
}


@pytest.mark.parametrize("kind, grant, why", WRONG.values(), ids=WRONG)
def test_a_device_that_is_not_there_is_not_replaced_by_another(
    tmp_path: Path, kind: str, grant: DeviceGrant, why: str
) -> None:
    injected, said = looked(tmp_path).injection(ContainerResult(name="c", devices={kind: (grant,)}))
    assert (injected, why in said) == (NOTHING, True)


def test_koordinator_may_count_devices_in_another_order(tmp_path: Path) -> None:
    own = ContainerResult(name="c", devices={"gpu": (DeviceGrant(0, "GPU-bbbb"),)})
    injected, _ = looked(tmp_path).injection(own)
    assert injected.nodes[0] == DeviceNode("/dev/nvidia1", "c", 195, 1)


def test_the_node_offers_what_the_report_has(tmp_path: Path) -> None:
    def capacity(town: Town) -> dict[str, Any]:
        amounts = town.api.get(NODES, NODE)["status"].get("capacity", {})
        return {name: amount for name, amount in amounts.items() if name.startswith(devicetable.PREFIX)}

    async def story() -> None:
        town, script = Town(), Script()
        script.kubelet = towns.UNMANAGED
        async with town.agent(script, runtime=Runtime(), devices=looked(tmp_path)):
            await asyncio.sleep(70)
        assert capacity(town) == {
            "koordinator.sh/gpu": "300",
            "koordinator.sh/gpu-core": "300",
            "koordinator.sh/gpu-memory": str(64 << 30),
            "koordinator.sh/gpu-memory-ratio": "300",
            "koordinator.sh/gpu.shared": "300",
            "koordinator.sh/rdma": "100",
        }

    virtualtime.run(story())
