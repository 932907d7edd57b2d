"""The allocations of the kubelet's managers as the model keeps them, under the uids that a report uses.

`inventory` takes the state of each manager from here. Checkpoints take precedence where they can be read, because they
include plain init containers; podresources lists the pods that still exist. Whatever a pod may hold counts as used: an
entry whose pod is unknown stays charged without a pod."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final, TypeVar

from msgspec import Struct, structs

from numalign.agent.inventory import podidentity
from numalign.agent.inventory.plainform import real
from numalign.agent.inventory.podidentity import KnownUids, Match
from numalign.agent.inventory.readings import Readings
from numalign.agent.sources.podresources import ContainerResources, MemoryEntry, PodResources
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import Container, Pod, PodSpec
from numalign.kubelet.cpu.state import CPUState
from numalign.kubelet.device import DeviceState, Held, Ids
from numalign.kubelet.machine import zonecores
from numalign.kubelet.memory.state import Block, MemoryState, charge
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState
from numalign.kubelet.topologymanager import mask as masks

STATIC_CPUS: Final = "static"
STATIC_MEMORY: Final = "Static"
PODS: Final = 1024
"""Pods whose last state is cached; more than a node runs."""
T = TypeVar("T")


class Listed(Struct, frozen=True):
    """A pod that the kubelet lists, with its uids."""

    pod: PodResources
    kept: str
    """The uid in the kubelet's checkpoints; empty: unknown."""
    uid: str
    """The uid in the API server."""

    @property
    def identity(self) -> str:
        return self.uid or f"{self.pod.namespace}/{self.pod.name}"


class Allocations:
    """Combines the checkpoints and the listed pods into the state of the managers."""

    def __init__(self, kubelet: Kubelet, readings: Readings, match: Match, uids: KnownUids) -> None:
        self._kubelet, self._readings, self._match = kubelet, readings, match
        self._listed = [_identified(pod, match, uids) for pod in readings.pods or ()]
        self._known = {each.kept: each.identity for each in self._listed if each.kept}

    def state(self) -> KubeletState:
        active = {each.identity: self._active(each) for each in self._listed}
        return KubeletState(devices=self._devices(), cpu=self._cpus(), memory=self._memory(), active=active)

    def contradictions(self) -> Iterator[str]:
        """Contradictions between the kubelet's answers and its checkpoints or configuration."""
        yield from self._offer_contradicted()
        checkpoint = self._readings.cpu_checkpoint
        if checkpoint is None or self._kubelet.cpu is None:
            return
        for each in self._listed:
            written = checkpoint.state.assignments.get(each.kept, {})
            for container in each.pod.containers if each.kept else ():
                if container.cpus and written.get(container.name, 0) != masks.of(container.cpus):
                    name = f"{each.pod.namespace}/{each.pod.name}"
                    yield f"pod {name}, container {container.name}: CPUs differ from the checkpoint"

    def _offer_contradicted(self) -> Iterator[str]:
        """Ignores CPUs that went offline since the kubelet started: it does not notice that."""
        cpu, offered = self._kubelet.cpu, self._readings.allocatable
        reported = masks.of(offered.cpus) & self._kubelet.machine.cpus if offered is not None else None
        expected = cpu.allocatable if cpu is not None else 0
        if reported is not None and reported != expected:
            yield (
                f"the kubelet reports CPUs {zonecores.short_text(reported) or 'none'} as allocatable; with"
                f" {self._readings.settings_source} they would be {zonecores.short_text(expected) or 'none'}"
            )

    def _active(self, each: Listed) -> Pod:
        """A pod of which only the containers are known: those that are not listed are plain init containers."""
        listed = tuple(container.name for container in each.pod.containers)
        inits = tuple(name for name in self._written(each.kept) if name not in listed)
        return _pod(each.pod.namespace, each.pod.name, each.uid, listed, inits)

    def _written(self, uid: str) -> tuple[str, ...]:
        """Containers of this pod with an entry in a checkpoint."""
        read, found = self._readings, dict[str, None]()
        if read.cpu_checkpoint is not None:
            found |= dict.fromkeys(read.cpu_checkpoint.state.assignments.get(uid, ()))
        if read.memory_checkpoint is not None:
            found |= dict.fromkeys(read.memory_checkpoint.state.blocks.get(uid, ()))
        if read.device_checkpoint is not None:
            found |= dict.fromkeys(read.device_checkpoint.state.pods.get(uid, ()))
        return tuple(found)

    def _cpus(self) -> CPUState | None:
        if self._kubelet.cpu is None:
            return None
        checkpoint = self._readings.cpu_checkpoint
        if checkpoint is None or checkpoint.policy != STATIC_CPUS:
            return self._cpus_listed(self._kubelet.cpu.initial())
        state = checkpoint.state
        return CPUState(default=state.default, assignments=self._kept(state.assignments), pods=self._kept(state.pods))

    def _memory(self) -> MemoryState | None:
        manager, checkpoint = self._kubelet.memory, self._readings.memory_checkpoint
        if manager is None:
            return None
        if checkpoint is None or checkpoint.policy != STATIC_MEMORY:
            return self._memory_listed(manager.initial())
        state = checkpoint.state
        if manager.allocatable.keys() - state.zones.keys():
            # From another machine, or from before the kubelet knew its zones.
            return self._memory_listed(manager.initial())
        return MemoryState(zones=state.zones, blocks=self._kept(state.blocks), pods=self._kept(state.pods))

    def _devices(self) -> DeviceState:
        """As listed: the kubelet drops devices of deleted pods before it answers (exporter spec 2.4)."""
        checkpoint = self._readings.device_checkpoint
        written: Mapping[str, Mapping[str, Held]] = checkpoint.state.pods if checkpoint is not None else {}
        found: dict[str, Mapping[str, Held]] = {}
        for each in self._listed:
            held = {container.name: _held(container) for container in each.pod.containers}
            before = {name: devices for name, devices in written.get(each.kept, {}).items() if name not in held}
            if before or any(held.values()):
                found[each.identity] = {**before, **held}
        return DeviceState(pods=found)

    def _kept(self, entries: Mapping[str, T]) -> dict[str, T]:
        """Without entries whose pod is unknown: they stay charged, and no pod's end frees them. What pods hold that are
        not active is free."""
        unknown = self._match.open - self._match.inactive
        return {self._known.get(uid, uid): each for uid, each in entries.items() if uid not in unknown}

    def _cpus_listed(self, empty: CPUState) -> CPUState:
        assignments, whole, taken = dict[str, Mapping[str, int]](), dict[str, int](), 0
        for each in self._listed:
            own = {one.name: masks.of(one.cpus) for one in each.pod.containers if one.cpus}
            assignments |= {each.identity: own} if own else {}
            whole |= {each.identity: masks.of(each.pod.cpus)} if each.pod.cpus else {}
            taken |= _union(own.values()) | masks.of(each.pod.cpus)
        return CPUState(default=empty.default & ~taken, assignments=assignments, pods=whole)

    def _memory_listed(self, empty: MemoryState) -> MemoryState:
        state = empty
        for each in self._listed:
            own = {one.name: _blocks(one.memory) for one in each.pod.containers if one.memory}
            for block in (block for blocks in own.values() for block in blocks if _is_known(empty, block)):
                state = structs.replace(state, zones=charge(state.zones, block, block.size))
            state = state.with_blocks(each.identity, own) if own else state
        return state


def _identified(pod: PodResources, match: Match, uids: KnownUids) -> Listed:
    """The API server's uid takes precedence: a static pod has another one in its kubelet."""
    name = pod.namespace, pod.name
    kept = match.kept.get(name, "")
    public = uids.public.get(name)
    return Listed(pod, kept, public or ("" if podidentity.STATIC.fullmatch(kept) else kept))


@lru_cache(maxsize=PODS)
def _pod(namespace: str, name: str, uid: str, containers: tuple[str, ...], inits: tuple[str, ...]) -> Pod:
    spec = PodSpec(containers=_named(containers), init_containers=_named(inits))
    return Pod(metadata=ObjectMeta(namespace=namespace, name=name, uid=uid), spec=spec)


def _held(container: ContainerResources) -> Held:
    found: dict[str, Ids] = {}
    for entry in container.devices:
        found[entry.resource] = found.get(entry.resource, frozenset()) | frozenset(entry.ids)
    return found


def _blocks(entries: Iterable[MemoryEntry]) -> tuple[Block, ...]:
    blocks = (Block(each.type, masks.of(real(each.zones)), each.size) for each in entries)
    return tuple(block for block in blocks if block.size and block.zones)


def _is_known(empty: MemoryState, block: Block) -> bool:
    """Whether the machine has this memory in this zone."""
    zones = masks.members(block.zones)
    return all(zone in empty.zones and block.kind in empty.zones[zone].tables for zone in zones)


def _named(names: Iterable[str]) -> tuple[Container, ...]:
    return tuple(Container(name=each) for each in names)


def _union(sets: Iterable[int]) -> int:
    found = 0
    for each in sets:
        found |= each
    return found
