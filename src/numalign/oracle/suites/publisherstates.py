"""Recorded states of nodes, each rebuilt as a kubelet in the state that a publisher was shown.

`publishers` asks for the kubelet of a case and its pods. `unreachable` tells of states that no kubelet gets into: the
publishers' own tests make them up, and what is reported then has no counterpart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

from msgspec import structs

from numalign.api.meta import ObjectMeta
from numalign.api.pod import Container, Pod, PodSpec
from numalign.api.podplacements import HeldDevices, Holding, MemoryBlock, PodPlacement
from numalign.kubelet import mask as masks
from numalign.kubelet import start
from numalign.kubelet.cpu.state import CPUState
from numalign.kubelet.device import DeviceState
from numalign.kubelet.machine import Core, Device, DevicePlugin, HugePages, Machine, Zone
from numalign.kubelet.memory.state import Block
from numalign.kubelet.settings import MemoryReservation, Settings
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState
from numalign.kubelet.versions import Minor

Row = Mapping[str, Any]
PAGES = {"hugepages-2Mi": 2048, "hugepages-1Gi": 1 << 20, "hugepages-64Ki": 64}


def unified(row: Row) -> Row:
    """In one form, whichever publisher it was recorded from."""
    pods = [{**pod, "containers": list(map(_container, pod["containers"]))} for pod in row["pods"]]
    return {**row, "pods": pods}


def unreachable(row: Row) -> bool:
    """Whether no kubelet gets into this state, or the publisher was told to leave something out."""
    case = unified(row)
    # The static policy refuses to start where no CPU is reserved.
    unreserved = set(case.get("allocatable", {}).get("cpus", ())) == _cpus(case)
    return bool(case.get("namespace") or case.get("exclude")) or unreserved or _odd_memory(case)


def holds_unknown_cpus(row: Row) -> bool:
    held = {cpu for pod in row["pods"] for container in pod["containers"] for cpu in container.get("cpus", ())}
    return not held <= _cpus(row)


def has_spanning_devices(row: Row) -> bool:
    return any(len(zones or ()) > 1 for zones in _devices(row["allocatable"]["devices"]).values())


def _cpus(case: Row) -> set[int]:
    return {cpu for zone in case["topology"]["nodes"] for cpu in zone["cpus"]}


def _odd_memory(case: Row) -> bool:
    """More than there is, parts of pages, none but pages, or zones in another order than the kubelet's."""
    usable, capacity = _usable_memory(case), _capacity(case)
    held = [block for pod in case["pods"] for container in pod["containers"] for block in container.get("memory", ())]
    return (
        any(size > capacity[zone][kind] for (zone, kind), size in usable.items())
        or any(size % (PAGES[kind] << 10) for (_, kind), size in usable.items() if kind in PAGES)
        or any(_in_pages(kinds) > kinds.get("memory", 0) for kinds in capacity.values())
        or any(block["numa"] != sorted(block["numa"]) for block in held)
    )


def _container(container: Mapping[str, Any]) -> Mapping[str, Any]:
    """The updater's form, which has all that a container holds in one list, as the exporter's."""
    own: dict[str, Any] = {"name": container["name"], "cpus": [], "memory": [], "devices": []}
    for held in container.get("resources", ()):
        if held["name"] == "cpu":
            own["cpus"] += map(int, held["data"])
        elif held["name"] in ("memory", *PAGES):
            own["memory"].append({"type": held["name"], "size": int(held["data"][0]), "numa": held["numa"]})
        else:
            own["devices"].append({"resource": held["name"], "ids": held["data"], "numa": held["numa"]})
    return own if "resources" in container else container


def kubelet(case: Row) -> Kubelet:
    """One that starts with just what the case says can be allocated; StartRefusal where none would."""
    capacity, usable_memory = _capacity(case), _usable_memory(case)
    usable = masks.of(case.get("allocatable", {}).get("cpus", ()))
    every = masks.of(cpu for zone in case["topology"]["nodes"] for cpu in zone["cpus"])
    withheld = {
        zone: {
            kind: amount - usable_memory.get((zone, kind), 0) - (_in_pages(kinds) if kind == "memory" else 0)
            for kind, amount in kinds.items()
        }
        for zone, kinds in capacity.items()
    }
    settings = Settings(
        topology_policy=case.get("policy", "none"),
        cpu_policy="static" if usable else "none",
        reserved_cpus=every & ~usable if usable else 0,
        memory_policy="Static" if any(usable_memory.values()) else "None",
        reserved_memory=tuple(MemoryReservation(zone, kinds) for zone, kinds in withheld.items()),
        reserved={
            "cpu": 1000 * (every & ~usable).bit_count(),
            **{kind: sum(kinds.get(kind, 0) for kinds in withheld.values()) for kind in ("memory", *PAGES)},
        },
        minor=Minor(1, 34),
    )
    return start.start(machine(case), settings)


def machine(case: Row) -> Machine:
    capacity = _capacity(case)
    zones = tuple(_zone(zone, capacity.get(zone["id"], {})) for zone in case["topology"]["nodes"])
    return Machine("recorded", zones, _plugins(case))


def state(case: Row, kubelet: Kubelet) -> KubeletState:
    """With every pod of the case on it."""
    empty, pods = kubelet.initial(), [_pod(each) for each in case["pods"]]
    held = {each.name: {holding.container: holding for holding in each.holdings} for each in pods}
    cpus = {uid: {name: own.cpus for name, own in holdings.items() if own.cpus} for uid, holdings in held.items()}
    blocks = {
        uid: {name: tuple(Block(b.type, b.zones, b.size) for b in own.memory) for name, own in holdings.items()}
        for uid, holdings in held.items()
    }
    devices = {uid: {name: _ids(own) for name, own in holdings.items()} for uid, holdings in held.items()}
    return structs.replace(
        empty,
        active={each.name: _stand_in(each) for each in pods},
        devices=DeviceState(pods=devices),
        cpu=CPUState(empty.cpu.default, cpus) if empty.cpu else None,
        memory=structs.replace(empty.memory, blocks=blocks) if empty.memory else None,
    )


def placements(case: Row) -> tuple[PodPlacement, ...]:
    """Its pods as the pod resources API shows them."""
    return tuple(map(_pod, case["pods"]))


def _capacity(case: Row) -> dict[int, dict[str, int]]:
    """By zone and kind, from either form; a kind that nobody measured has what can be allocated."""
    found: dict[int, dict[str, int]] = {zone["id"]: {} for zone in case["topology"]["nodes"]}
    for zone, kind in _usable_memory(case):
        found[zone][kind] = _usable_memory(case)[zone, kind]
    for kind, zones in case.get("sys_memory", {}).items():
        for name, amount in zones.items():
            found[int(name)][kind] = amount
    for name, kinds in case.get("memory_capacity", {}).items():
        found[int(name)].update(kinds)
    return found


def _in_pages(capacity: Mapping[str, int]) -> int:
    """What a zone has in memory counts pages of all sizes."""
    return sum(amount for kind, amount in capacity.items() if kind in PAGES)


def _usable_memory(case: Row) -> dict[tuple[int, str], int]:
    blocks = case.get("allocatable", {}).get("memory", ())
    return {(zone, block["type"]): block["size"] for block in blocks for zone in block["numa"]}


def _zone(zone: Mapping[str, Any], capacity: Mapping[str, int]) -> Zone:
    pages = tuple(
        HugePages(PAGES[kind], amount // (PAGES[kind] * 1024)) for kind, amount in capacity.items() if kind in PAGES
    )
    return Zone(
        id=zone["id"],
        cores=tuple(Core(zone["id"], (cpu,)) for cpu in zone["cpus"]),
        memory=capacity.get("memory", 0),
        hugepages=pages,
        distances=tuple(zone["distances"]),
    )


def _plugins(case: Row) -> dict[str, DevicePlugin]:
    """Devices that can be allocated, and sick ones that somebody holds."""
    healthy = _devices(case.get("allocatable", {}).get("devices", ()))
    held = _devices(
        chain.from_iterable(c.get("devices", ()) for pod in case.get("pods", ()) for c in pod["containers"])
    )
    found: dict[str, list[Device]] = {}
    for (resource, number), zones in (held | healthy).items():
        found.setdefault(resource, []).append(Device(number, zones, (resource, number) in healthy))
    return {resource: DevicePlugin(tuple(devices)) for resource, devices in found.items()}


def _devices(entries: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], tuple[int, ...] | None]:
    """By resource and id: the zones, of which every entry names one."""
    found: dict[tuple[str, str], tuple[int, ...] | None] = {}
    for entry in entries:
        for number in entry["ids"]:
            key, numa = (entry["resource"], number), entry["numa"]
            numa = None if numa is None else [zone for zone in numa if zone >= 0]
            found[key] = None if numa is None else (*(found.get(key) or ()), *numa)
    return found


def _pod(pod: Mapping[str, Any]) -> PodPlacement:
    return PodPlacement(
        namespace=pod["namespace"], name=pod["name"], uid=pod["name"], holdings=tuple(map(_holding, pod["containers"]))
    )


def _holding(container: Mapping[str, Any]) -> Holding:
    found = _devices(container.get("devices", ()))
    return Holding(
        container=container["name"],
        cpus=masks.of(container.get("cpus", ())),
        memory=tuple(
            MemoryBlock(type=block["type"], zones=masks.of(block["numa"]), size=block["size"])
            for block in container.get("memory", ())
        ),
        devices=tuple(
            HeldDevices(resource=name, zones=None if zones is None else masks.of(zones), count=1, ids=(number,))
            for (name, number), zones in found.items()
        ),
    )


def _ids(holding: Holding) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for each in holding.devices:
        found[each.resource] = found.get(each.resource, frozenset()) | set(each.ids)
    return found


def _stand_in(pod: PodPlacement) -> Pod:
    containers = tuple(Container(name=holding.container) for holding in pod.holdings)
    return Pod(metadata=ObjectMeta(namespace=pod.namespace, name=pod.name, uid=pod.name), spec=PodSpec(containers))
