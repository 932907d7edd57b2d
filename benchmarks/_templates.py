"""Nodes and pods of the workloads, as an API server sends them: what scheduler_perf's templates say, in JSON.

`_inprocess` asks for them by name. Ours beside them: nodes with NUMA zones, which report them, and pods that fill
whole CPUs of a zone, with and without a GPU."""

from __future__ import annotations

from typing import Any, Final

from benchmarks._cluster import drawn
from benchmarks._workloads import SIZES
from numalign.api.nrt import normalise
from numalign.api.nrt.nodetopology import Amounts, NodeTopology, Zone
from numalign.api.nrt.topologymanager import TopologyManager
from numalign.api.nrt.wire import NodeResourceTopology

Tree = dict[str, Any]

HOST: Final = "kubernetes.io/hostname"
REGION: Final = "topology.kubernetes.io/zone"
GPU: Final = "nvidia.com/gpu"
CPUS_PER_ZONE, GPUS_PER_ZONE, GIB_PER_ZONE = 32, 4, 128
TOLERATIONS: Final = [
    {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for what in ("not-ready", "unreachable")
]
"""What the API server gives to every pod."""
NAMED: Final = "daemonset-node"
SMALL: Final = {"cpu": "100m", "memory": "500Mi"}


def node(name: str, zone: str = "", *, tainted: bool = False, numa: int = 0) -> Tree:
    offered = {"pods": "110", "cpu": "4", "memory": "32Gi"}
    if numa:
        offered |= {"cpu": f"{numa * CPUS_PER_ZONE}", "memory": f"{numa * GIB_PER_ZONE}Gi"}
        offered |= {GPU: f"{numa * GPUS_PER_ZONE}"}
    labels = {HOST: name} | ({REGION: zone} if zone else {})
    spec = {"taints": [{"key": "foo", "effect": "NoSchedule"}]} if tainted else {}
    status = {"capacity": offered, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"metadata": {"name": name, "uid": f"uid-{name}", "labels": labels}, "spec": spec, "status": status}


def named_node() -> Tree:
    """The node that pods of the DaemonSet go to, all of them."""
    return node(NAMED) | {"status": {"capacity": {"pods": "90000", "cpu": "4", "memory": "32Gi"}}}


def idle_node(name: str) -> Tree:
    """A node that takes no pods."""
    return node(name) | {"status": {"capacity": {"pods": "0"}}}


def report(name: str, zones: int, unlike: int = 0) -> NodeResourceTopology:
    """Plain, as RTE and NFD write it, with everything free; by a number, up to a quarter of it is in use."""
    manager = TopologyManager(policy="single-numa-node", scope="container")
    found = tuple(Zone(id=zone, resources=_resources(zone, unlike)) for zone in range(zones))
    return normalise.encode(NodeTopology(node=name, manager=manager, zones=found))


def _resources(zone: int, unlike: int) -> dict[str, Amounts]:
    amounts = {"cpu": (CPUS_PER_ZONE, 1000), "memory": (GIB_PER_ZONE, 1 << 30), GPU: (GPUS_PER_ZONE, 1)}
    found = {}
    for place, (name, (most, unit)) in enumerate(amounts.items()):
        in_use = drawn(unlike, zone, place) % (most // 4 + 1) if unlike else 0
        found[name] = Amounts(most * unit, most * unit, (most - in_use) * unit)
    return found


def pod(template: str, name: str, namespace: str) -> Tree:
    written = POD_TEMPLATES[template]
    meta = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "resourceVersion": "1"}
    if "labels" in written:
        meta["labels"] = written["labels"]
    spec = written["spec"] | {"schedulerName": "numalign", "tolerations": TOLERATIONS}
    return {"metadata": meta, "spec": spec, "status": {"phase": "Pending"}}


def service(namespace: str) -> Tree:
    return {"metadata": {"name": "service", "namespace": namespace}, "spec": {"selector": {"app": "scheduler-perf"}}}


def other_service(namespace: str) -> Tree:
    """Of no pod here."""
    return {"metadata": {"name": "churn", "namespace": namespace}, "spec": {"selector": {"app": "foo"}}}


def namespace(name: str) -> Tree:
    return {"metadata": {"name": name, "labels": {"team": "devops"}}}


def _pod(asked: Tree | None = None, *, limits: bool = True, colour: str = "", **spec: Any) -> Tree:
    amounts = SMALL if asked is None else asked
    resources = {"requests": amounts} | ({"limits": amounts} if limits else {}) if amounts else {}
    container = {
        "name": "pause",
        "image": "registry.k8s.io/pause:3.10.2",
        "ports": [{"containerPort": 80}],
        "resources": resources,
    }
    found: Tree = {"spec": {"containers": [container], **spec}}
    return found | {"labels": {"color": colour}} if colour else found


def _term(colour: str, key: str, **chosen: Any) -> Tree:
    return {
        "labelSelector": {"matchLabels": {"color": colour}},
        "topologyKey": key,
        **(chosen or {"namespaces": ["sched-1", "sched-0"]}),
    }


def _near(kind: str, *required: Tree, preferred: tuple[Tree, ...] = ()) -> Tree:
    return {
        kind: {
            "requiredDuringSchedulingIgnoredDuringExecution": list(required),
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "podAffinityTerm": term} for term in preferred
            ],
        }
    }


def _to_nodes(**terms: Any) -> Tree:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [terms]}}}


def _spreading(label: str, value: str, key: str, skew: int, action: str, **more: Any) -> list[Tree]:
    selector = {"matchLabels": {label: value}}
    return [{"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": action, "labelSelector": selector, **more}]


DEVOPS: Final = {"namespaceSelector": {"matchLabels": {"team": "devops"}}}
POD_TEMPLATES: Final[dict[str, Tree]] = {
    "default": _pod(),
    "green": _pod(colour="green"),
    "large-cpu": _pod({"cpu": "9", "memory": "500Mi"}, limits=False, priority=10),
    "low-priority": _pod({"cpu": "900m", "memory": "500Mi"}, terminationGracePeriodSeconds=0),
    "high-priority": _pod({"cpu": "3970m", "memory": "500Mi"}, terminationGracePeriodSeconds=0, priority=9_999_999),
    "daemonset": _pod(
        {}, affinity=_to_nodes(matchFields=[{"key": "metadata.name", "operator": "In", "values": [NAMED]}])
    ),
    "node-affinity": _pod(
        affinity=_to_nodes(matchExpressions=[{"key": REGION, "operator": "In", "values": ["zone1", "zone2"]}])
    ),
    "affinity": _pod(colour="blue", affinity=_near("podAffinity", _term("blue", REGION))),
    "anti-affinity": _pod(colour="green", affinity=_near("podAntiAffinity", _term("green", HOST))),
    "preferred-affinity": _pod(colour="red", affinity=_near("podAffinity", preferred=(_term("red", HOST),))),
    "preferred-anti-affinity": _pod(
        colour="yellow", affinity=_near("podAntiAffinity", preferred=(_term("yellow", HOST),))
    ),
    "team-affinity": _pod(colour="blue", affinity=_near("podAffinity", _term("blue", REGION, **DEVOPS))),
    "team-anti-affinity": _pod(colour="green", affinity=_near("podAntiAffinity", _term("green", HOST, **DEVOPS))),
    "team-preferred-affinity": _pod(
        colour="red", affinity=_near("podAffinity", preferred=(_term("red", HOST, **DEVOPS),))
    ),
    "spreading": _pod(colour="blue", topologySpreadConstraints=_spreading("color", "blue", REGION, 5, "DoNotSchedule")),
    "preferred-spreading": _pod(
        colour="blue", topologySpreadConstraints=_spreading("color", "blue", REGION, 5, "ScheduleAnyway")
    ),
    "of-service": _pod({}) | {"labels": {"app": "scheduler-perf"}},
    "inclusion": _pod(
        topologySpreadConstraints=_spreading(
            "foo", "bar", HOST, 1, "DoNotSchedule", nodeAffinityPolicy="Honor", nodeTaintsPolicy="Honor"
        )
    )
    | {"labels": {"foo": "bar"}},
    **{
        f"size-{number}": _pod(
            {"cpu": str(1 + number % 4), "memory": f"{1 + number}Gi"} | ({GPU: "1"} if number > SIZES // 2 else {})
        )
        for number in range(SIZES)
    },
    "pinned": _pod({"cpu": "2", "memory": "4Gi"}),
    "gpu": _pod({"cpu": "4", "memory": "8Gi", GPU: "1"}),
}
