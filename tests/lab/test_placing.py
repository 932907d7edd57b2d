"""Our scheduler on real kubelets: pods until nothing fits, none turned away, and everything where the model says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from numalign.agent import checkpoints
from numalign.api.pod import Pod
from numalign.kubelet import admission
from numalign.kubelet.cpu import topology
from numalign.kubelet.cpu.state import CPUState
from numalign.kubelet.device import DeviceState
from numalign.kubelet.memory.state import MemoryState
from numalign.kubelet.state import KubeletState
from numalign.lab.node import LabNode
from numalign.scheduler import forecasts
from tests.lab import fleet, loads
from tests.lab.live import Live
from tests.lab.loads import Story

LOADED = [node.name for node in fleet.loaded()]
# Without a policy that aligns, a kubelet takes devices in no order at all.
WITH_DEVICES = [name for name in LOADED if name.startswith("all-") and not name.startswith("all-none")]


@pytest.fixture(scope="module")
def stories(live: Live) -> Iterator[dict[str, Story]]:
    yield live.run(loads.played(live, LOADED))
    live.clear()


def modelled(node: LabNode, placed: list[Pod]) -> KubeletState:
    kubelet = node.spec.modelled
    state = kubelet.initial()
    for pod in placed:
        state, outcome = admission.admit(kubelet, state, pod)
        assert outcome.admitted, outcome
    return state


def cpus_of(state: CPUState | None) -> object:
    """Without what lives only as long as the process; so it is for memory."""
    assert state is not None
    return state.default, state.assignments


def memory_of(state: MemoryState | None) -> object:
    """A container's blocks are in no order: the kubelet walks a map of types."""
    assert state is not None
    blocks = {uid: {name: set(held) for name, held in held.items()} for uid, held in state.blocks.items()}
    return state.zones, blocks


def zones_of(node: LabNode, cpus: int) -> tuple[int, ...]:
    return tuple(zone for zone, members in topology.of(node.spec.machine).zones.items() if members & cpus)


@pytest.mark.parametrize("name", LOADED)
def test_no_pod_is_turned_away_and_the_node_gets_full(stories: dict[str, Story], name: str) -> None:
    story = stories[name]
    assert story.rejected == []
    assert story.placed
    assert story.waiting


# Pods that come together may be admitted in another order than the model is told, so that CPUs may differ.
@pytest.mark.slow
@pytest.mark.parametrize("name", LOADED)
def test_the_kubelet_wrote_down_what_the_model_says(live: Live, stories: dict[str, Story], name: str) -> None:
    node = live.node(name)
    expected = modelled(node, stories[name].placed)
    assert cpus_of(checkpoints.cpu(node.cpu_state.read_bytes()).state) == cpus_of(expected.cpu)
    assert memory_of(checkpoints.memory(node.memory_state.read_bytes()).state) == memory_of(expected.memory)


def device_zones(node: LabNode, state: DeviceState) -> dict[tuple[str, str, str], list[str]]:
    """By pod, container and resource, the zones of the devices: which of them in a zone is up to the plugin."""
    plugins = node.spec.machine.devices
    known = {name: {each.id: str(each.zones) for each in plugin.devices} for name, plugin in plugins.items()}
    return {
        (uid, container, name): sorted(known[name][each] for each in ids)
        for uid, containers in state.pods.items()
        for container, held in containers.items()
        for name, ids in held.items()
    }


@pytest.mark.parametrize("name", WITH_DEVICES)
def test_devices_are_of_the_zones_that_the_model_says(live: Live, stories: dict[str, Story], name: str) -> None:
    node = live.node(name)
    expected = device_zones(node, modelled(node, stories[name].placed).devices)
    assert expected
    assert device_zones(node, checkpoints.devices(node.device_state.read_bytes()).state) == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", LOADED)
def test_pods_sit_in_the_zones_that_the_scheduler_foretold(live: Live, stories: dict[str, Story], name: str) -> None:
    node = live.node(name)
    held = checkpoints.cpu(node.cpu_state.read_bytes()).state.assignments
    for pod in stories[name].placed:
        for container, choices in (forecasts.decode(pod.metadata) or {}).items():
            cpus = held[pod.metadata.uid][container]
            assert any(set(zones_of(node, cpus)) <= set(choice) for choice in choices), (pod.metadata.name, container)
