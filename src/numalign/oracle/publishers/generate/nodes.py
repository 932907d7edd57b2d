"""Generates a node as a kubelet reports it: zones, allocatable resources, and pods with their resources."""

from itertools import count
from random import Random
from typing import Final

from msgspec import Struct

from numalign.oracle.harness.divergence import Case
from numalign.oracle.harness.draws import chance, cut, some, weighted

NAMESPACES: Final = ("default", "kube-system", "a")
KINDS: Final = ("memory", "hugepages-2Mi", "hugepages-1Gi", "hugepages-64Ki", "hugepages-32Mi")
PAGES: Final = {
    "hugepages-2Mi": 1 << 21,
    "hugepages-1Gi": 1 << 30,
    "hugepages-64Ki": 1 << 16,
    "hugepages-32Mi": 1 << 25,
}
RESOURCES: Final = ("v/nic", "v/gpu", "example.com/dev", "V/nic")
ODD_ZONES: Final = (-1, 5, 40, 63)


class Zone(Struct):
    id: int
    cpus: list[int]
    memory: dict[str, int]
    """Bytes in sysfs; a kind that sysfs does not report has no entry."""


class GeneratedNode(Struct):
    """A node while its row is generated."""

    rng: Random
    zones: list[Zone]
    devices: list[Case]
    """One entry per zone of a device, as kubelets list them."""
    cpus: list[int]
    blocks: list[Case]

    def row(self) -> Case:
        """Everything except memory and pods, which each program writes in its own form."""
        near, far = self.rng.choice(((10, 21), (10, 20), (10, 32)))
        nodes = [
            {"id": zone.id, "cpus": zone.cpus, "distances": [near if zone is other else far for other in self.zones]}
            for zone in self.zones
        ]
        allocatable = {"devices": self.devices, "cpus": self.cpus, "memory": self.blocks}
        return {"node": "n1", "topology": {"nodes": nodes}, "allocatable": allocatable}

    def by_kind(self) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {}
        for zone in self.zones:
            for kind, size in zone.memory.items():
                found.setdefault(kind, {})[str(zone.id)] = size
        return found

    def by_zone(self) -> dict[str, dict[str, int]]:
        return {str(zone.id): zone.memory for zone in self.zones if zone.memory or chance(self.rng, 0.5)}

    def excluded(self, node: str) -> dict[str, list[str]]:
        names = ("cpu", *KINDS[:2], *RESOURCES)
        return {key: some(self.rng, names, 0.25) for key in some(self.rng, ("*", node, "other"), 0.6)}

    def pods(self) -> list[Case]:
        return _Pods(self).drawn()


class _Pods:
    """What pods hold, mostly exclusively."""

    def __init__(self, node: GeneratedNode) -> None:
        self.node, self.rng = node, node.rng
        by_id: dict[tuple[str, str], list[Case]] = {}
        for entry in node.devices:
            for each in entry["ids"]:
                by_id.setdefault((entry["resource"], each), []).append({**entry, "ids": [each]})
        self.devices = list(by_id.values())
        self.cpus = list(node.cpus)
        self.rng.shuffle(self.devices)
        self.rng.shuffle(self.cpus)

    def drawn(self) -> list[Case]:
        number = weighted(self.rng, {0: 1, 1: 3, 2: 3, 4: 2, 7: 1})
        return [self._pod(place) for place in range(number)]

    def _pod(self, place: int) -> Case:
        name = weighted(self.rng, {f"p{place}": 20, "p0": 1, "pöd": 1, "": 0.3})
        containers = [self._container(each) for each in range(weighted(self.rng, {0: 1, 1: 10, 2: 4, 3: 1}))]
        return {"name": name, "namespace": self.rng.choice(NAMESPACES), "containers": containers}

    def _container(self, place: int) -> Case:
        return {"name": f"c{place}", "cpus": self._cpus(), "devices": self._devices(), "memory": self._memory()}

    def _cpus(self) -> list[int]:
        rng = self.rng
        held = [self.cpus.pop() for _ in range(min(len(self.cpus), weighted(rng, {0: 3, 1: 2, 2: 2, 4: 1})))]
        if chance(rng, 0.06):
            held.append(rng.choice((0, 1, 99, 1000)))
        return held if chance(rng, 0.3) else sorted(held)

    def _devices(self) -> list[Case]:
        rng = self.rng
        taken = [self.devices.pop() for _ in range(min(len(self.devices), weighted(rng, {0: 4, 1: 3, 2: 1})))]
        held = [entry for entries in taken for entry in entries]
        if chance(rng, 0.05):
            held.append(_device(rng, rng.choice(RESOURCES), ["gone"], [rng.randrange(len(self.node.zones))]))
        if held and chance(rng, 0.05):
            held.append(_device(rng, held[0]["resource"], held[0]["ids"], _places(rng, self.node.zones)))
        if held and chance(rng, 0.04):
            held.append(held[-1])
        return held

    def _memory(self) -> list[Case]:
        rng, held = self.rng, []
        for kind in some(rng, sorted({block["type"] for block in self.node.blocks}), 0.35):
            room = [block for block in self.node.blocks if block["type"] == kind]
            size = rng.choice(room)["size"]
            held.append(
                {
                    "type": kind,
                    "size": weighted(rng, {size: 1, size // 2: 4, size // 4: 4, size + (1 << 20): 0.5, 0: 0.3}),
                    "numa": _places(rng, self.node.zones),
                }
            )
        return held


def drawn(rng: Random) -> GeneratedNode:
    zones = _zones(rng)
    return GeneratedNode(rng, zones, _offered(rng, zones), _allocatable(rng, zones), _blocks(rng, zones))


def _zones(rng: Random) -> list[Zone]:
    number = weighted(rng, {1: 2, 2: 8, 3: 2, 4: 3, 8: 0.5, 12: 0.3})
    ids = list(range(number))
    if chance(rng, 0.06):
        ids = sorted(rng.sample(range(number + 4), number))
    if chance(rng, 0.04):
        rng.shuffle(ids)
    sizes = cut(rng, rng.randint(0, 6 * number), number) if chance(rng, 0.2) else [rng.choice((2, 4, 8))] * number
    numbers = list(range(sum(sizes)))
    if chance(rng, 0.2):
        rng.shuffle(numbers)
    found, cpus = [], iter(numbers)
    for zone, size in zip(ids, sizes, strict=True):
        found.append(Zone(zone, sorted(next(cpus) for _ in range(size)), _present(rng)))
    return found


def _present(rng: Random) -> dict[str, int]:
    kinds = [*some(rng, KINDS[:3], 0.5), *some(rng, KINDS[3:], 0.06)]
    memory = weighted(rng, {8 << 30: 5, 1 << 30: 2, 0: 0.3})
    return {kind: memory if kind == "memory" else rng.randint(0, 16) * PAGES[kind] for kind in kinds}


def _allocatable(rng: Random, zones: list[Zone]) -> list[int]:
    every = sorted(cpu for zone in zones for cpu in zone.cpus)
    found = weighted(rng, {"all": 4.0, "some": 5.0, "none": 1.0})
    cpus = every if found == "all" else some(rng, every, 0.8) if found == "some" else []
    if chance(rng, 0.04):
        cpus = [*cpus, rng.choice((99, 1000))]
    if cpus and chance(rng, 0.04):
        cpus = [*cpus, rng.choice(cpus)]
    return cpus


def _blocks(rng: Random, zones: list[Zone]) -> list[Case]:
    """Most blocks are what sysfs reports minus reservations; some are more, nothing, or an unreported kind."""
    found: list[Case] = []
    for zone in zones:
        for kind in KINDS:
            present = zone.memory.get(kind)
            if chance(rng, 0.75 if present else 0.04):
                size = present or rng.choice((1 << 30, 1 << 21))
                sizes = {size - size // 8: 5.0, size: 3.0, size + (1 << 21): 0.4, 0: 0.4}
                found.append({"type": kind, "size": weighted(rng, sizes), "numa": [zone.id]})
    if found and chance(rng, 0.05):
        found.append(rng.choice(found))
    if found and chance(rng, 0.05):
        found.append({**rng.choice(found), "numa": _places(rng, zones)})
    return found


def _offered(rng: Random, zones: list[Zone]) -> list[Case]:
    found: list[Case] = []
    for resource in some(rng, RESOURCES, 0.4):
        for number in range(rng.randint(1, 5)):
            where = _places(rng, zones)
            ids = [f"{resource[-3:]}-{number}"]
            found += (
                [_device(rng, resource, ids, [zone]) for zone in where]
                if where
                else [_device(rng, resource, ids, where)]
            )
    if chance(rng, 0.05):
        found.append(_device(rng, rng.choice(RESOURCES), [], _places(rng, zones)))
    if chance(rng, 0.1):
        found.append(_device(rng, rng.choice(RESOURCES), ["x0", "x1", "x2"], _places(rng, zones)))
    if found and chance(rng, 0.04):
        found.append(rng.choice(found))
    return found


def _device(rng: Random, resource: str, ids: list[str], numa: list[int] | None) -> Case:
    return {"resource": resource, "ids": ids, "numa": numa}


def _places(rng: Random, zones: list[Zone]) -> list[int] | None:
    """Most entries have one zone; some have several, none, or one that the machine does not have."""
    ids = [zone.id for zone in zones]
    match weighted(rng, {"one": 24, "several": 1.5, "absent": 1.5, "empty": 0.5, "odd": 0.4, "twice": 0.2}):
        case "several":
            return rng.sample(ids, min(len(ids), rng.choice((2, 2, 3))))
        case "absent":
            return None
        case "empty":
            return []
        case "odd":
            return [rng.choice(ODD_ZONES)]
        case "twice":
            return [ids[0], ids[0]]
    return [rng.choice(ids)]


def unified(pod: Case) -> Case:
    """A pod in the updater's form, which lists all resources of a container together."""
    return {**pod, "containers": [_unified(each) for each in pod["containers"]]}


def _unified(container: Case) -> Case:
    held = [{"name": "cpu", "data": [str(cpu) for cpu in container["cpus"]], "numa": None}] if container["cpus"] else []
    held += [{"name": e["resource"], "data": e["ids"], "numa": e["numa"]} for e in container["devices"]]
    held += [{"name": b["type"], "data": [str(b["size"])], "numa": b["numa"]} for b in container["memory"] if b["size"]]
    return {"name": container["name"], "resources": held}


def known(rng: Random, listed: Case) -> Case:
    """The pod as the API server has it: its QoS class and whole CPUs matter."""
    numbers = count()
    containers = [_wanted(rng, next(numbers)) for _ in range(max(1, len(listed["containers"])))]
    classes = {"Guaranteed": 6.0, "Burstable": 2.0, "BestEffort": 1.0}
    made = {"name": listed["name"], "namespace": listed["namespace"], "qos": weighted(rng, classes)}
    if chance(rng, 0.1):
        made["init"] = [_wanted(rng, next(numbers))]
    if chance(rng, 0.03):
        made["name"] = "another"
    return {**made, "containers": containers}


def _wanted(rng: Random, place: int) -> Case:
    cpu = weighted(rng, {"2": 5.0, "1500m": 2.0, "0": 0.5, "3000m": 0.5, "0.5": 0.5, "": 1.0})
    amounts = {"memory": "100Mi"} | ({"cpu": cpu} if cpu else {})
    return {"name": f"c{place}", "requests": amounts, "limits": amounts}
