"""Recorded pods under the device manager: hints, allocation with a scripted plugin, pod removal, op by op.

Without a preference of the plugin the kubelet picks at random among equal devices. For those resources the recordings
hold the number of devices by class (aligned, unaligned, without topology) instead of their ids (kubelet spec 7)."""

from msgspec import UNSET, Struct, UnsetType

from numalign.kubelet import versions
from numalign.kubelet.demand import PodDemand
from numalign.kubelet.device import DeviceManager, Held, Ids, Preference, lowest_ids
from numalign.kubelet.topologymanager.mask import Mask
from numalign.kubelet.versions import Minor
from numalign.oracle.kubelet import forms
from numalign.oracle.kubelet.family import CaseOrigin, Family
from numalign.oracle.kubelet.forms import Allocate, ContainerHints, ManagerOp, PodHints, RecordedHints, Zones


class RemovePod(ManagerOp, frozen=True, kw_only=True, tag="remove_pod"):
    pass


class DeviceCase(Struct, frozen=True, kw_only=True):
    id: str
    numa_nodes: Zones
    resources: forms.Plugins
    pods: tuple[forms.Pod, ...]
    ops: tuple[PodHints | ContainerHints | Allocate | RemovePod, ...]


class PodDevicesHinted(PodHints, frozen=True, kw_only=True):
    hints: RecordedHints | UnsetType


class ContainerDevicesHinted(ContainerHints, frozen=True, kw_only=True):
    hints: RecordedHints | UnsetType


class PreferredAllocationCall(Struct, frozen=True, kw_only=True):
    """One GetPreferredAllocation call; sets are in ascending order."""

    resource: str
    available: Ids
    must_include: Ids
    size: int
    returned: Ids


class DeviceClassCounts(Struct, frozen=True, kw_only=True):
    aligned: int | UnsetType = UNSET
    unaligned: int | UnsetType = UNSET
    no_topology: int | UnsetType = UNSET
    total: int | UnsetType = UNSET
    """Used instead of the others if there is no affinity."""


class DevicesAllocated(Allocate, frozen=True, kw_only=True):
    error: str | UnsetType
    devices: Held | UnsetType
    class_counts: dict[str, DeviceClassCounts] | UnsetType
    preferred_calls: tuple[PreferredAllocationCall, ...] | UnsetType


class DeviceAnswer(DeviceCase, frozen=True, kw_only=True):
    ops: tuple[PodDevicesHinted | ContainerDevicesHinted | DevicesAllocated | RemovePod, ...]


def answer(case: DeviceCase, origin: CaseOrigin) -> DeviceAnswer:
    replay = DeviceReplay(case, origin.minor)
    pods = forms.by_uid(case.pods)
    return forms.completed(DeviceAnswer, case, ops=tuple(replay.op(op, pods[op.pod]) for op in case.ops))


class DeviceReplay:
    """Replays all ops of one case: the device manager's state, the active pods, and the plugin calls."""

    def __init__(self, case: DeviceCase, minor: Minor) -> None:
        machine = forms.devices_only(case.numa_nodes, case.resources)
        self.manager = DeviceManager(machine, versions.behaviour(minor), self._prefer)
        self.state = self.manager.initial()
        self.active: dict[str, tuple[str, ...]] = {}
        self.calls: list[PreferredAllocationCall] = []

    def op(
        self, op: PodHints | ContainerHints | Allocate | RemovePod, pod: PodDemand
    ) -> PodDevicesHinted | ContainerDevicesHinted | DevicesAllocated | RemovePod:
        if isinstance(op, RemovePod):
            self.active.pop(pod.uid, None)
            return op
        self.active[pod.uid] = tuple(each.name for each in pod.containers)
        self.state = self.manager.collect(self.state, self.active)
        if isinstance(op, Allocate):
            return self._allocated(op, pod)
        if isinstance(op, PodHints):
            hints = forms.hint_map(self.manager.pod_hints(self.state, pod))
            return forms.completed(PodDevicesHinted, op, hints=forms.unless_empty(hints))
        hints = forms.hint_map(self.manager.container_hints(self.state, pod, pod.container(op.container)))
        return forms.completed(ContainerDevicesHinted, op, hints=forms.unless_empty(hints))

    def _allocated(self, op: Allocate, pod: PodDemand) -> DevicesAllocated:
        container, affinity = pod.container(op.container), op.affinity.model.mask
        self.calls.clear()
        self.state, refusal = self.manager.allocate(self.state, pod, container, affinity)
        # The devices of a refused container are not recorded; the plugin calls made for it are.
        held = {} if refusal else self.state.held(pod.uid, container.name)
        named = {resource: ids for resource, ids in held.items() if self._names(resource)}
        counted = {
            resource: self._classes(resource, ids, affinity) for resource, ids in held.items() if resource not in named
        }
        return forms.completed(
            DevicesAllocated,
            op,
            error=refusal.error if refusal else UNSET,
            devices=forms.unless_empty(named),
            class_counts=forms.unless_empty(counted),
            preferred_calls=forms.unless_empty(tuple(sorted(self.calls, key=lambda call: call.resource))),
        )

    def _names(self, resource: str) -> bool:
        return self.manager.machine.devices[resource].preferred_allocation

    def _classes(self, resource: str, ids: Ids, affinity: Mask | None) -> DeviceClassCounts:
        if affinity is None:
            return DeviceClassCounts(total=len(ids))
        split = self.manager.inventories[resource].split(ids, affinity)
        return DeviceClassCounts(
            aligned=len(split.aligned), unaligned=len(split.unaligned), no_topology=len(split.without)
        )

    def _prefer(self, asked: Preference) -> Ids:
        """The recorder's plugin: the required devices, completed with the lowest ids."""
        returned = lowest_ids(asked)
        call = PreferredAllocationCall(
            resource=asked.resource,
            available=asked.available,
            must_include=asked.must_include,
            size=asked.size,
            returned=returned,
        )
        self.calls.append(call)
        return returned


FAMILY = Family("device_hints", DeviceCase, answer)
