"""What would be different about nodes: their kubelets' configuration, their hardware, their number.

`whatif`, `capacity` and `sweep` make a `Change`; `nodes` applies it. Fields of a KubeletConfiguration are read as the
kubelet reads them, over what the node has now."""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Mapping
from typing import Any, Final, get_args

from msgspec import Struct, structs

from numalign.api.decode import quantity
from numalign.api.errors import BadObject, echo
from numalign.api.objects import resourcenames
from numalign.kubelet import configuration, versions
from numalign.kubelet.machine.machine import Core, Device, DevicePlugin, HugePages, Machine, Zone
from numalign.kubelet.settings import MemoryReservation, Settings, TopologyPolicy, TopologyScope
from numalign.kubelet.versions import Minor
from numalign.placement.referenceargs import Strategy

READ: Final[Mapping[str, tuple[str, ...]]] = {
    "topologyManagerPolicy": ("topology_policy",),
    "topologyManagerScope": ("topology_scope",),
    "topologyManagerPolicyOptions": ("topology_options",),
    "cpuManagerPolicy": ("cpu_policy",),
    "cpuManagerPolicyOptions": ("cpu_options",),
    "reservedSystemCPUs": ("reserved_cpus",),
    "memoryManagerPolicy": ("memory_policy",),
    "reservedMemory": ("reserved_memory",),
    "evictionHard": ("eviction_hard",),
    "maxPods": ("max_pods",),
    "featureGates": ("feature_gates",),
    "kubeReserved": (),
    "systemReserved": (),
}
"""The fields that decide admission, with the settings that each replaces; reservations add up."""
TOPOLOGY_ONLY: Final = frozenset({"topologyManagerPolicy", "topologyManagerScope", "topologyManagerPolicyOptions"})
"""Fields with which a kubelet restarts and keeps its checkpoints."""
LOCAL, NEAR, FAR = 10, 12, 21


class Change(Struct, frozen=True, kw_only=True):
    """What would be different. Empty: nothing."""

    kubelet: Mapping[str, Any] = {}
    """Fields of a KubeletConfiguration; all others stay as they are."""
    minor: Minor | None = None
    """Another kubelet."""
    zones_per_socket: int = 0
    """The firmware's NPS or SNC setting; 0: as it is."""
    strategy: str = ""
    """Another scoring strategy of NodeResourceTopologyMatch; empty: as it is."""
    nodes: frozenset[str] | None = None
    """The nodes whose kubelet or hardware is different; None: all."""
    gone: frozenset[str] = frozenset()
    """Nodes that are drained or lost."""
    from_empty: bool = False
    """Whether every pod is created again, on empty nodes."""

    @property
    def is_of_nodes(self) -> bool:
        return bool(self.kubelet or self.minor or self.zones_per_socket)

    @property
    def is_something(self) -> bool:
        return bool(self.is_of_nodes or self.strategy or self.gone)

    @property
    def keeps_placements(self) -> bool:
        """Whether a kubelet only restarts, with the CPUs, memory and devices that pods hold."""
        return not self.minor and not self.zones_per_socket and set(self.kubelet) <= TOPOLOGY_ONLY


def check(change: Change, source: str) -> None:
    """BadObject for a field that is not one of admission."""
    for name in change.kubelet:
        if name not in READ and name not in configuration.HEAD:
            why = f"does not decide admission; what can be changed is {', '.join(READ)}"
            raise BadObject("KubeletConfiguration", source, name, why)


def settings(before: Settings, change: Change, machine: Machine, source: str) -> Settings:
    """The settings of a kubelet with the change, on the machine with the change."""
    given = {name: value for name, value in change.kubelet.items() if name in READ}
    minor = change.minor or before.minor
    read = configuration.read({**given, **configuration.HEAD}, source, machine, minor)
    changed: dict[str, Any] = {field: getattr(read, field) for name in given for field in READ[name]}
    reserved = {**before.reserved, **read.reserved}
    memory = changed.get("reserved_memory")
    if memory is None and change.zones_per_socket and before.reserved_memory:
        memory = changed["reserved_memory"] = _spread(before.reserved_memory, machine)
    if memory is not None and not {"kubeReserved", "systemReserved", "evictionHard"} & given.keys():
        # Kubelets refuse to start unless both sums are equal; the operator would adapt the one to the other.
        reserved |= _sums(memory)
        changed["eviction_hard"] = {}
    return structs.replace(before, **changed, reserved=reserved, minor=minor)


def _sums(memory: tuple[MemoryReservation, ...]) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in memory:
        for kind, amount in each.limits.items():
            found[kind] = found.get(kind, 0) + amount
    return found


def _spread(memory: tuple[MemoryReservation, ...], machine: Machine) -> tuple[MemoryReservation, ...]:
    """The same amounts, evenly over the zones; the first zone has what is left over."""
    zones = machine.zone_ids
    parts: dict[int, dict[str, int]] = {zone: {} for zone in zones}
    for kind, amount in _sums(memory).items():
        unit = _unit(kind)
        share = amount // len(zones) // unit * unit
        for place, zone in enumerate(zones):
            own = amount - share * (len(zones) - 1) if place == 0 else share
            if own:
                parts[zone][kind] = own
    return tuple(MemoryReservation(zone, limits) for zone, limits in parts.items() if limits)


def _unit(kind: str) -> int:
    if not resourcenames.is_hugepages(kind):
        return 1
    return quantity.parse(kind.removeprefix(resourcenames.HUGEPAGES_PREFIX)).value


class Undivided(Exception):
    """Why a machine cannot have that many zones per socket."""


def divided(machine: Machine, per_socket: int) -> Machine:
    """The same hardware with so many NUMA zones per socket.

    Cores, memory and pages are divided evenly. Devices of a zone that is divided are taken to be spread evenly over its
    parts in the order of their ids, which nothing says about real machines. `Undivided` if it cannot be done."""
    zones_of = _zones_by_socket(machine)
    moved: dict[int, tuple[int, ...]] = {}
    made: list[Zone] = []
    for place, (socket, zones) in enumerate(sorted(zones_of.items())):
        if max(per_socket, len(zones)) % min(per_socket, len(zones)):
            raise Undivided(f"socket {socket} has {len(zones)} zones, which cannot become {per_socket}")
        made += _parts(socket, zones, range(place * per_socket, (place + 1) * per_socket))
        for position, zone in enumerate(zones):
            first = position * per_socket // len(zones)
            last = max(first + 1, (position + 1) * per_socket // len(zones))
            moved[zone.id] = tuple(place * per_socket + each for each in range(first, last))
    has_distances = all(zone.distances for zone in machine.zones)
    made = [_measured(zone, len(made), per_socket, _far(machine)) if has_distances else zone for zone in made]
    devices = {name: _moved(plugin, moved) for name, plugin in machine.devices.items()}
    return Machine(machine.name, tuple(made), devices)


def _zones_by_socket(machine: Machine) -> dict[int, list[Zone]]:
    found: dict[int, list[Zone]] = {}
    for zone in machine.zones:
        sockets = {core.socket for core in zone.cores}
        if len(sockets) != 1:
            raise Undivided(f"zone {zone.id} has cores of {len(sockets)} sockets")
        found.setdefault(sockets.pop(), []).append(zone)
    return found


def _parts(socket: int, zones: list[Zone], ids: range) -> list[Zone]:
    cores: list[Core] = [core for zone in zones for core in zone.cores]
    if len(cores) % len(ids):
        raise Undivided(f"socket {socket} has {len(cores)} cores, which {len(ids)} zones cannot share evenly")
    share = len(cores) // len(ids)
    pages: dict[int, int] = {}
    for zone in zones:
        for each in zone.hugepages:
            pages[each.size_kib] = pages.get(each.size_kib, 0) + each.pages
    memory = sum(zone.memory for zone in zones) // len(ids)
    huge = tuple(HugePages(size, count // len(ids)) for size, count in pages.items())
    return [
        Zone(zone, tuple(cores[place * share : (place + 1) * share]), memory, huge) for place, zone in enumerate(ids)
    ]


def _far(machine: Machine) -> int:
    return max([FAR, *(distance for zone in machine.zones for distance in zone.distances)])


def _measured(zone: Zone, zones: int, per_socket: int, far: int) -> Zone:
    def distance(other: int) -> int:
        if other == zone.id:
            return LOCAL
        return NEAR if other // per_socket == zone.id // per_socket else far

    return structs.replace(zone, distances=tuple(map(distance, range(zones))))


def _moved(plugin: DevicePlugin, moved: Mapping[int, tuple[int, ...]]) -> DevicePlugin:
    """The devices of each set of zones, spread over what became of the zones."""
    alike: dict[tuple[int, ...] | None, list[Device]] = {}
    for device in plugin.devices:
        alike.setdefault(device.zones, []).append(device)
    zones_of: dict[str, tuple[int, ...] | None] = {}
    for zones, devices in alike.items():
        for place, device in enumerate(devices):
            zones_of[device.id] = None if zones is None else _at(zones, place, len(devices), moved)
    return structs.replace(
        plugin, devices=tuple(structs.replace(device, zones=zones_of[device.id]) for device in plugin.devices)
    )


def _at(zones: tuple[int, ...], place: int, devices: int, moved: Mapping[int, tuple[int, ...]]) -> tuple[int, ...]:
    if len(zones) == 1 and zones[0] in moved:
        parts = moved[zones[0]]
        return (parts[place * len(parts) // devices],)
    return tuple(sorted({part for zone in zones for part in moved.get(zone, (zone,))}))


AS_IT_IS: Final = "-"
OPTIONS: Final = (
    "topology-policy",
    "topology-scope",
    "cpu-options",
    "reserved-cpus",
    "kubelet-version",
    "zones-per-socket",
    "scoring",
    "lose",
)
"""What can be written as a text."""
MOST_PER_SOCKET: Final = 16


def read(texts: Mapping[str, str], names: Collection[str] = (), seed: int = 0) -> Change:
    """The change of these texts by option; `AS_IT_IS` or nothing: no difference. `names`: the nodes that there are, of
    which `seed` chooses those that are lost. BadObject if a text makes no sense."""
    given = {option: text for option, text in texts.items() if text not in ("", AS_IT_IS)}
    for option in given:
        if option not in OPTIONS:
            raise BadObject("Option", echo(option), "", f"cannot be varied; what can is {', '.join(OPTIONS)}")
    kubelet: dict[str, Any] = {}
    if "topology-policy" in given:
        kubelet["topologyManagerPolicy"] = _one_of("topology-policy", given, get_args(TopologyPolicy))
    if "topology-scope" in given:
        kubelet["topologyManagerScope"] = _one_of("topology-scope", given, get_args(TopologyScope))
    if "cpu-options" in given:
        listed = [] if given["cpu-options"] == "none" else re.split(r"[+,]", given["cpu-options"])
        kubelet["cpuManagerPolicyOptions"] = {name.strip(): "true" for name in listed}
    if "reserved-cpus" in given:
        kubelet["reservedSystemCPUs"] = given["reserved-cpus"]
    return Change(
        kubelet=kubelet,
        minor=_minor(given),
        zones_per_socket=_number("zones-per-socket", given, MOST_PER_SOCKET),
        strategy=_one_of("scoring", given, [each.value for each in Strategy]) if "scoring" in given else "",
        gone=lost(names, _number("lose", given, len(names)), seed),
    )


def lost(names: Collection[str], number: int, seed: int) -> frozenset[str]:
    """So many of the nodes, chosen by the seed."""
    return frozenset(random.Random(seed).sample(sorted(names), number))


def _one_of(option: str, given: Mapping[str, str], known: Collection[str]) -> str:
    if given[option] not in known:
        raise BadObject("Option", f"--{option}", "", f"{echo(given[option])} is not one of {', '.join(known)}")
    return given[option]


def _number(option: str, given: Mapping[str, str], most: int) -> int:
    written = given.get(option, "0")
    if not (written.isascii() and written.isdigit() and len(written) < 10 and int(written) <= most):
        raise BadObject("Option", f"--{option}", "", f"{echo(written)} is not a whole number of 0 to {most}")
    return int(written)


def _minor(given: Mapping[str, str]) -> Minor | None:
    written = given.get("kubelet-version")
    found = versions.parse(written) if written is not None else None
    if written is not None and (found is None or found != versions.clamped(found)):
        why = (
            f"{echo(written)} is not a kubelet that is known here; write one of {versions.OLDEST} to {versions.NEWEST}"
        )
        raise BadObject("Option", "--kubelet-version", "", why)
    return found
