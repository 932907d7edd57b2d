"""Devices with made-up ids, for a report that counts them by zone set.

`heldstate` gives them to pods, `objectmodel` puts them into its machine. Devices of one class are alike to the device
manager, so any of them can stand for any other. What has to be kept is how many are free and healthy, and that two
containers of a pod may hold the very same device, one after the other (kubelet spec 7.3). Ids sort by class."""

from __future__ import annotations

from collections.abc import Iterable

from numalign.api.attributes.deviceclasses import DeviceClass
from numalign.api.attributes.podplacements import HeldDevices
from numalign.kubelet import mask as masks
from numalign.kubelet.device import Ids
from numalign.kubelet.machine import Device, DevicePlugin

Place = tuple[str, int | None]
"""A class: its resource and its zones."""

MOST_DEVICES = 1 << 16
"""Of all resources of a node together; more than any node has."""


class Unaccounted(Exception):
    """Pods hold more devices than there are, or there are more than can be."""


class Devices:
    """The devices of one node, handed out to the pods that hold them."""

    def __init__(self, classes: Iterable[DeviceClass]) -> None:
        self._classes = {(each.resource, each.zones): each for each in classes}
        if sum(each.total for each in self._classes.values()) > MOST_DEVICES:
            raise Unaccounted("too many devices")
        self._names = {place: f"{number:04}" for number, place in enumerate(self._classes)}
        self._taken: dict[Place, list[str]] = {place: [] for place in self._classes}
        self._known: dict[tuple[Place, str], str] = {}

    def give(self, held: HeldDevices, before: Ids) -> Ids:
        """Ids for what a container holds; `before` are those of the resource that its pod was given already."""
        place = held.resource, held.zones
        if held.ids:
            return frozenset(self._called(place, name) for name in held.ids)
        fresh = min(held.count, self._left(place))
        # Counts do not tell whether a container shares with one that came before it; if there are no others, it does.
        shared = sorted(before & frozenset(self._taken.get(place, ())))[: held.count - fresh]
        if fresh + len(shared) < held.count:
            raise Unaccounted(held.resource)
        return frozenset(shared).union(self._next(place) for _ in range(fresh))

    def plugins(self) -> dict[str, DevicePlugin]:
        """Everything that is registered, as the machine's inventory."""
        found: dict[str, list[Device]] = {}
        for place, each in self._classes.items():
            found.setdefault(each.resource, []).extend(self._devices(place, each))
        return {resource: DevicePlugin(tuple(devices)) for resource, devices in found.items()}

    def _called(self, place: Place, name: str) -> str:
        if (place, name) not in self._known:
            if not self._left(place):
                raise Unaccounted(place[0])
            self._known[place, name] = self._next(place)
        return self._known[place, name]

    def _left(self, place: Place) -> int:
        """How many devices of the class are not free and not given out; as many as you like of one that is gone."""
        each = self._classes.get(place)
        return each.total - each.free - len(self._taken[place]) if each else MOST_DEVICES

    def _next(self, place: Place) -> str:
        taken = self._taken.setdefault(place, [])
        taken.append(f"{self._names.get(place, 'gone')}-{len(taken):06}")
        return taken[-1]

    def _devices(self, place: Place, each: DeviceClass) -> Iterable[Device]:
        """First those that pods hold, as healthy as the class allows, then the free ones, then what nobody can get."""
        zones = None if each.zones is None else masks.members(each.zones)
        held = len(self._taken[place])
        for number in range(each.total):
            used = number < held
            healthy = number < each.healthy - each.free if used else number < held + each.free
            yield Device(f"{self._names[place]}-{number:06}", zones, healthy)
