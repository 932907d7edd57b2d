"""Reads a kubelet's checkpoints: the assignments that its managers wrote.

`watching` reads them several times a second; `resting` asks the model whether a pod fits beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from numalign.agent.sources import checkpoints
from numalign.agent.sources.checkpoints import DeviceCheckpoint
from numalign.api.objects.pod import Pod
from numalign.kubelet import mask as masks
from numalign.kubelet.cpu import topology
from numalign.kubelet.cpu.state import CPUState
from numalign.kubelet.device import DeviceState
from numalign.kubelet.machine import Machine
from numalign.kubelet.memory.state import MemoryState
from numalign.kubelet.state import KubeletState
from numalign.lab.campaign.history import Holding, Zones
from numalign.lab.node import LabNode

Stamp = tuple[tuple[int, int], ...]


class Books(Struct, frozen=True):
    stamp: Stamp
    cpus: CPUState
    memory: MemoryState | None
    devices: DeviceCheckpoint

    def state(self, active: Iterable[Pod]) -> KubeletState:
        """The model's state, with these active pods."""
        there = {pod.metadata.uid: pod for pod in active}
        return KubeletState(devices=self.devices.state, cpu=self.cpus, memory=self.memory, active=there)


def read(node: LabNode, last: Books | None) -> Books:
    """The last result if the files are unchanged. BadObject or OSError means that no complete checkpoint exists now."""
    static = node.spec.modelled.memory is not None
    files = [node.cpu_state, *([node.memory_state] if static else []), *filter(Path.exists, [node.device_state])]
    stamp = tuple((found.st_ino, found.st_mtime_ns) for found in (file.stat() for file in files))
    if last is not None and last.stamp == stamp:
        return last
    return Books(
        stamp,
        checkpoints.cpu(node.cpu_state.read_bytes()).state,
        checkpoints.memory(node.memory_state.read_bytes()).state if static else None,
        checkpoints.devices(node.device_state.read_bytes())
        if node.device_state in files
        else DeviceCheckpoint(DeviceState(), {}, {}),
    )


def holdings(machine: Machine, found: Books) -> dict[str, dict[str, Holding]]:
    """By uid and container."""
    memory = found.memory.blocks if found.memory is not None else {}
    devices = found.devices.state.pods
    uids = {*found.cpus.assignments, *memory, *devices}
    return {uid: dict(_of_pod(machine, found, uid)) for uid in uids}


def _of_pod(machine: Machine, found: Books, uid: str) -> Iterable[tuple[str, Holding]]:
    cpus = found.cpus.assignments.get(uid, {})
    memory = found.memory.blocks.get(uid, {}) if found.memory is not None else {}
    devices = found.devices.state.pods.get(uid, {})
    for name in sorted({*cpus, *memory, *devices}):
        blocks = {zone for block in memory.get(name, ()) for zone in masks.members(block.zones)}
        ids = _device_zones(found, devices.get(name, {}))
        yield name, Holding(_zones_of(machine, cpus.get(name, 0)), tuple(sorted(blocks)), ids)


def _zones_of(machine: Machine, cpus: int) -> Zones:
    return tuple(zone for zone, members in topology.of(machine).zones.items() if members & cpus)


def _device_zones(found: Books, held: Mapping[str, frozenset[str]]) -> tuple[Zones, ...]:
    zones = (found.devices.zones.get(name, {}).get(each) for name, ids in sorted(held.items()) for each in sorted(ids))
    return tuple(each for each in zones if each)
