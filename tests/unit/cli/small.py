"""Small kubelets and pods for tests of the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numalign.api.decode import decode
from numalign.api.objects import requests
from numalign.api.objects.pod import Pod
from numalign.cli.display import values
from numalign.cli.results import admit
from numalign.kubelet import configuration, start
from numalign.kubelet.machine import machinefile, presets
from numalign.kubelet.start import Kubelet

STATIC_CPUS: dict[str, Any] = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"}
STATIC_MEMORY: dict[str, Any] = {
    "memoryManagerPolicy": "Static",
    "kubeReserved": {"memory": "1Gi"},
    "evictionHard": {"memory.available": "1Gi"},
    "reservedMemory": [{"numaNode": zone, "limits": {"memory": "1Gi"}} for zone in (0, 1)],
}


def kubelet(machine: str | Mapping[str, Any] = "2x16", policy: str = "none", **settings: Any) -> Kubelet:
    """A kubelet on a preset or a described machine; `policy` is the topology manager's."""
    hardware = presets.machine(machine) if isinstance(machine, str) else machinefile.read(machine, "test")
    kind = {"apiVersion": configuration.API_VERSION, "kind": configuration.KIND}
    written = {**kind, "topologyManagerPolicy": policy, **settings}
    return start.start(hardware, configuration.read(written, "test", hardware))


def pod(name: str, *containers: Mapping[str, Any], init: tuple[Mapping[str, Any], ...] = (), **spec: Any) -> Pod:
    """A pod of containers that are given by their limits."""
    written = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": _containers("c", containers), "initContainers": _containers("i", init), **spec},
    }
    return requests.defaulted(decode.decode(Pod, written))


def guaranteed(cpu: int, memory: str = "1Gi", **others: Any) -> dict[str, Any]:
    return {"cpu": cpu, "memory": memory, **{name.replace("__", "/"): count for name, count in others.items()}}


def admitted(node: Kubelet, *pods: Pod) -> values.AdmitReport:
    return admit.admit_all(node, [(each, "test") for each in pods])


def explained(node: Kubelet, *pods: Pod) -> values.Explanation:
    """The explanation for the last pod."""
    explanation = admitted(node, *pods).pods[-1].explanation
    assert explanation is not None
    return explanation


def _containers(stem: str, limits: tuple[Mapping[str, Any], ...]) -> list[dict[str, Any]]:
    return [{"name": f"{stem}{place}", "resources": {"limits": each}} for place, each in enumerate(limits)]
