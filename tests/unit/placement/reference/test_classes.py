from __future__ import annotations

import pytest

from numalign.api.decode import quantity
from numalign.api.objects.node import Node, NodeStatus
from numalign.api.objects.pod import Pod
from numalign.api.objects.qos import QoS
from numalign.placement.reference import classes
from tests.unit.placement.reference import made
from tests.unit.placement.reference.made import container, pod, zone

NIC = "example.com/nic"

NAMES: dict[str, tuple[bool, bool]] = {
    "cpu": (True, False),
    "memory": (True, False),
    "hugepages-1Gi": (True, False),
    "ephemeral-storage": (False, True),
    "storage": (False, True),
    NIC: (False, True),
    "gpu": (False, False),
    "kubernetes.io/batch-cpu": (False, False),
    "example.kubernetes.io/x": (False, False),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_says_whether_zones_or_the_host_have_the_resource(name: str) -> None:
    assert (classes.is_numa_affine(name), classes.is_host_level(name)) == NAMES[name]


def test_what_a_node_has_at_all() -> None:
    names = ("hugepages-2Mi", NIC, "attachable-volumes-csi", "kubernetes.io/x", "storage", "gpu", "requests.x.io/y")
    allocatable = made.amounts(dict.fromkeys(names, 0))
    node = Node(status=NodeStatus(capacity=made.amounts({"example.com/gone": 1}), allocatable=allocatable))
    always = {"cpu", "memory", "pods", "ephemeral-storage"}
    assert classes.present_on(node) == always | {"hugepages-2Mi", NIC, "attachable-volumes-csi", "kubernetes.io/x"}


def test_names_are_taken_from_zones_of_any_type() -> None:
    report = made.report(zone(0, cpu=1), zone("socket-0", nic=0))
    assert classes.listed_by(report) == {"cpu", NIC}
    assert classes.listed_by(made.report()) == frozenset()


EXCLUSIVE: dict[str, tuple[QoS, str, str, bool]] = {
    "whole cpus": (QoS.GUARANTEED, "cpu", "2", True),
    "whole cpus, written in thousandths": (QoS.GUARANTEED, "cpu", "2000m", True),
    "a fraction": (QoS.GUARANTEED, "cpu", "1500m", False),
    "a fraction that rounds up to a whole": (QoS.GUARANTEED, "cpu", "999999u", True),
    "no cpu": (QoS.GUARANTEED, "cpu", "0", False),
    "cpus of another class": (QoS.BURSTABLE, "cpu", "2", False),
    "memory": (QoS.GUARANTEED, "memory", "1", True),
    "no memory": (QoS.GUARANTEED, "memory", "0", False),
    "hugepages": (QoS.GUARANTEED, "hugepages-2Mi", "2Mi", True),
    "storage": (QoS.GUARANTEED, "ephemeral-storage", "1Gi", False),
    "a listed device": (QoS.BEST_EFFORT, NIC, "1", True),
    "none of a listed device": (QoS.BEST_EFFORT, NIC, "0", True),
    "a device that is not listed": (QoS.GUARANTEED, "example.com/gpu", "1", False),
}


@pytest.mark.parametrize("quality, name, amount, expected", EXCLUSIVE.values(), ids=EXCLUSIVE)
def test_what_a_container_holds_for_itself(quality: QoS, name: str, amount: str, expected: bool) -> None:
    assert classes.is_exclusive(quality, name, quantity.parse(amount), {NIC}) is expected


HOLDER = container("app", cpu=1, memory=1)
SIDECAR = container("side", sidecar=True, cpu=1, memory=1)
ORDINARY = container("init", cpu=1, memory=1)


def test_sidecars_come_first_and_ordinary_init_containers_not_at_all() -> None:
    pinned = classes.pinned_containers(pod(HOLDER, init=[ORDINARY, SIDECAR]), frozenset())
    assert [each.name for each in pinned] == ["side", "app"]


@pytest.mark.parametrize(
    "wanted, expected",
    [(pod(HOLDER), True), (pod(init=[ORDINARY]), False), (pod(init=[SIDECAR]), True), (pod(container()), False)],
)
def test_a_pod_is_exclusive_if_a_lasting_container_is(wanted: Pod, expected: bool) -> None:
    assert classes.is_exclusive_pod(wanted, frozenset()) is expected


DEVICES: dict[str, tuple[Pod, bool]] = {
    "a device": (pod(container(nic=1)), True),
    "none of a device": (pod(container(nic=0)), True),
    "a device of an init container": (pod(container(), init=[container(nic=1)]), True),
    "native resources": (pod(container(cpu=1, disk=1)), False),
    "only a limit": (pod(container(limits={"nic": 1})), False),
}


@pytest.mark.parametrize("wanted, expected", DEVICES.values(), ids=DEVICES)
def test_a_request_of_any_amount_asks_for_devices(wanted: Pod, expected: bool) -> None:
    assert classes.asks_for_devices(wanted) is expected
