"""What a node's kubelet and agent say at one moment, and what the model says that they should.

Which pods a kubelet admitted first is told by its log: pods that a scheduler sends at about the same time may arrive in
any order, and what each gets depends on it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

from numalign.agent.sources import checkpoints
from numalign.agent.sources.podresources import PodResources, PodResourcesClient
from numalign.api.nrt import normalise
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.api.objects.pod import Pod
from numalign.kube.client import Client
from numalign.kube.resources import TOPOLOGIES
from numalign.kubelet import admission
from numalign.kubelet.cpu.state import CPUState
from numalign.kubelet.device import DeviceState
from numalign.kubelet.memory.state import MemoryState
from numalign.kubelet.state import KubeletState
from numalign.lab.node import LabNode
from numalign.lab.spec import NodeSpec

ADMISSION = re.compile(r'"Allocate start" .*podUID="([^"]+)"')


class Books(Struct, frozen=True, kw_only=True):
    """As the kubelet wrote them down, told them by podresources, and as the agent told the cluster."""

    cpus: CPUState
    memory: MemoryState | None
    devices: DeviceState
    listed: Mapping[str, PodResources]
    """By name."""
    report: NodeTopology


async def read(node: LabNode, client: Client) -> Books:
    listing = PodResourcesClient(node.podresources)
    try:
        listed = {pod.name: pod for pod in await listing.list()}
    finally:
        await listing.close()
    return Books(
        cpus=checkpoints.cpu(node.cpu_state.read_bytes()).state,
        memory=_memory(node),
        devices=_devices(node),
        listed=listed,
        report=normalise.normalise(await client.get(TOPOLOGIES.at(node.name))),
    )


def _memory(node: LabNode) -> MemoryState | None:
    if node.spec.settings.memory_policy == "None":
        return None
    return checkpoints.memory(node.memory_state.read_bytes()).state


def _devices(node: LabNode) -> DeviceState:
    """Without plugins a kubelet writes none down."""
    if not node.device_state.exists():
        return DeviceState()
    return checkpoints.devices(node.device_state.read_bytes()).state


def in_order_of_admission(node: LabNode, pods: Iterable[Pod]) -> list[Pod]:
    found = ADMISSION.findall(node.kubelet.program.log.read_text())
    turns = {uid: turn for turn, uid in reversed(list(enumerate(found)))}
    return sorted(pods, key=lambda pod: turns[pod.metadata.uid])


def modelled(node: NodeSpec, pods: Iterable[Pod]) -> KubeletState:
    """Every pod admitted, in this order, none of them further than its first container."""
    kubelet = node.modelled
    state = kubelet.initial()
    for pod in pods:
        state, outcome = admission.admit(kubelet, state, pod)
        assert outcome.admitted, (pod.metadata.name, outcome)
    return state


def begun(node: NodeSpec, state: KubeletState) -> KubeletState:
    """Every container has started, which init containers must have ended for."""
    for uid in state.active:
        state = admission.started(node.modelled, state, uid)
    return state


def cpus(node: LabNode) -> Mapping[tuple[str, str], int]:
    """What the CPU manager wrote down, by the pod's uid and the container."""
    held = checkpoints.cpu(node.cpu_state.read_bytes()).state.assignments
    return {(uid, name): found for uid, containers in held.items() for name, found in containers.items()}
