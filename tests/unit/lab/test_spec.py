"""Labs as they are asked for: what is taken for granted, and what is refused before anything starts."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from numalign.api.errors import BadObject
from numalign.kubelet.machine import presets
from numalign.lab import node, spec
from numalign.lab.spec import LabSpec, NodeSpec

SMALL = presets.machine("2x16")


def lab(*nodes: NodeSpec) -> LabSpec:
    return LabSpec(nodes=nodes)


def test_a_node_aligns_everything_unless_it_is_told_otherwise() -> None:
    settings = spec.node("a", SMALL).settings
    assert (settings.topology_policy, settings.topology_scope) == ("single-numa-node", "container")
    assert (settings.cpu_policy, settings.memory_policy) == ("static", "Static")


def test_what_a_file_says_counts_more_than_what_is_usual_and_less_than_what_was_typed() -> None:
    file: dict[str, Any] = {"topologyManagerPolicy": "restricted", "topologyManagerScope": "pod"}
    settings = spec.node("a", SMALL, kubelet=file, more={"topologyManagerScope": "container"}).settings
    assert (settings.topology_policy, settings.topology_scope) == ("restricted", "container")
    assert settings.cpu_policy == "none"


REFUSED = {
    "no nodes": ((), "0 is not possible"),
    "too many nodes": (spec.repeated(spec.node("a", SMALL), 51), "51 is not possible"),
    "a name that is none": ((spec.node("A_1", SMALL),), "'A_1' is not a valid name"),
    "a name twice": ((spec.node("a", SMALL), spec.node("a", SMALL)), "used twice"),
    "a kubelet that would not start": (
        (spec.node("a", SMALL, kubelet={"cpuManagerPolicy": "static"}),),
        "node a: the kubelet would not start",
    ),
}


@pytest.mark.parametrize("nodes, why", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_is_refused(nodes: tuple[NodeSpec, ...], why: str) -> None:
    with pytest.raises(BadObject, match=why):
        spec.check(lab(*nodes))


def test_nodes_alike_have_numbers() -> None:
    assert [each.name for each in spec.repeated(spec.node("node", SMALL), 3)] == ["node-0", "node-1", "node-2"]


def test_devices_of_the_machine_are_what_the_plugin_offers() -> None:
    machine = presets.machine("gpu-8")
    offered = node.of(spec.node("a", machine))
    assert node.known(SMALL, offered, "made").devices == machine.devices


def test_a_machine_without_devices_needs_no_plugin() -> None:
    assert node.of(spec.node("a", SMALL)) == {}


def test_devices_in_zones_that_the_machine_does_not_have_are_refused() -> None:
    with pytest.raises(BadObject, match="the machine has no zone 9"):
        node.known(SMALL, {"devices": {"example.com/gpu": {9: 4}}}, "gpus.yaml")


def test_the_lab_decides_nothing_that_decides_admission() -> None:
    """Else the model, which reads what people wrote, would speak of another kubelet."""
    asked = spec.node("a", SMALL)
    told = {**asked.kubelet, **node.LAB_DECIDES}
    assert NodeSpec(name="a", machine=SMALL, kubelet=told).settings == asked.settings


def test_only_one_scheduler_serves_the_default_name() -> None:
    alone = LabSpec(nodes=(spec.node("a", SMALL),), only_scheduler=True, reference_scheduler=True)
    spec.check(alone)
    for beside in (structs.replace(alone, stock_scheduler=True), structs.replace(alone, extender=True)):
        with pytest.raises(BadObject, match="kube-scheduler serves default-scheduler, too; run one"):
            spec.check(beside)
