"""Histories for the reference plugin, written by hand: each shows one entry of the compatibility pages."""

from __future__ import annotations

from typing import Any

from numalign.api.nrt import fingerprint, normalise, topologymanager

Raw = dict[str, Any]

OVER: Raw = {"cacheResyncPeriodSeconds": 5}
EXCLUSIVE: Raw = {**OVER, "cache": {"foreignPodsDetect": "OnlyExclusiveResources"}}
ALL = {"cpu": "4", "memory": "8Gi", "vendor.com/nic": "2"}
ONE = {"cpu": "1", "memory": "1Gi"}
NO_PODS = fingerprint.of([])


def strategy(name: str) -> Raw:
    return {"scoringStrategy": {"type": name}}


def container(requests: Raw, **more: Any) -> Raw:
    return {"name": "c", "resources": {"requests": requests, "limits": requests}, **more}


def pod(*containers: Raw, name: str = "p", node: str = "", phase: str = "", **spec: Any) -> Raw:
    placed = {"nodeName": node} if node else {}
    status = {"status": {"phase": phase}} if phase else {}
    metadata = {"namespace": "default", "name": name, "uid": name}
    scheduler = {"schedulerName": "topo-aware-scheduler"}
    return {"metadata": metadata, "spec": {"containers": list(containers), **scheduler, **placed, **spec}, **status}


def zone(number: int, free: Raw = ALL, **more: Any) -> Raw:
    amounts = [{"name": name, "capacity": "16", "allocatable": "16", "available": text} for name, text in free.items()]
    return {"name": f"node-{number}", "type": "Node", "resources": amounts, **more}


def report(*zones: Raw, signature: str = "", scope: str = "container", **attributes: str) -> Raw:
    written = {topologymanager.POLICY: "single-numa-node", topologymanager.SCOPE: scope, **attributes}
    written |= {normalise.FINGERPRINT: signature} if signature else {}
    listed = [{"name": name, "value": value} for name, value in written.items()]
    return {"metadata": {"name": "n"}, "attributes": listed, "zones": list(zones) or [zone(0), zone(1)]}


def history(*steps: Raw, args: Raw = OVER, nrts: list[Raw] | None = None, pods: list[Raw] | None = None) -> Raw:
    return {
        "id": "by-hand",
        "args": args,
        "nodes": [{"metadata": {"name": "n"}, "status": {"allocatable": {**ALL, "pods": "110"}}}],
        "nrts": [report()] if nrts is None else nrts,
        "pods": pods or [],
        "steps": list(steps),
    }


def signed_for(*pods: str) -> str:
    return fingerprint.of([("default", name) for name in pods])


def scored(asked: Raw, seen: Raw, name: str) -> Raw:
    return history({"op": "score", "pod": asked}, args=strategy(name), nrts=[seen])


def refreshed(signature: str, *pods: Raw, **attributes: str) -> Raw:
    """A node that was refused gets a report with this signature, and a round."""
    return history(
        {"op": "node_rejected", "node": "n"},
        {"op": "nrt_update", "nrt": report(signature=signature, **attributes)},
        {"op": "resync"},
        pods=list(pods),
    )


def lived(phase: str, name: str = "p", *containers: Raw) -> Raw:
    return pod(*containers or [container(ONE)], name=name, node="n", phase=phase)


FOREIGN = pod(container({"cpu": "1", "vendor.com/gpu": "1"}), node="n", phase="Running", schedulerName="other")
FOREIGN_INIT = pod(
    container({}), node="n", phase="Running", schedulerName="other", initContainers=[container({"vendor.com/nic": "1"})]
)
UNEQUAL = [
    {"name": name, "resources": {"requests": {**ONE, "cpu": asked}, "limits": {**ONE, "cpu": limit}}}
    for name, asked, limit in (("a", "1", "2"), ("b", "2", "1"))
]
FAR = [{"name": f"node-{number}", "value": 300} for number in range(2)]
TWO_CONTAINERS = pod(container({**ONE, "cpu": "3"}), container({**ONE, "cpu": "2"}))

HISTORIES: dict[str, Raw] = {
    "difference 3": history({"op": "pod_add", "pod": FOREIGN}, {"op": "desynced"}, args=EXCLUSIVE),
    "difference 4": history({"op": "pod_add", "pod": FOREIGN_INIT}, {"op": "desynced"}, args=EXCLUSIVE),
    "difference 5": history(
        {"op": "node_rejected", "node": "n"}, {"op": "reserve", "pod": pod(), "node": "n"}, {"op": "desynced"}
    ),
    "difference 7": scored(pod(container(ONE), resources={}), report(), "LeastAllocated"),
    "difference 7, sums": scored(pod(*UNEQUAL), report(), "LeastAllocated"),
    "cache-late-report": history({"op": "nrt_update", "nrt": report()}, {"op": "get_nrt", "node": "n"}, nrts=[]),
    "cache-report-gone": history({"op": "nrt_delete", "node": "n"}, {"op": "get_nrt", "node": "n"}),
    "cache-empty-node": refreshed(NO_PODS),
    "cache-ended-pods": refreshed(signed_for("p"), lived("Running"), lived("Succeeded", "q")),
    "cache-starting-pods": refreshed(signed_for("p", "q"), lived("Running"), lived("Pending", "q")),
    "cache-pinned-pods": history(
        {"op": "node_rejected", "node": "n"},
        {
            "op": "nrt_update",
            "nrt": report(
                zone(0, {"cpu": "4"}),
                signature=NO_PODS,
                **{normalise.FINGERPRINT_METHOD: fingerprint.Method.EXCLUSIVE.value},
            ),
        },
        {"op": "resync"},
        pods=[lived("Running", "p", container({"cpu": "500m", "memory": "1Gi"}))],
    ),
    "cache-unreported-pod": history(
        {"op": "reserve", "pod": pod(container(ONE), name="q"), "node": "n"},
        {"op": "pod_add", "pod": lived("Pending", "q")},
        {"op": "node_rejected", "node": "n"},
        {"op": "nrt_update", "nrt": report(signature=signed_for("p"))},
        {"op": "resync"},
        {"op": "get_nrt", "node": "n"},
        pods=[lived("Running")],
    ),
    "zone-64": history({"op": "filter", "pod": pod(container(ONE))}, nrts=[report(zone(64))]),
    "zone-twice": history(
        {"op": "filter", "pod": pod(container({**ONE, "cpu": "3"}))}, nrts=[report(zone(0), zone(0, {"cpu": "1"}))]
    ),
    "zone-gaps": scored(pod(container(ONE)), report(zone(0), zone(2)), "MostAllocated"),
    "zone-order": scored(TWO_CONTAINERS, report(zone(1), zone(0, {**ALL, "cpu": "1"})), "LeastNUMANodes"),
    "asks-nothing": scored(pod(container({}), resources=container(ONE)["resources"]), report(), "LeastAllocated"),
    "balanced-one": scored(
        pod(container({"cpu": "1"}), resources=container(ONE)["resources"]), report(), "BalancedAllocation"
    ),
    "less-than-none": scored(
        pod(container(ONE)), report(zone(0, {"cpu": "-1", "memory": "8Gi"})), "BalancedAllocation"
    ),
    "beyond-64-bits": scored(
        pod(container({"cpu": "1", "memory": "700P"})), report(zone(0, {"cpu": "4", "memory": "1E"})), "MostAllocated"
    ),
    "far-zones": scored(pod(container(ONE)), report(zone(0, costs=FAR), zone(1, costs=FAR)), "LeastNUMANodes"),
    "below-zero": scored(
        pod(container({"cpu": "12", "memory": "1Gi"})),
        report(zone(0), zone(1), zone(2), **{topologymanager.MAX_ZONES: "2"}),
        "LeastNUMANodes",
    ),
    "settings": history(args={**OVER, "unheardOf": 1}),
    "difference 1": history(args={**OVER, "preemptionMode": "Enabled"}),
}
"""By entry; what follows a comma tells two histories of one entry apart."""


def entry(name: str) -> str:
    return name.partition(",")[0]
