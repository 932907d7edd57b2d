"""The nodes of a campaign: few, each of another kind, so that every manager of the kubelet is used.

Two and eight zones, four topology manager policies and both scopes, devices, huge pages, whole cores, and one node
without the static memory policy."""

from __future__ import annotations

from typing import Any, Final

from numalign.kubelet import machinefile
from numalign.kubelet.machine import Machine
from numalign.lab import spec
from numalign.lab.spec import NodeSpec

GPU: Final = "example.com/gpu"
NIC: Final = "example.com/nic"
PAGES: Final = "hugepages-2Mi"

EVERYTHING: Final = machinefile.read(
    {
        "name": "everything",
        "extends": "2x16",
        "zones": [{"id": 0, "hugepages": {"2Mi": "2Gi"}}, {"id": 1, "hugepages": {"2Mi": "2Gi"}}],
        "devices": {GPU: {0: 2, 1: 2, "preferredAllocation": True}, NIC: {0: 3, 1: 3, "0,1": ["wide"]}},
    },
    "everything",
)
EIGHT_ZONES: Final = machinefile.read(
    {
        "name": "eight-zones",
        "zones": [{"cpus": f"{4 * zone}-{4 * zone + 3}", "memory": "16Gi"} for zone in range(8)],
        "devices": {NIC: dict.fromkeys(range(8), 1)},
    },
    "eight-zones",
)
THREADS: Final = machinefile.read({"name": "threads", "extends": "2x32-smt"}, "threads")


def nodes() -> tuple[NodeSpec, ...]:
    return (
        _node("strict", EVERYTHING, "single-numa-node", "container"),
        _node("podwise", EVERYTHING, "restricted", "pod"),
        _node("eight", EIGHT_ZONES, "single-numa-node", "pod"),
        _node("cores", THREADS, "restricted", "container", cpuManagerPolicyOptions={"full-pcpus-only": "true"}),
        _node("loose", EVERYTHING, "best-effort", "container", memoryManagerPolicy="None", reservedMemory=[]),
    )


def _node(name: str, machine: Machine, policy: str, scope: str, **more: Any) -> NodeSpec:
    return spec.node(name, machine, more={"topologyManagerPolicy": policy, "topologyManagerScope": scope, **more})
