"""Generates the objects of a history: pods of every QoS class, nodes, and NodeResourceTopology reports.

A `Layout` is the constant part of a node; `report` draws the object that its agent publishes at one moment. At low
rates reports contain what no agent should write: other zone names, gaps, duplicates, odd amounts."""

from collections.abc import Mapping
from random import Random

from numalign.api.nrt import fingerprint, normalise, topologymanager
from numalign.oracle.harness.draws import chance, some, weighted

DEVICES = ("vendor.com/nic", "vendor.com/gpu")
ODD_NAMES = ("numa-node-{}", "node{}", "Node-{}", "node-0{}", "node-+{}", "node-x")
LEGACY = ("SingleNUMANodePodLevel", "SingleNUMANodeContainerLevel", "RestrictedPodLevel", "BestEffort", "None")
POLICIES: Mapping[str, float] = {"single-numa-node": 7, "restricted": 1, "best-effort": 1, "none": 0.5, "odd": 0.3}
GIB = 1 << 30

Zone = dict[str, object]
Object = dict[str, object]


class Layout:
    """One node: the ids and sizes of its zones, and the resources that they list."""

    def __init__(self, rng: Random, name: str) -> None:
        self.name = name
        self.zones = _zone_ids(rng, weighted(rng, {1: 2, 2: 10, 3: 2, 4: 4, 6: 0.5, 8: 1}))
        self.cpus = rng.choice((2, 4, 4, 8, 16))
        self.memory = rng.choice((4, 8, 16)) * GIB
        self.devices = {device: rng.randint(1, 4) for device in DEVICES if chance(rng, 0.45)}
        self.pages = 128 if chance(rng, 0.2) else 0
        self.costs = weighted(rng, {"none": 5.0, "all": 4.0, "some": 1.0, "far": 0.3})
        self.settings = settings(rng)

    def node(self, rng: Random) -> Object:
        """The Node object. Sometimes its resources differ from those that the zones list."""
        total = {"cpu": str(self.cpus * len(self.zones)), "memory": str(self.memory * len(self.zones)), "pods": "110"}
        if self.pages:
            total["hugepages-2Mi"] = f"{2 * self.pages * len(self.zones)}Mi"
        known = DEVICES if chance(rng, 0.05) else [device for device in self.devices if not chance(rng, 0.05)]
        total |= {device: str(self.devices.get(device, 1) * len(self.zones)) for device in known}
        return {"metadata": {"name": self.name}, "status": {"allocatable": total}}


def settings(rng: Random) -> Object:
    """Policy and scope as attributes, in the deprecated list, or both."""
    attributes, legacy = [], []
    if chance(rng, 0.85):
        policy = weighted(rng, dict(POLICIES))
        attributes.append(_attribute(topologymanager.POLICY, "SingleNUMANode" if policy == "odd" else policy))
        if chance(rng, 0.9):
            attributes.append(_attribute(topologymanager.SCOPE, weighted(rng, {"container": 5, "pod": 5, "Pod": 0.2})))
    if not attributes or chance(rng, 0.1):
        legacy = rng.sample(LEGACY, rng.choice((1, 1, 2)))
    if chance(rng, 0.1):
        attributes.append(_attribute(topologymanager.MAX_ZONES, rng.choice(("2", "16", "1", "x", "2000", "-4"))))
    if attributes and chance(rng, 0.04):
        attributes.append(_attribute(rng.choice(attributes)["name"], rng.choice(("pod", "restricted", "?"))))
    rng.shuffle(attributes)
    return {"attributes": attributes, **({"topologyPolicies": legacy} if legacy else {})}


def report(rng: Random, layout: Layout, signature: Object) -> Object:
    """The node's report. `signature` is the result of `signed`."""
    zones = [_zone(rng, layout, zone) for zone in layout.zones]
    if chance(rng, 0.03):
        zones.append({**_zone(rng, layout, 0), "name": "socket-0", "type": "Socket"})
    if chance(rng, 0.02):
        zones.append(_zone(rng, layout, layout.zones[0]))
    shown = {key: value for key, value in layout.settings.items() if key != "attributes"}
    listed = layout.settings["attributes"], signature.get("attributes", ())
    attributes = [each for given in listed if isinstance(given, list) for each in given]
    metadata = {
        "name": layout.name,
        **({"annotations": signature["annotations"]} if "annotations" in signature else {}),
    }
    return {"metadata": metadata, **shown, "attributes": attributes, "zones": zones}


def signed(rng: Random, text: str, method: fingerprint.Method) -> Object:
    """A fingerprint as an attribute, with or without its method, or as an annotation."""
    if chance(rng, 0.12):
        return {"annotations": {normalise.FINGERPRINT_ANNOTATION: text}}
    attributes = [_attribute(normalise.FINGERPRINT, text)]
    if method is fingerprint.Method.EXCLUSIVE or chance(rng, 0.5):
        attributes.append(_attribute(normalise.FINGERPRINT_METHOD, method.value))
    return {"attributes": attributes}


def _zone_ids(rng: Random, count: int) -> list[int]:
    """The ids are 0, 1, 2, with few exceptions. Gaps make the plugin's scores panic, id 64 its filter as well
    (scheduler plugin spec 17)."""
    ids = list(range(count))
    if chance(rng, 0.04):
        ids = sorted(rng.sample(range(count + 3), count))
    if chance(rng, 0.005):
        ids[-1] = rng.choice((64, 63, 65))
    if chance(rng, 0.06):
        rng.shuffle(ids)
    return ids


def _zone(rng: Random, layout: Layout, zone: int) -> Zone:
    made: Zone = {"name": f"node-{zone}", "type": "Node", "resources": _resources(rng, layout)}
    if chance(rng, 0.01):
        made["name"] = rng.choice(ODD_NAMES).format(zone)
    if chance(rng, 0.01):
        made["type"] = rng.choice(("node", "Core"))
    if layout.costs == "all" or (layout.costs != "none" and chance(rng, 0.7)):
        far = 300 if layout.costs == "far" else rng.choice((12, 20, 20, 31))
        made["costs"] = [{"name": f"node-{to}", "value": 10 if to == zone else far} for to in layout.zones]
    return made


def _resources(rng: Random, layout: Layout) -> list[Object]:
    sizes = {"cpu": layout.cpus, "memory": layout.memory, **layout.devices}
    if layout.pages:
        sizes["hugepages-2Mi"] = layout.pages * (2 << 20)
    listed = [_amounts(rng, name, size) for name, size in sizes.items() if not chance(rng, 0.04)]
    if listed and chance(rng, 0.01):
        listed.append(_amounts(rng, str(listed[0]["name"]), layout.cpus))
    return listed


def _amounts(rng: Random, name: str, size: int) -> Object:
    free = size if chance(rng, 0.35) else size * rng.randint(0, 8) // 8
    text = f"{free * 1000 - rng.choice((0, 500))}m" if name == "cpu" and free and chance(rng, 0.08) else str(free)
    if chance(rng, 0.004):
        text = rng.choice(("-1", "1e3", "0.5", "3Ki"))
    return {"name": name, "capacity": str(size), "allocatable": str(size), "available": text}


def _attribute(name: str, value: str) -> dict[str, str]:
    return {"name": name, "value": value}


PROFILE = "topo-aware-scheduler"
MIB = 1 << 20
PHASES = {"Running": 7.0, "Pending": 2.0, "Succeeded": 0.5, "Failed": 0.5, "Unknown": 0.2, "": 0.2}


class ClusterPod:
    """One pod without node and phase, and whether a fingerprint counts it as exclusive. A greedy pod requests more CPUs
    than a zone has."""

    def __init__(self, rng: Random, number: int, layout: Layout, *, greedy: bool = False) -> None:
        self.greedy = greedy
        self.namespace = rng.choice(("default", "default", "ns1"))
        self.name = f"p{number}"
        self.kind = "guaranteed" if greedy else weighted(rng, {"guaranteed": 7, "burstable": 2, "besteffort": 1})
        self.asks_devices = False
        self.spec: Object = {"containers": self._containers(rng, layout)}
        if chance(rng, 0.2):
            self.spec["initContainers"] = [self._init(rng, layout, number) for number in range(rng.choice((1, 1, 2)))]
        self._add_rarities(rng)

    @property
    def is_exclusive(self) -> bool:
        """As v0.34.7 decides: every Guaranteed pod has memory, and every device counts, in any container."""
        return self.kind == "guaranteed" or self.asks_devices

    def object(self, *, node: str = "", phase: str = "", scheduler: str = PROFILE) -> Object:
        spec = {
            **self.spec,
            **({"schedulerName": scheduler} if scheduler else {}),
            **({"nodeName": node} if node else {}),
        }
        metadata = {"namespace": self.namespace, "name": self.name, "uid": f"u-{self.name}"}
        return {"metadata": metadata, "spec": spec, **({"status": {"phase": phase}} if phase else {})}

    def _containers(self, rng: Random, layout: Layout) -> list[Object]:
        count = weighted(rng, {1: 6, 2: 3, 3: 1})
        return [self._container(rng, f"c{number}", layout) for number in range(count)]

    def _init(self, rng: Random, layout: Layout, number: int) -> Object:
        made = self._container(rng, f"i{number}", layout)
        return {**made, "restartPolicy": "Always"} if chance(rng, 0.5) else made

    def _container(self, rng: Random, name: str, layout: Layout) -> Object:
        requests = {} if self.kind == "besteffort" else _native(rng, layout, greedy=self.greedy)
        for device in some(rng, list(layout.devices) or ["vendor.com/nic"], 0.3 if layout.devices else 0.03):
            requests[device] = str(weighted(rng, {1: 6, 2: 3, 3: 1, 0: 0.3}))
            self.asks_devices = True
        for resource in some(rng, ("ephemeral-storage", "storage", "gpu"), 0.015):
            requests[resource] = "1"
        limits = dict(requests)
        if self.kind == "burstable":
            limits.pop(rng.choice(("cpu", "memory")), None)
        return {"name": name, "resources": {"requests": requests, "limits": limits} if requests else {}}

    def _add_rarities(self, rng: Random) -> None:
        if chance(rng, 0.06):
            self.spec["overhead"] = {"cpu": rng.choice(("250m", "1")), "memory": "64Mi"}
        if chance(rng, 0.02):
            self.spec["resources"] = {
                "requests": {"cpu": "1", "memory": "1Gi"},
                "limits": {"cpu": "1", "memory": "1Gi"},
            }


def _native(rng: Random, layout: Layout, *, greedy: bool) -> dict[str, str]:
    most = layout.cpus if chance(rng, 0.5) else max(1, layout.cpus // 2)
    cpu = layout.cpus + 1 if greedy or chance(rng, 0.05) else rng.randint(1, most)
    share = rng.choice((1, 2, 2, 4, 8, 8)) if chance(rng, 0.95) else 9
    requests = {"cpu": str(cpu), "memory": f"{layout.memory * share // (8 * MIB)}Mi"}
    if chance(rng, 0.06):
        requests["cpu"] = f"{rng.randint(1, 1000 * layout.cpus)}m"
    if layout.pages and chance(rng, 0.3):
        requests["hugepages-2Mi"] = f"{2 * rng.choice((1, 32, 64, 128, 129))}Mi"
    return requests
