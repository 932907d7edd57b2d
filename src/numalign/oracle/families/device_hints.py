"""Recorded pods under the device manager: hints, allocation with a scripted plugin, pod removal, op by op.

Without a preference of the plugin the kubelet picks at random among equal devices. For those resources the recordings
hold the number of devices by class (aligned, unaligned, without topology) instead of their ids (kubelet spec 7)."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from numalign.kubelet import versions
from numalign.kubelet.demand import PodDemand
from numalign.kubelet.device import DeviceManager, Held, Ids, Preference, lowest_ids
from numalign.kubelet.mask import Mask
from numalign.kubelet.versions import Minor
from numalign.oracle.families import encodings, hardware, podforms
from numalign.oracle.families.encodings import RecordedHints, Zones
from numalign.oracle.families.family import Family, Origin
from numalign.oracle.families.managerops import Allocate, ContainerHints, Op, PodHints


class RemovePod(Op, frozen=True, kw_only=True, tag="remove_pod"):
    pass


class Case(Struct, frozen=True, kw_only=True):
    id: str
    numa_nodes: Zones
    resources: hardware.Plugins
    pods: tuple[podforms.Pod, ...]
    ops: tuple[PodHints | ContainerHints | Allocate | RemovePod, ...]


class PodHinted(PodHints, frozen=True, kw_only=True):
    hints: RecordedHints | UnsetType


class ContainerHinted(ContainerHints, frozen=True, kw_only=True):
    hints: RecordedHints | UnsetType


class Call(Struct, frozen=True, kw_only=True):
    """One GetPreferredAllocation call; sets are in ascending order."""

    resource: str
    available: Ids
    must_include: Ids
    size: int
    returned: Ids


class Classes(Struct, frozen=True, kw_only=True):
    aligned: int | UnsetType = UNSET
    unaligned: int | UnsetType = UNSET
    no_topology: int | UnsetType = UNSET
    total: int | UnsetType = UNSET
    """Used instead of the others if there is no affinity."""


class Allocated(Allocate, frozen=True, kw_only=True):
    error: str | UnsetType
    devices: Held | UnsetType
    class_counts: dict[str, Classes] | UnsetType
    preferred_calls: tuple[Call, ...] | UnsetType


class Answer(Case, frozen=True, kw_only=True):
    ops: tuple[PodHinted | ContainerHinted | Allocated | RemovePod, ...]


def answer(case: Case, origin: Origin) -> Answer:
    replay = Replay(case, origin.minor)
    pods = podforms.by_uid(case.pods)
    return encodings.completed(Answer, case, ops=tuple(replay.op(op, pods[op.pod]) for op in case.ops))


class Replay:
    """Replays all ops of one case: the device manager's state, the active pods, and the plugin calls."""

    def __init__(self, case: Case, minor: Minor) -> None:
        machine = hardware.devices_only(case.numa_nodes, case.resources)
        self.manager = DeviceManager(machine, versions.behaviour(minor), self._prefer)
        self.state = self.manager.initial()
        self.active: dict[str, tuple[str, ...]] = {}
        self.calls: list[Call] = []

    def op(
        self, op: PodHints | ContainerHints | Allocate | RemovePod, pod: PodDemand
    ) -> PodHinted | ContainerHinted | Allocated | RemovePod:
        if isinstance(op, RemovePod):
            self.active.pop(pod.uid, None)
            return op
        self.active[pod.uid] = tuple(each.name for each in pod.containers)
        self.state = self.manager.collect(self.state, self.active)
        if isinstance(op, Allocate):
            return self._allocated(op, pod)
        if isinstance(op, PodHints):
            hints = encodings.hint_map(self.manager.pod_hints(self.state, pod))
            return encodings.completed(PodHinted, op, hints=encodings.unless_empty(hints))
        hints = encodings.hint_map(self.manager.container_hints(self.state, pod, pod.container(op.container)))
        return encodings.completed(ContainerHinted, op, hints=encodings.unless_empty(hints))

    def _allocated(self, op: Allocate, pod: PodDemand) -> Allocated:
        container, affinity = pod.container(op.container), op.affinity.model.mask
        self.calls.clear()
        self.state, refusal = self.manager.allocate(self.state, pod, container, affinity)
        # The devices of a refused container are not recorded; the plugin calls made for it are.
        held = {} if refusal else self.state.held(pod.uid, container.name)
        named = {resource: ids for resource, ids in held.items() if self._names(resource)}
        counted = {
            resource: self._classes(resource, ids, affinity) for resource, ids in held.items() if resource not in named
        }
        return encodings.completed(
            Allocated,
            op,
            error=refusal.error if refusal else UNSET,
            devices=encodings.unless_empty(named),
            class_counts=encodings.unless_empty(counted),
            preferred_calls=encodings.unless_empty(tuple(sorted(self.calls, key=lambda call: call.resource))),
        )

    def _names(self, resource: str) -> bool:
        return self.manager.machine.devices[resource].preferred_allocation

    def _classes(self, resource: str, ids: Ids, affinity: Mask | None) -> Classes:
        if affinity is None:
            return Classes(total=len(ids))
        split = self.manager.inventories[resource].split(ids, affinity)
        return Classes(aligned=len(split.aligned), unaligned=len(split.unaligned), no_topology=len(split.without))

    def _prefer(self, asked: Preference) -> Ids:
        """The recorder's plugin: the required devices, completed with the lowest ids."""
        returned = lowest_ids(asked)
        call = Call(
            resource=asked.resource,
            available=asked.available,
            must_include=asked.must_include,
            size=asked.size,
            returned=returned,
        )
        self.calls.append(call)
        return returned


FAMILY = Family("device_hints", Case, answer)
