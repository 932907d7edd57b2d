"""The Device Manager: which devices a container gets, and its hints.

Devices count for pods of every QoS class and come from limits. Device ids are exact only where the plugin answers
GetPreferredAllocation; otherwise the kubelet picks at random among equal devices, and the model takes the lowest ids,
so that its answers hold by zone and not by id (kubelet spec 7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from functools import cached_property

from msgspec import Struct, field, structs

from numalign.kubelet.demand import ContainerDemand, PodDemand, Role
from numalign.kubelet.machine.machine import Device, DevicePlugin, Machine
from numalign.kubelet.refusals import Refusal
from numalign.kubelet.topologymanager import mask as masks
from numalign.kubelet.topologymanager.hints import HintList, Room, Supply, UnlistedHints
from numalign.kubelet.topologymanager.mask import Mask
from numalign.kubelet.topologymanager.merge import HintMap, Hints
from numalign.kubelet.versions import Behaviour

Ids = frozenset[str]
Held = Mapping[str, Ids]
"""Resource to device ids."""


class Preference(Struct, frozen=True):
    """A GetPreferredAllocation call: choose `size` of `available`, `must_include` among them."""

    resource: str
    available: Ids
    must_include: Ids
    size: int


def lowest_ids(asked: Preference) -> Ids:
    """The default answer of a plugin: the required devices, filled up with the lowest ids."""
    others = sorted(asked.available - asked.must_include)
    return asked.must_include | frozenset(others[: max(0, asked.size - len(asked.must_include))])


class ReusableDevices(Struct, frozen=True):
    """Devices that one pod's init containers held and its next container may reuse. Only the last pod's are kept."""

    uid: str = ""
    held: Held = field(default_factory=dict)


class DeviceState(Struct, frozen=True):
    """Allocated devices: pod uid to container name to resource to ids."""

    pods: Mapping[str, Mapping[str, Held]] = field(default_factory=dict)
    reuse: ReusableDevices = ReusableDevices()

    def held(self, uid: str, container: str) -> Held:
        return self.pods.get(uid, {}).get(container, {})

    def held_by_pod(self, uid: str, resource: str) -> Ids:
        return frozenset().union(*(held.get(resource, ()) for held in self.pods.get(uid, {}).values()))

    def reusable(self, uid: str, resource: str) -> Ids:
        return self.reuse.held.get(resource, frozenset()) if self.reuse.uid == uid else frozenset()

    def in_use(self, resource: str) -> Ids:
        return frozenset().union(*(self.held_by_pod(uid, resource) for uid in self.pods))

    def resources(self) -> set[str]:
        return {name for containers in self.pods.values() for held in containers.values() for name in held}

    def with_devices(self, uid: str, container: str, resource: str, ids: Ids) -> DeviceState:
        containers = self.pods.get(uid, {})
        held = {**containers.get(container, {}), resource: ids}
        return structs.replace(self, pods={**self.pods, uid: {**containers, container: held}})


class Affinity(Struct, frozen=True):
    """Free devices by their relation to the container's affinity."""

    aligned: Ids
    unaligned: Ids
    without: Ids
    """Devices without a topology, or all if the container has no affinity."""


class Inventory(Struct, frozen=True, dict=True):
    """One resource: its devices, by id and by zone set."""

    plugin: DevicePlugin

    @cached_property
    def by_id(self) -> Mapping[str, Device]:
        return {device.id: device for device in self.plugin.devices}

    @cached_property
    def healthy(self) -> Ids:
        return frozenset(device.id for device in self.plugin.devices if device.healthy)

    @cached_property
    def has_topology(self) -> bool:
        return any(device.zones for device in self.plugin.devices)

    @cached_property
    def zones(self) -> Mapping[str, Mask]:
        """The zones of each device that names any."""
        return {device.id: masks.of(device.zones) for device in self.plugin.devices if device.zones}

    def counted(self, ids: Iterable[str], domain: Mask) -> Mapping[Mask, int]:
        """How many of the devices lie in each set of known zones."""
        counts = Counter(self.zones.get(each, 0) & domain for each in ids)
        del counts[0]
        return counts

    def split(self, ids: Ids, affinity: Mask | None) -> Affinity:
        if affinity is None or not self.has_topology:
            return Affinity(frozenset(), frozenset(), ids)
        placed = ids & self.zones.keys()
        aligned = frozenset(each for each in placed if self.zones[each] & affinity)
        return Affinity(aligned, placed - aligned, ids - placed)


class DeviceManager(Struct, frozen=True, dict=True):
    """All plugins of one kubelet process. `prefer` stands for the plugins' own choice."""

    machine: Machine
    behaviour: Behaviour
    prefer: Callable[[Preference], Ids] = lowest_ids

    @cached_property
    def inventories(self) -> Mapping[str, Inventory]:
        return {resource: Inventory(plugin) for resource, plugin in self.machine.devices.items()}

    def initial(self) -> DeviceState:
        return DeviceState()

    def requested(self, state: DeviceState, limits: Mapping[str, int]) -> dict[str, int]:
        """The limits that are device resources: registered ones, and those of a plugin that is gone but in use."""
        known = self.inventories.keys() | state.resources()
        return {resource: count for resource, count in limits.items() if resource in known}

    def missing(self, state: DeviceState, pod: PodDemand, container: ContainerDemand) -> bool:
        """Whether the container asks for a device resource that it holds nothing of."""
        held = state.held(pod.uid, container.name)
        return any(
            count and resource not in held for resource, count in self.requested(state, container.limits).items()
        )

    # Hints

    def container_hints(self, state: DeviceState, pod: PodDemand, container: ContainerDemand) -> HintMap:
        return {
            resource: self._hints(
                state,
                Wanted(resource, count),
                held=state.held(pod.uid, container.name).get(resource, frozenset()),
                reusable=state.reusable(pod.uid, resource),
            )
            for resource, count in self.requested(state, container.limits).items()
        }

    def pod_hints(self, state: DeviceState, pod: PodDemand) -> HintMap:
        return {
            resource: self._hints(
                state, Wanted(resource, count), held=state.held_by_pod(pod.uid, resource), reusable=frozenset()
            )
            for resource, count in self.requested(state, pod.limits).items()
        }

    def _hints(
        self, state: DeviceState, wanted: Wanted, *, held: Ids, reusable: Ids
    ) -> HintList | UnlistedHints | None:
        inventory = self.inventories.get(wanted.resource)
        if inventory is None or not inventory.has_topology:
            return None
        if held:
            return self._room(inventory, wanted, held, frozenset()) if len(held) == wanted.count else HintList()
        available = inventory.healthy - state.in_use(wanted.resource)
        if len(available | reusable) < wanted.count:
            return HintList()
        return self._room(inventory, wanted, available, reusable)

    def _room(self, inventory: Inventory, wanted: Wanted, available: Ids, reusable: Ids) -> Hints:
        zones = self._zones(inventory)
        domain = masks.of(zones)
        # A device with a topology that names no zone can never be touched, so it blocks every mask when reused.
        reused = [inventory.zones.get(each, 0) for each in reusable if inventory.by_id[each].zones is not None]
        supply = Supply(
            need=wanted.count,
            size=inventory.counted(inventory.zones, domain),
            free=inventory.counted(available, domain),
            held=len(reused),
        )
        return Room(zones, (supply,), must_touch=tuple(reused)).hints()

    def _zones(self, inventory: Inventory) -> tuple[int, ...]:
        if not self.behaviour.device_hints_over_device_zones:
            return self.machine.zone_ids
        hosting = {zone for zones in inventory.zones.values() for zone in masks.members(zones)}
        return tuple(zone for zone in self.machine.zone_ids if zone in hosting) or self.machine.zone_ids

    # Allocation

    def allocate(
        self, state: DeviceState, pod: PodDemand, container: ContainerDemand, affinity: Mask | None
    ) -> tuple[DeviceState, Refusal | None]:
        for resource, count in self.requested(state, container.limits).items():
            try:
                ids = self._chosen(state, pod, container, Wanted(resource, count), affinity)
            except Refusal as refusal:
                return structs.replace(state, reuse=self._reuse_before(state, pod)), refusal
            if ids:
                state = state.with_devices(pod.uid, container.name, resource, ids)
        return structs.replace(state, reuse=self._reuse_after(state, pod, container)), None

    def _chosen(
        self, state: DeviceState, pod: PodDemand, container: ContainerDemand, wanted: Wanted, affinity: Mask | None
    ) -> Ids:
        """Devices to hand out now; none where the container already has them."""
        resource, count = wanted.resource, wanted.count
        held = state.held(pod.uid, container.name).get(resource)
        if held is not None and len(held) != count:
            raise Refusal(
                f'pod "{pod.uid}" container "{container.name}" changed request for resource "{resource}" '
                f"from {len(held)} to {count}"
            )
        inventory = self._registered(resource, held or frozenset())
        if held is not None or count == 0:
            return frozenset()
        # Reused devices are taken without checking health or zone, and without asking the plugin.
        taken = frozenset(sorted(state.reusable(pod.uid, resource))[:count])
        if len(taken) == count:
            return taken
        free = inventory.healthy - state.in_use(resource) - taken
        if len(free) < count - len(taken):
            raise Refusal(
                f"requested number of devices unavailable for {resource}. "
                f"Requested: {count - len(taken)}, Available: {len(free)}"
            )
        return self._filled(inventory, Preference(resource, free, taken, count), affinity)

    def _registered(self, resource: str, held: Ids) -> Inventory:
        inventory = self.inventories.get(resource)
        if inventory is None:
            raise Refusal(f"cannot allocate unregistered device {resource}")
        if not inventory.healthy:
            raise Refusal(f"no healthy devices present; cannot allocate unhealthy devices {resource}")
        if not held <= inventory.healthy:
            raise Refusal(
                f"previously allocated devices are no longer healthy; cannot allocate unhealthy devices {resource}"
            )
        return inventory

    def _filled(self, inventory: Inventory, wanted: Preference, affinity: Mask | None) -> Ids:
        """Fill up what was reused from the free devices, the aligned ones first."""
        taken, count = wanted.must_include, wanted.size
        free = inventory.split(wanted.available, affinity)
        if count - len(taken) < len(free.aligned):
            preferred = self._preferred(inventory, structs.replace(wanted, available=free.aligned | taken))
            return _topped_up(taken, count, preferred & free.aligned, free.aligned)
        taken |= free.aligned
        if len(taken) == count:
            return taken
        asked = Preference(wanted.resource, wanted.available | taken, taken, count)
        preferred = self._preferred(inventory, asked)
        return _topped_up(taken, count, preferred & wanted.available, free.unaligned, free.without)

    def _preferred(self, inventory: Inventory, asked: Preference) -> Ids:
        return self.prefer(asked) if inventory.plugin.preferred_allocation else frozenset()

    def _reuse_before(self, state: DeviceState, pod: PodDemand) -> ReusableDevices:
        return state.reuse if state.reuse.uid == pod.uid else ReusableDevices(pod.uid)

    def _reuse_after(self, state: DeviceState, pod: PodDemand, container: ContainerDemand) -> ReusableDevices:
        reusable = dict(self._reuse_before(state, pod).held)
        for resource, ids in state.held(pod.uid, container.name).items():
            before = reusable.get(resource, frozenset())
            reusable[resource] = before | ids if container.role is Role.INIT else before - ids
        return ReusableDevices(pod.uid, reusable)

    def collect(self, state: DeviceState, active: Mapping[str, Iterable[str]]) -> DeviceState:
        """Free the devices of pods that are not active any more."""
        if all(uid in active for uid in state.pods):
            return state
        return structs.replace(state, pods={uid: held for uid, held in state.pods.items() if uid in active})

    def restarted(self, checkpoint: DeviceState) -> DeviceState:
        return structs.replace(checkpoint, reuse=ReusableDevices())


class Wanted(Struct, frozen=True):
    """How many devices of a resource are asked for."""

    resource: str
    count: int


def _topped_up(taken: Ids, count: int, *sources: Set[str]) -> Ids:
    for source in sources:
        if len(taken) < count:
            taken |= frozenset(sorted(source - taken)[: count - len(taken)])
    return taken
