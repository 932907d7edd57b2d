"""Clusters that the planner is asked about: machines of a catalogue, with pods that their kubelets have admitted."""

from __future__ import annotations

from typing import Any

import msgspec

from numalign.api.decode import quantity
from numalign.kubelet.machine import presets
from numalign.plan.questions.scene import Kind
from numalign.plan.sources import catalogue, workloadtable
from numalign.plan.sources.catalogue import Catalogue
from numalign.scheduler.snapshot import files
from numalign.scheduler.snapshot.snapshot import Snapshot
from tests import machinescenes
from tests.machinescenes import Item

STATIC = {"topologyManagerPolicy": "restricted", "cpuManagerPolicy": "static", "reservedSystemCPUs": "0"}


def machine_type(name: str = "small", machine: Any = "2x16", **more: Any) -> dict[str, Any]:
    return {"name": name, "machine": machine, "kubelet": STATIC, **more}


def catalogue_of(*types: dict[str, Any]) -> Catalogue:
    written = {"apiVersion": catalogue.API_VERSION, "kind": catalogue.KIND, "machines": list(types)}
    return catalogue.read(written, "machines.yaml", presets.machine)


def kind(name: str = "pod", pods: int = 1, weight: int = 1, **amounts: str) -> Kind:
    """A kind of Guaranteed pod; `gpu` stands for nvidia.com/gpu."""
    given = {"nvidia.com/gpu" if key == "gpu" else key: quantity.parse(text) for key, text in amounts.items()}
    return Kind(
        name=name,
        pod=workloadtable.guaranteed(name, {"memory": quantity.parse("1Gi"), **given}),
        pods=pods,
        weight=weight,
    )


def cluster(*nodes: list[Item]) -> Snapshot:
    """Of nodes of `machinescenes`, as kubectl prints them."""
    items = [item for node in nodes for item in node]
    return files.read(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items}), "cluster.json")


def pending(*pods: Any) -> list[Item]:
    return [machinescenes.item("Pod", "v1", pod) for pod in pods]
