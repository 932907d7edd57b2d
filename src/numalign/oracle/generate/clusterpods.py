"""Generates pods as API objects: every QoS class, init containers, sidecars, devices, overhead, ours and foreign."""

from __future__ import annotations

from random import Random

from numalign.oracle.generate.draws import chance, some, weighted
from numalign.oracle.generate.reports import Layout

PROFILE = "topo-aware-scheduler"
MIB = 1 << 20
PHASES = {"Running": 7.0, "Pending": 2.0, "Succeeded": 0.5, "Failed": 0.5, "Unknown": 0.2, "": 0.2}

Object = dict[str, object]


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
