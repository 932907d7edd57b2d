"""Recorded cases of the node-side publishers, each rebuilt as a kubelet in the state that the publisher was shown.

The repository carries those that were worked out from a description of the publishers; the whole file, with the tables
of upstream's own tests, lies in a folder beside the repository on the machines where it was made."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import chain
from pathlib import Path
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
from numalign.kubelet.plainreport import Publisher
from numalign.kubelet.settings import MemoryReservation, Settings
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState
from numalign.kubelet.versions import Minor
from tests.oracle import recordings

Case = Mapping[str, Any]
VENDORED = recordings.DATA / "exporter.json.xz"
BESIDE = Path(__file__).parents[3] / "shared" / "cases" / "exporter.json"
PAGES = {"hugepages-2Mi": 2048, "hugepages-1Gi": 1 << 20, "hugepages-64Ki": 64}
SUITES: Mapping[str, Publisher] = {
    "exporter.scan": "rte",
    "exporter.scan_derived": "rte",
    "exporter.placement_derived": "rte",
    "updater.aggregate": "nfd",
    "updater.aggregate_derived": "nfd",
}


@cache
def cases(path: Path) -> dict[str, tuple[Publisher, Case]]:
    """By suite and id."""
    text = path.read_bytes()
    whole = json.loads(lzma.decompress(text) if path.suffix == ".xz" else text)
    found: dict[str, tuple[Publisher, Case]] = {}
    for suite, publisher in SUITES.items():
        for case in _at(whole, suite) or ():
            machine = _at(whole, case["topology"][1:]) if isinstance(case["topology"], str) else case["topology"]
            pods = [{**pod, "containers": list(map(_container, pod["containers"]))} for pod in case["pods"]]
            found[f"{suite}.{case['id']}"] = publisher, {**case, "topology": machine, "pods": pods}
    return found


def _at(whole: Any, path: str) -> Any:
    for name in path.split("."):
        whole = whole.get(name, {})
    return whole


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


def kubelet(case: Case) -> Kubelet:
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
    zones = tuple(_zone(zone, capacity.get(zone["id"], {})) for zone in case["topology"]["nodes"])
    return start.start(Machine("recorded", zones, _plugins(case)), settings)


def state(case: Case, kubelet: Kubelet) -> KubeletState:
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


def placements(case: Case) -> tuple[PodPlacement, ...]:
    """Its pods as the pod resources API shows them."""
    return tuple(map(_pod, case["pods"]))


def amounts(zones: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, tuple[int, int, int]]]:
    """By zone and resource: capacity, allocatable and available, as the case has them; less than nothing is nothing."""
    return {
        zone["name"]: {r["name"]: (r["capacity"], r["allocatable"], max(0, r["available"])) for r in zone["resources"]}
        for zone in zones
    }


def _capacity(case: Case) -> dict[int, dict[str, int]]:
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


def _usable_memory(case: Case) -> dict[tuple[int, str], int]:
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


def _plugins(case: Case) -> dict[str, DevicePlugin]:
    """Devices that can be allocated, and sick ones that somebody holds."""
    healthy = _devices(case.get("allocatable", {}).get("devices", ()))
    held = _devices(chain.from_iterable(c.get("devices", ()) for pod in case["pods"] for c in pod["containers"]))
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
