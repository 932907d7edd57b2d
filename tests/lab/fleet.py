"""The nodes that loads are played on: kinds of hardware and pods, each under every policy and scope.

One lab is shared by most tests; its nodes have every policy on a machine with everything, and most kinds at least once.
The whole matrix comes kind by kind, each in a lab of its own (`slow`). What looks at a single node, and at what happens
to its programs, has a smaller lab (`apart`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, get_args

from msgspec import Struct, structs

from numalign.agent.publish import startuptaint
from numalign.api.nrt import topologymanager
from numalign.kubelet import start
from numalign.kubelet.machine import machinefile, presets
from numalign.kubelet.machine.machine import Machine
from numalign.lab import spec
from numalign.lab.spec import NodeSpec, Reporter

POLICIES: tuple[str, ...] = get_args(topologymanager.Policy)
SCOPES: tuple[str, ...] = get_args(topologymanager.Scope)
STRICT = ("restricted", "single-numa-node")
PLAIN, PODWISE = "plain", "all-restricted-pod"
ZONEWISE, RTE = "all-single-numa-node-container", "rte-single-numa-node-container"
TOLD, OFFERING, UPDATED = "told", "offering", "updated"
NIC, GPU, HUGEPAGES = "example.com/nic", "example.com/gpu", "hugepages-2Mi"
LINK, KEY = "example.com/link", "example.com/key"

NO_MEMORY_MANAGER: Mapping[str, Any] = {"memoryManagerPolicy": "None", "reservedMemory": []}
FULL_CORES: Mapping[str, Any] = {"cpuManagerPolicyOptions": {"full-pcpus-only": "true"}}
LISTS_ENDED_PODS: Mapping[str, Any] = {"featureGates": {"KubeletPodResourcesListUseActivePods": False}}
CLOSEST: Mapping[str, Any] = {"topologyManagerPolicyOptions": {start.PREFER_CLOSEST: "true"}}


TAINTED: Mapping[str, Any] = {"registerWithTaints": [{"key": startuptaint.KEY, "effect": "NoSchedule"}]}
POD_ALIGNED: Mapping[str, Any] = {"topologyManagerScope": "pod"}
GPUS: Mapping[str, Any] = {"0": 4, "1": 4}
OFFER: Mapping[str, Any] = {
    "devices": {GPU: GPUS, LINK: {"0,1": 2}, KEY: {"noTopology": 2, "each": [{"id": "odd", "zones": []}]}},
    "plugins": {GPU: {"prefer": "packed", "preStart": True, "allocate": {"env": {"GPUS": "{ids}"}}}},
}


class Kind(Struct, frozen=True, kw_only=True):
    """A kind of hardware, with what its pods ask for beside CPUs and memory."""

    machine: Machine
    more: Mapping[str, Any] = {}
    """Of the kubelet's configuration."""
    extras: tuple[str, ...] = ()
    inits: bool = False
    wide: bool = False
    """Whether some pods need more than a zone has."""
    halves: bool = False
    """Whether some pods ask for half a core too much."""
    reporter: Reporter = "own"


def _machine(name: str, **described: Any) -> Machine:
    return machinefile.read({"name": name, **described}, name)


def _zones(count: int, cpus: int, memory: str) -> list[dict[str, Any]]:
    """Two neighbours are closer to each other than to the rest."""
    return [
        {
            "cpus": f"{cpus * zone}-{cpus * zone + cpus - 1}",
            "memory": memory,
            "distances": [10 if other == zone else 12 if other // 2 == zone // 2 else 32 for other in range(count)],
        }
        for zone in range(count)
    ]


TWO_PAGES = [{"id": zone, "hugepages": {"2Mi": "2Gi"}} for zone in (0, 1)]
DEVICES: dict[str, Any] = {NIC: {0: 4, 1: 4}, GPU: {0: 1, 1: 2}}
SMALL = presets.machine("2x16")
EVERYTHING = _machine("everything", extends="2x16", zones=TWO_PAGES, devices=DEVICES)

KINDS: Mapping[str, Kind] = {
    "cpu": Kind(machine=SMALL, more=NO_MEMORY_MANAGER),
    "memory": Kind(machine=_machine("scarce", zones=_zones(2, 16, "24Gi")), wide=True),
    "hugepages": Kind(machine=_machine("paged", extends="2x16", zones=TWO_PAGES), extras=(HUGEPAGES,), wide=True),
    "devices": Kind(machine=_machine("devices", extends="2x16", devices=DEVICES), extras=(NIC, GPU)),
    "inits": Kind(machine=SMALL, inits=True),
    "eight": Kind(machine=_machine("eight", zones=_zones(8, 4, "16Gi")), wide=True),
    "cores": Kind(machine=presets.machine("2x32-smt"), more=FULL_CORES, wide=True, halves=True),
    "closest": Kind(machine=_machine("close", zones=_zones(4, 8, "16Gi")), more=CLOSEST, wide=True),
    "rte": Kind(machine=EVERYTHING, extras=(NIC, GPU, HUGEPAGES), inits=True, reporter="rte"),
    "nfd": Kind(machine=EVERYTHING, extras=(NIC, GPU, HUGEPAGES), inits=True, reporter="nfd"),
    "all": Kind(machine=EVERYTHING, extras=(NIC, GPU, HUGEPAGES), inits=True),
}
SHARED = (
    "all-none-container",
    "all-best-effort-container",
    "all-best-effort-pod",
    "all-restricted-container",
    "all-restricted-pod",
    "all-single-numa-node-container",
    "all-single-numa-node-pod",
    "cpu-single-numa-node-container",
    "memory-restricted-container",
    "eight-single-numa-node-pod",
    "cores-single-numa-node-container",
    "closest-best-effort-pod",
    "rte-single-numa-node-container",
    "nfd-single-numa-node-container",
)


def nodes() -> tuple[NodeSpec, ...]:
    """Of the shared lab: one for tests that look at single pods; the rest for loads."""
    return (spec.node(PLAIN, SMALL, more=LISTS_ENDED_PODS), *shared())


def named() -> tuple[NodeSpec, ...]:
    """Those of the shared lab that tests name, without those that only have loads."""
    return tuple(node for node in nodes() if node.name in (PLAIN, PODWISE, ZONEWISE, RTE))


def apart() -> tuple[NodeSpec, ...]:
    """Two that our agent reports on, one with the start-up taint and one with plugins of all sorts, and one that NFD's
    updater reports on."""
    told, offering = spec.node(TOLD, SMALL, more=TAINTED), spec.node(OFFERING, SMALL)
    updated = spec.node(UPDATED, EVERYTHING, more=POD_ALIGNED)
    return (
        structs.replace(told, reporter="own"),
        structs.replace(offering, devices=OFFER, reporter="own"),
        structs.replace(updated, reporter="nfd"),
    )


def shared() -> list[NodeSpec]:
    """Not more than fifteen, so that they fit at a time where Linux gives the usual 128 inotify instances, of which a
    kubelet and an agent take six. With fewer they come in batches (`labs`)."""
    return [node for kind in KINDS for node in of_kind(kind) if node.name in SHARED]


def of_kind(kind: str) -> Iterator[NodeSpec]:
    about = KINDS[kind]
    for policy, scope in product(POLICIES, SCOPES):
        more = {**about.more, **_aligned(policy, scope)}
        node = spec.node(f"{kind}-{policy}-{scope}", about.machine, more=more)
        yield structs.replace(node, reporter=about.reporter)


def kind_of(name: str) -> str:
    return name.partition("-")[0]


def _aligned(policy: str, scope: str) -> dict[str, Any]:
    return {"topologyManagerPolicy": policy, "topologyManagerScope": scope}
