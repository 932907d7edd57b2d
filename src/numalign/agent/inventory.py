"""What the readings amount to: the machine with its devices, the kubelet, and what its managers hold.

`main` asks for a report after each look. Everything comes down to the model's own `Kubelet` and `KubeletState`, so that
`kubelet.report` writes what it would write about a simulated node. Checkpoints count where they can be read, because
they know what plain init containers hold; podresources says which pods are still there. What may be held by somebody
is not free: where it is open whose an entry is, it stays charged and nobody is named. Others' forms are `plainform`'s,
with what is free as the books have it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, TypeVar

from msgspec import Struct, structs

from numalign.agent import exclusions, matching, offering, plainform
from numalign.agent.exclusions import Exclusions
from numalign.agent.matching import Match, Name, Told
from numalign.agent.placing import Placing
from numalign.agent.plainform import real
from numalign.agent.podresources import Allocatable, ContainerResources, DeviceEntry, MemoryEntry, PodResources
from numalign.agent.readings import Readings
from numalign.api.meta import ObjectMeta
from numalign.api.nodetopology import Amounts, NodeTopology, Zone
from numalign.api.pod import Container, Pod, PodSpec
from numalign.kubelet import admission, report
from numalign.kubelet import mask as masks
from numalign.kubelet.cpu.state import CPUState
from numalign.kubelet.device import DeviceState, Held, Ids
from numalign.kubelet.machine import Device, DevicePlugin, Machine
from numalign.kubelet.memory.state import Block, MemoryState, charge
from numalign.kubelet.report import Pods
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState

Mode = Literal["own", "rte", "nfd"]
STATIC_CPUS, STATIC_MEMORY = "static", "Static"
T = TypeVar("T")


class Inventory(Struct, frozen=True):
    """The node as it was at one look."""

    kubelet: Kubelet
    state: KubeletState
    """Without what pods left behind."""
    placed: Pods
    """What pods hold."""
    pods: tuple[PodResources, ...] = ()
    """As the kubelet lists them."""
    allocatable: Allocatable = Allocatable()
    unlisted: bool = False
    """Whether books have entries of pods that exist, or may exist, and are not listed."""
    contradictions: tuple[str, ...] = ()
    """Where the kubelet's answer and its checkpoints do not tell the same."""

    def report(self, node: str, mode: Mode = "own", left_out: Exclusions = exclusions.NONE) -> NodeTopology:
        own = report.told(node, self.kubelet, self.state, self.placed)
        if mode == "own":
            return own
        counted = plainform.zones(self.kubelet.machine, self.allocatable, self.pods, mode, left_out.resources)
        zones = tuple(_by_the_books(zone, books) for zone, books in zip(counted, own.zones, strict=True))
        signed = [pod for pod in self.pods if not left_out.has(pod.namespace, pod.name)]
        return structs.replace(plainform.of(node, self.kubelet, signed, mode), zones=zones)


def _by_the_books(zone: Zone, books: Zone) -> Zone:
    """They know of plain init containers, of pods that a kubelet which just started does not list yet, and how a block
    is split."""
    free = {name: each.available for name, each in books.resources.items()}
    resources = {
        name: Amounts(each.capacity, each.allocatable, min(each.allocatable, free.get(name, each.available)))
        for name, each in zone.resources.items()
    }
    return structs.replace(zone, resources=resources)


def of(readings: Readings, machine: Machine, told: Told, placing: Placing | None = None) -> Inventory:
    """StartRefusal where no kubelet would start with these settings on this machine: then one was read wrongly.
    `placing`: what the last look of the same node left."""
    match, placing = matching.of(readings, told), placing or Placing()
    kubelet = placing.started(structs.replace(machine, devices=_plugins(readings, match.open)), readings.settings)
    books = _Books(kubelet, readings, match, told)
    state = KubeletState(
        devices=books.devices(), cpu=books.cpus(), memory=books.memory(), active=dict(map(books.active, books.pods))
    )
    state = admission.collect(kubelet, state)
    return Inventory(
        kubelet,
        state,
        placing.pods(kubelet, state),
        books.pods,
        readings.allocatable or offering.of(kubelet),
        unlisted=bool(match.open),
        contradictions=tuple(books.contradictions()),
    )


class _Books(Struct, frozen=True):
    """The managers' books under the uids by which a report calls pods."""

    kubelet: Kubelet
    readings: Readings
    match: Match
    told: Told

    @property
    def pods(self) -> tuple[PodResources, ...]:
        return self.readings.pods or ()

    def active(self, pod: PodResources) -> tuple[str, Pod]:
        """A pod of which nothing but its containers is known: those that are not listed are plain init containers."""
        listed = tuple(each.name for each in pod.containers)
        inits = tuple(name for name in self._written(pod) if name not in listed)
        spec = PodSpec(containers=_named(listed), init_containers=_named(inits))
        metadata = ObjectMeta(namespace=pod.namespace, name=pod.name, uid=self._uid(pod))
        return self._identity(pod), Pod(metadata=metadata, spec=spec)

    def cpus(self) -> CPUState | None:
        if self.kubelet.cpu is None:
            return None
        checkpoint = self.readings.cpu_checkpoint
        if checkpoint is None or checkpoint.policy != STATIC_CPUS:
            return self._cpus_listed(self.kubelet.cpu.initial())
        state = checkpoint.state
        return CPUState(default=state.default, assignments=self._kept(state.assignments), pods=self._kept(state.pods))

    def memory(self) -> MemoryState | None:
        if self.kubelet.memory is None:
            return None
        checkpoint = self.readings.memory_checkpoint
        if checkpoint is None or checkpoint.policy != STATIC_MEMORY:
            return self._memory_listed(self.kubelet.memory.initial())
        state = checkpoint.state
        return MemoryState(zones=state.zones, blocks=self._kept(state.blocks), pods=self._kept(state.pods))

    def devices(self) -> DeviceState:
        """As they are listed: the kubelet forgets those of pods that are gone before it answers (exporter spec 2.4)."""
        checkpoint = self.readings.device_checkpoint
        found: dict[str, Mapping[str, Held]] = {}
        for pod in self.pods:
            kept = self.match.kept.get(_name(pod), "")
            before = checkpoint.state.pods.get(kept, {}) if checkpoint is not None else {}
            listed = {each.name: _held(each) for each in pod.containers}
            found[self._identity(pod)] = {**{n: held for n, held in before.items() if n not in listed}, **listed}
        return DeviceState(pods=found)

    def contradictions(self) -> Iterator[str]:
        checkpoint = self.readings.cpu_checkpoint
        for pod in self.pods if checkpoint is not None and self.kubelet.cpu is not None else ():
            uid = self.match.kept.get(_name(pod))
            written = checkpoint.state.assignments.get(uid, {}) if checkpoint is not None and uid else {}
            for container in pod.containers if uid else ():
                if written.get(container.name, 0) != masks.of(container.cpus) and container.cpus:
                    yield f"pod {pod.namespace}/{pod.name}, container {container.name}: CPUs differ from the checkpoint"

    def _uid(self, pod: PodResources) -> str:
        """The one that others know the pod by comes first: a static pod has another one with its kubelet."""
        kept = self.match.kept.get(_name(pod), "")
        return self.told.public.get(_name(pod)) or ("" if matching.STATIC.fullmatch(kept) else kept)

    def _identity(self, pod: PodResources) -> str:
        return self._uid(pod) or f"{pod.namespace}/{pod.name}"

    def _written(self, pod: PodResources) -> tuple[str, ...]:
        uid, found = self.match.kept.get(_name(pod), ""), dict[str, None]()
        cpu, memory, devices = (
            self.readings.cpu_checkpoint,
            self.readings.memory_checkpoint,
            self.readings.device_checkpoint,
        )
        found |= dict.fromkeys(cpu.state.assignments.get(uid, ()) if cpu is not None else ())
        found |= dict.fromkeys(memory.state.blocks.get(uid, ()) if memory is not None else ())
        found |= dict.fromkeys(devices.state.pods.get(uid, ()) if devices is not None else ())
        return tuple(found)

    def _kept(self, entries: Mapping[str, T]) -> dict[str, T]:
        """Without those that may be somebody's: taken out here, they stay charged and are nobody's to give back."""
        known = {kept: self._identity(pod) for pod in self.pods if (kept := self.match.kept.get(_name(pod)))}
        return {known.get(uid, uid): each for uid, each in entries.items() if uid not in self.match.open}

    def _cpus_listed(self, empty: CPUState) -> CPUState:
        assignments, whole, taken = dict[str, Mapping[str, int]](), dict[str, int](), 0
        for pod in self.pods:
            own = {each.name: masks.of(each.cpus) for each in pod.containers if each.cpus}
            assignments |= {self._identity(pod): own} if own else {}
            whole |= {self._identity(pod): masks.of(pod.cpus)} if pod.cpus else {}
            taken |= _union(own.values()) | masks.of(pod.cpus)
        return CPUState(default=empty.default & ~taken, assignments=assignments, pods=whole)

    def _memory_listed(self, empty: MemoryState) -> MemoryState:
        state = empty
        for pod in self.pods:
            own = {each.name: _blocks(each.memory) for each in pod.containers if each.memory}
            for block in (block for blocks in own.values() for block in blocks if _is_known(empty, block)):
                state = structs.replace(state, zones=charge(state.zones, block, block.size))
            state = state.with_blocks(self._identity(pod), own) if own else state
        return state


def _plugins(readings: Readings, unlisted: frozenset[str]) -> dict[str, DevicePlugin]:
    """Healthy devices as they are offered; those that pods have and nobody offers any more are sick. So are, for the
    time being, those of pods that may exist and are not listed."""
    offered = _zones_by_id(readings.allocatable.devices if readings.allocatable is not None else ())
    held = _zones_by_id(each for pod in readings.pods or () for one in pod.containers for each in one.devices)
    registered = readings.device_checkpoint.registered if readings.device_checkpoint is not None else {}
    found = {}
    for resource in sorted({*offered, *held, *registered}):
        known, used = offered.get(resource, {}), held.get(resource, {})
        spoken_for = _held_by(unlisted, resource, readings)
        healthy = [Device(each, zones, each not in spoken_for) for each, zones in sorted(known.items())]
        sick = [Device(each, zones, healthy=False) for each, zones in sorted(used.items()) if each not in known]
        # A topology without a zone keeps a device out of the list of what is offered (exporter spec 2.4).
        hidden = registered.get(resource, frozenset()) - known.keys() if readings.allocatable is not None else ()
        found[resource] = DevicePlugin(
            (*healthy, *_hidden(hidden, used), *(each for each in sick if each.id not in hidden))
        )
    return found


def _held_by(uids: Iterable[str], resource: str, readings: Readings) -> frozenset[str]:
    books = readings.device_checkpoint.state.pods if readings.device_checkpoint is not None else {}
    containers = (held for uid in uids for held in books.get(uid, {}).values())
    return frozenset(each for held in containers for each in held.get(resource, ()))


def _hidden(ids: Iterable[str], used: Mapping[str, tuple[int, ...] | None]) -> Iterator[Device]:
    return (Device(each, used.get(each) or ()) for each in sorted(ids))


def _zones_by_id(entries: Iterable[DeviceEntry]) -> dict[str, dict[str, tuple[int, ...] | None]]:
    """A device in several zones has an entry for each."""
    found: dict[str, dict[str, tuple[int, ...] | None]] = {}
    for entry in entries:
        devices = found.setdefault(entry.resource, {})
        for each in entry.ids:
            before = devices.get(each)
            here = None if entry.zones is None else real(entry.zones)
            devices[each] = here if before is None else tuple(sorted({*before, *(here or ())}))
    return found


def _held(container: ContainerResources) -> Held:
    found: dict[str, Ids] = {}
    for entry in container.devices:
        found[entry.resource] = found.get(entry.resource, frozenset()) | frozenset(entry.ids)
    return found


def _blocks(entries: Iterable[MemoryEntry]) -> tuple[Block, ...]:
    blocks = (Block(each.type, masks.of(real(each.zones)), each.size) for each in entries)
    return tuple(block for block in blocks if block.size and block.zones)


def _is_known(empty: MemoryState, block: Block) -> bool:
    """Whether the machine has such memory there."""
    zones = masks.members(block.zones)
    return all(zone in empty.zones and block.kind in empty.zones[zone].tables for zone in zones)


def _named(names: Iterable[str]) -> tuple[Container, ...]:
    return tuple(Container(name=each) for each in names)


def _name(pod: PodResources) -> Name:
    return pod.namespace, pod.name


def _union(sets: Iterable[int]) -> int:
    found = 0
    for each in sets:
        found |= each
    return found
