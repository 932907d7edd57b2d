"""Reports as objects: small enough, and in the form that their readers know."""

from __future__ import annotations

import uuid

import msgspec
import pytest
from msgspec import structs

from numalign.agent.inventory import inventory
from numalign.agent.inventory.podidentity import KnownUids
from numalign.agent.publish import forms
from numalign.agent.sources.podresources import ContainerResources, DeviceEntry, MemoryEntry, PodResources
from numalign.api.nrt import normalise, wire
from numalign.kubelet import start
from numalign.kubelet.machine import machinefile
from numalign.kubelet.report import plainreport, report
from numalign.kubelet.settings import MemoryReservation, Settings
from tests.unit.agent import kubelet_looks as looks
from tests.unit.agent.clusters import NODE, STRICT

MOST_BYTES = 20_000
EIGHT = machinefile.read(
    {
        "name": "eight",
        "zones": [{"cpus": f"{16 * zone}-{16 * zone + 15}", "memory": "64Gi"} for zone in range(8)],
        "devices": {"example.com/nic": dict.fromkeys(range(8), 4)},
    },
    "eight",
)
MANAGED = Settings(
    topology_policy="single-numa-node",
    cpu_policy="static",
    reserved_cpus=1,
    memory_policy="Static",
    reserved_memory=(MemoryReservation(0, {"memory": 1 << 30}),),
    reserved={"cpu": 1000, "memory": 1 << 30},
)


def pod(number: int) -> PodResources:
    """One CPU, a gigabyte and, for some, a NIC, in the zone of its CPU."""
    zone = (number + 1) // 16
    nic = DeviceEntry("example.com/nic", (f"nic-{zone}-{number % 4}",), (zone,))
    devices = (nic,) if number % 16 < 4 else ()
    container = ContainerResources("main", devices, (number + 1,), (MemoryEntry("memory", 1 << 30, (zone,)),))
    return PodResources("production", f"inference-server-{number:03}-6d4cf56db6-x{number:04}", (container,), (), ())


def test_a_large_node_full_of_pods_makes_a_small_object() -> None:
    kubelet = start.start(EIGHT, MANAGED)
    pods = tuple(map(pod, range(110)))
    uids = {(each.namespace, each.name): str(uuid.UUID(int=number * 2**90 + 7)) for number, each in enumerate(pods)}
    empty = looks.at(kubelet, kubelet.initial())
    readings = structs.replace(empty, pods=pods, cpu_checkpoint=None, memory_checkpoint=None, device_checkpoint=None)
    found = inventory.of(readings, structs.replace(EIGHT, devices={}), KnownUids(uids)).report(NODE)
    assert len(found.facts.placements or ()) == 110
    assert len(msgspec.json.encode(forms.document(found))) < MOST_BYTES


def test_our_form_has_the_deprecated_field_for_older_readers() -> None:
    kubelet = start.start(EIGHT, structs.replace(MANAGED, topology_scope="pod"))
    written = forms.document(report.of(NODE, kubelet, kubelet.initial()))
    assert written["topologyPolicies"] == ["SingleNUMANodePodLevel"]
    without = {name: value for name, value in written.items() if name != "attributes"}
    read = normalise.normalise(wire.decode(msgspec.json.encode(without)))
    assert (read.manager.policy, read.manager.scope) == ("single-numa-node", "pod")


@pytest.mark.parametrize("mode", ["rte", "nfd"])
def test_others_forms_have_their_attributes_in_their_order(mode: plainreport.Publisher) -> None:
    topology = plainreport.of(NODE, STRICT, STRICT.initial(), mode)
    names = [each["name"] for each in forms.document(topology, mode)["attributes"]]
    assert names == [name for name in forms.ORDERS[mode] if name in names]
    assert len(names) >= 2


def test_nfds_form_has_the_deprecated_field_and_no_annotation() -> None:
    written = forms.document(plainreport.of(NODE, STRICT, STRICT.initial(), "nfd"), "nfd")
    assert written["topologyPolicies"] == ["SingleNUMANodeContainerLevel"]
    assert "annotations" not in written["metadata"]


def test_our_form_is_read_back_as_it_was() -> None:
    topology = report.of(NODE, STRICT, STRICT.initial())
    assert normalise.normalise(wire.decode(forms.document(topology))) == topology
