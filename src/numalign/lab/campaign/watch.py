"""Records a campaign's history: pods and nodes from the API server, assignments from the kubelets' checkpoints.

`run` runs it during the whole campaign. Checkpoints are read several times a second, because a kubelet removes a pod's
assignments soon after its end. An agent's report is compared with the checkpoint for pods that are not terminating."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from numalign.agent.sources import checkpoints
from numalign.agent.sources.checkpoints import DeviceCheckpoint
from numalign.api.errors import BadObject
from numalign.api.nrt import normalise, wire
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod, PodCondition
from numalign.kube.client import Client
from numalign.kube.resources import NODES, PODS, TOPOLOGIES
from numalign.kube.watch.informer import Informer
from numalign.kube.watch.store import Change
from numalign.kubelet.cpu import topology
from numalign.kubelet.cpu.state import CPUState
from numalign.kubelet.device import DeviceState
from numalign.kubelet.machine.machine import Machine
from numalign.kubelet.memory.state import MemoryState
from numalign.kubelet.state import KubeletState
from numalign.kubelet.topologymanager import mask as masks
from numalign.lab.campaign.history import History, Holding, Zones
from numalign.lab.lab import Lab
from numalign.lab.node import LabNode
from numalign.process import tasks
from numalign.scheduler import placementannotation

Stamp = tuple[tuple[int, int], ...]


class Checkpoints(Struct, frozen=True):
    stamp: Stamp
    cpus: CPUState
    memory: MemoryState | None
    devices: DeviceCheckpoint

    def state(self, active: Iterable[Pod]) -> KubeletState:
        """The model's state, with these active pods."""
        there = {pod.metadata.uid: pod for pod in active}
        return KubeletState(devices=self.devices.state, cpu=self.cpus, memory=self.memory, active=there)


def read(node: LabNode, last: Checkpoints | None) -> Checkpoints:
    """The last result if the files are unchanged. BadObject or OSError means that no complete checkpoint exists now."""
    static = node.spec.modelled.memory is not None
    files = [node.cpu_state, *([node.memory_state] if static else []), *filter(Path.exists, [node.device_state])]
    stamp = tuple((found.st_ino, found.st_mtime_ns) for found in (file.stat() for file in files))
    if last is not None and last.stamp == stamp:
        return last
    return Checkpoints(
        stamp,
        checkpoints.cpu(node.cpu_state.read_bytes()).state,
        checkpoints.memory(node.memory_state.read_bytes()).state if static else None,
        checkpoints.devices(node.device_state.read_bytes())
        if node.device_state in files
        else DeviceCheckpoint(DeviceState(), {}, {}),
    )


def holdings(machine: Machine, found: Checkpoints) -> dict[str, dict[str, Holding]]:
    """What containers hold, by uid and container."""
    memory = found.memory.blocks if found.memory is not None else {}
    devices = found.devices.state.pods
    uids = {*found.cpus.assignments, *memory, *devices}
    return {uid: dict(_of_pod(machine, found, uid)) for uid in uids}


def _of_pod(machine: Machine, found: Checkpoints, uid: str) -> Iterable[tuple[str, Holding]]:
    cpus = found.cpus.assignments.get(uid, {})
    memory = found.memory.blocks.get(uid, {}) if found.memory is not None else {}
    devices = found.devices.state.pods.get(uid, {})
    for name in sorted({*cpus, *memory, *devices}):
        blocks = {zone for block in memory.get(name, ()) for zone in masks.members(block.zones)}
        ids = _device_zones(found, devices.get(name, {}))
        yield name, Holding(_zones_of(machine, cpus.get(name, 0)), tuple(sorted(blocks)), ids)


def _zones_of(machine: Machine, cpus: int) -> Zones:
    return tuple(zone for zone, members in topology.discover(machine).zones.items() if members & cpus)


def _device_zones(found: Checkpoints, held: Mapping[str, frozenset[str]]) -> tuple[Zones, ...]:
    zones = (found.devices.zones.get(name, {}).get(each) for name, ids in sorted(held.items()) for each in sorted(ids))
    return tuple(each for each in zones if each)


NAMESPACE: Final = "default"
LOOK: Final = 0.25
STRICT: Final = ("restricted", "single-numa-node")

Cpus = dict[tuple[str, str], int]
"""By uid and container."""


class Observer:
    def __init__(self, lab: Lab, client: Client, history: History) -> None:
        self.history = history
        self.pods: dict[str, Pod] = {}
        """Existing pods, by uid."""
        self.checkpoints: dict[str, Checkpoints] = {}
        """The last checkpoint of each node."""
        self._lab = lab
        self._reported: dict[str, Cpus] = {}
        self._behind: set[str] = set()
        self._held: dict[str, dict[str, Mapping[str, Holding]]] = {}
        self._without_cpus: set[str] = set()
        self._offers: dict[tuple[str, str], Mapping[str, int]] = {}
        self._informed = Informer(client, PODS.within(NAMESPACE), self._pod)
        self._of_nodes = Informer(client, NODES.everywhere(), self._node)
        self._of_reports = Informer(client, TOPOLOGIES.everywhere(), self._report)

    async def run(self) -> None:
        beside: dict[str, tasks.Part] = {"nodes": self._of_nodes.run(), "reports": self._of_reports.run()}
        await tasks.together(self._look(), {"pods": self._informed.run(), **beside})

    async def relisted(self) -> None:
        """Wait until the current state is known."""
        informers = (self._informed, self._of_nodes, self._of_reports)
        await asyncio.gather(*(each.relisted() for each in informers))

    def _pod(self, change: Change[Pod]) -> None:
        if change.new is None:
            gone = change.old
            if gone is not None and self.pods.pop(gone.metadata.uid, None) is not None:
                self._steps(gone, change.final or gone)
                self.history.write("gone", name=gone.metadata.name, uid=gone.metadata.uid)
            return
        self.pods[change.new.metadata.uid] = change.new
        self._steps(change.old, change.new)

    def _steps(self, old: Pod | None, new: Pod) -> None:
        before = old or Pod(metadata=new.metadata)
        name, uid, node = new.metadata.name, new.metadata.uid, new.spec.node_name
        if old is None:
            self.history.write("created", name=name, uid=uid, devices=asked(new), priority=new.spec.priority)
        nominated = new.status.nominated_node_name
        if nominated and (old is None or nominated != before.status.nominated_node_name):
            self.history.write("nominated", name=name, uid=uid, node=nominated)
        if node and (old is None or not before.spec.node_name):
            self._bound(new)
        if not node and waits(new) and waits(new) != waits(before):
            self.history.write("waits", name=name, uid=uid, words=waits(new))
        target = disruption(new)
        if target is not None and disruption(before) is None:
            self.history.write("disrupted", name=name, uid=uid, node=node, why=target.reason, words=target.message)
        if new.has_started and not before.has_started:
            self.history.write("started", name=name, uid=uid, node=node)
        if new.status.is_finished and not before.status.is_finished:
            status = new.status
            self.history.write(
                "ended", name=name, uid=uid, node=node, phase=status.phase, why=status.reason, words=status.message
            )

    def _bound(self, pod: Pod) -> None:
        meta, node = pod.metadata, pod.spec.node_name
        loose = self._lab.nodes[node].spec.settings.topology_policy not in STRICT
        predicted = placementannotation.decode(meta) or {}
        self.history.write("bound", name=meta.name, uid=meta.uid, node=node, predicted=predicted, loose=loose)

    def _node(self, change: Change[Node]) -> None:
        if change.new is None:
            return
        offered = {each: amount.value for each, amount in change.new.allocatable.items() if "/" in each}
        self._offered(change.new.metadata.name, "Node", offered)

    def _offered(self, node: str, by: str, devices: Mapping[str, int]) -> None:
        if devices != self._offers.get((node, by)):
            self._offers[node, by] = devices
            self.history.write("offers", node=node, why=by, devices=devices)

    def _report(self, change: Change[wire.NodeResourceTopology]) -> None:
        if change.new is None:
            if change.old is not None:
                self._reported.pop(change.old.metadata.name, None)
                self.history.write("report-deleted", node=change.old.metadata.name)
            return
        topology = normalise.normalise(change.new)
        pods = topology.facts.placements or ()
        self._reported[topology.node] = {(pod.uid, c.container): c.cpus for pod in pods for c in pod.holdings if c.cpus}
        cpus = {zone.id: zone.resources["cpu"].available // 1000 for zone in topology.zones if "cpu" in zone.resources}
        free = ", ".join(f"{zone}: {count}" for zone, count in cpus.items())
        uids = tuple(sorted(pod.uid for pod in pods))
        self.history.write("reported", node=topology.node, uids=uids, words=f"CPUs free by zone {free}")
        offered = Counter[str]()
        for zone in topology.zones:
            offered.update({name: amounts.allocatable for name, amounts in zone.resources.items() if "/" in name})
        self._offered(topology.node, "report", offered)

    def forget(self, node: str) -> None:
        """The node has left; its files are gone."""
        self._reported.pop(node, None)
        if self.checkpoints.pop(node, None) is not None:
            self._note(node, {})
        if node in self._behind:
            self._behind.discard(node)
            self.history.write("level", node=node)

    async def _look(self) -> None:
        while True:
            for name, node in self._lab.nodes.items():
                try:
                    found = read(node, self.checkpoints.get(name))
                except (BadObject, OSError):
                    continue  # half-written, or not written yet
                if found is not self.checkpoints.get(name):
                    self.checkpoints[name] = found
                    self._note(name, holdings(node.spec.machine, found))
                self._compare(name)
            await asyncio.sleep(LOOK)

    def _note(self, node: str, holdings: Mapping[str, Mapping[str, Holding]]) -> None:
        held = self._held.setdefault(node, {})
        for uid in held.keys() - holdings.keys():
            del held[uid]
            self.history.write("freed", node=node, uid=uid)
        for uid, containers in holdings.items():
            known = held.get(uid, {})
            # Managers release a container's resources one after the other; what is released still counts as the pod's.
            if _has_cpus(known) and not _has_cpus(containers) and uid not in self._without_cpus:
                self._without_cpus.add(uid)
                self.history.write("cpus-freed", node=node, uid=uid)
            new = {each: holding.over(known.get(each, Holding())) for each, holding in containers.items()}
            if new != known:
                held[uid] = {**known, **new}
                self.history.write("holds", node=node, uid=uid, holds=new)

    def _compare(self, node: str) -> None:
        written = self.checkpoints[node].cpus.assignments
        alive = {uid for uid, pod in self.pods.items() if pod.spec.node_name == node and _stays(pod)}
        held = {(uid, each): cpus for uid in alive for each, cpus in written.get(uid, {}).items()}
        reported = {key: cpus for key, cpus in self._reported.get(node, {}).items() if key[0] in alive}
        if (held != reported) != (node in self._behind):
            self._behind ^= {node}
            self.history.write("behind" if held != reported else "level", node=node)


def _has_cpus(holdings: Mapping[str, Holding]) -> bool:
    return any(each.cpus for each in holdings.values())


def _stays(pod: Pod) -> bool:
    return not pod.status.is_finished and pod.metadata.deletion_timestamp is None


def waits(pod: Pod) -> str:
    """The scheduler's message why the pod is pending; empty if there is none."""
    refused = (each for each in pod.status.conditions if each.type == "PodScheduled" and each.status == "False")
    return next((each.message for each in refused), "")


def disruption(pod: Pod) -> PodCondition | None:
    """The condition of a pod that another program ends: preempted, evicted."""
    targets = (each for each in pod.status.conditions if each.type == "DisruptionTarget" and each.status == "True")
    return next(targets, None)


def asked(pod: Pod) -> dict[str, int]:
    """Requested devices by resource, summed over all containers: an upper limit."""
    found: dict[str, int] = {}
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        for name, amount in container.resources.limits.items():
            if "/" in name:
                found[name] = found.get(name, 0) + amount.value
    return found
