"""Which pods hold something of their own, by the rule of the fingerprint method."""

import pytest

from numalign.api.attributes.podplacements import HeldDevices, Holding, MemoryBlock, PodPlacement

EXCLUSIVE = {
    "CPUs": (Holding(container="c", cpus=0b10), True),
    "memory in a zone, even of no size": (
        Holding(container="c", memory=(MemoryBlock(type="memory", zones=1, size=0),)),
        True,
    ),
    "memory of no zone": (Holding(container="c", memory=(MemoryBlock(type="memory", zones=0, size=9),)), False),
    "a device in a zone": (Holding(container="c", devices=(HeldDevices(resource="a/b", zones=1, count=1),)), True),
    "a device without topology": (Holding(container="c", devices=(HeldDevices(resource="a/b", count=1),)), False),
    "a device of no zone": (Holding(container="c", devices=(HeldDevices(resource="a/b", zones=0, count=1),)), False),
    "nothing": (Holding(container="c"), False),
}


@pytest.mark.parametrize("holding, exclusive", EXCLUSIVE.values(), ids=EXCLUSIVE)
def test_a_pod_is_exclusive_if_one_of_its_containers_is(holding: Holding, exclusive: bool) -> None:
    pod = PodPlacement(namespace="ns", name="pod", holdings=(Holding(container="shared"), holding))
    assert holding.is_exclusive is exclusive
    assert pod.is_exclusive is exclusive
