"""Clusters that do not exist, as snapshots: empty machines of a catalogue, and the machines of a trace.

The command line calls `of_catalogue` and `of_trace`; `fit` calls `machine` for each machine that it adds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from msgspec import Struct, structs

from numalign.api.errors import BadObject
from numalign.api.nrt import normalise
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.api.nrt.topologymanager import Policy
from numalign.api.nrt.wire import NodeResourceTopology
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.node import Node
from numalign.api.objects.pod import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
)
from numalign.api.schedulerconfig.configuration import Configuration
from numalign.kube.resources import NODES, TOPOLOGIES
from numalign.kubelet.report import report
from numalign.plan import machines, workload
from numalign.plan.sources.catalogue import Catalogue, MachineType
from numalign.plan.trace import Trace
from numalign.scheduler import main
from numalign.scheduler.capacity import templates
from numalign.scheduler.snapshot.snapshot import Snapshot

HOST_NAME = "kubernetes.io/hostname"
INSTANCE_TYPE = templates.INSTANCE_TYPE
MODEL = "numalign.io/gpu-model"
"""The label of machines of a trace by which pods ask for a model of GPU."""


class Machine(Struct, frozen=True):
    """A node with its report."""

    node: Node
    report: NodeResourceTopology


def machine(kind: MachineType, name: str) -> Machine:
    """An empty machine of this type."""
    node, topology = _empty(_Known(kind))
    labels = {**kind.labels, HOST_NAME: name, INSTANCE_TYPE: kind.name}
    node = structs.replace(node, metadata=ObjectMeta(name=name, labels=labels))
    return Machine(node, normalise.encode(templates.renamed(topology, name)))


class _Known:
    """Equal for one and the same type."""

    def __init__(self, kind: MachineType) -> None:
        self.kind = kind

    def __hash__(self) -> int:
        return id(self.kind)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Known) and other.kind is self.kind


@lru_cache(maxsize=256)
def _empty(known: _Known) -> tuple[Node, NodeTopology]:
    kubelet = known.kind.kubelet
    node = templates.node_of(kubelet)
    info = structs.replace(node.status.node_info, kubelet_version=f"v{kubelet.settings.minor}.0")
    return structs.replace(node, status=structs.replace(node.status, node_info=info)), report.of(
        "", kubelet, kubelet.initial()
    )


def snapshot(made: Iterable[Machine], config: Configuration | None = None) -> Snapshot:
    listed = list(made)
    objects = {
        NODES.plural: tuple(each.node for each in listed),
        TOPOLOGIES.plural: tuple(each.report for each in listed),
    }
    return Snapshot(objects=objects, config=config or main.defaults())


def of_catalogue(catalogue: Catalogue, source: str, config: Configuration | None = None) -> Snapshot:
    """As many empty machines of each type as the catalogue counts. BadObject if it counts none."""
    made = [machine(kind, f"{kind.name}-{number}") for kind in catalogue.types for number in range(kind.count or 0)]
    if not made:
        why = "no machine type has a count above 0, so there is no cluster to ask; add count to a type"
        raise BadObject("MachineCatalogue", source, "machines", why)
    return snapshot(made, config)


class TraceSetup(Struct, frozen=True, kw_only=True):
    """How the machines and pods of a trace are read (docs/develop/packing.md)."""

    zones: int = 1
    policy: Policy = "restricted"
    pinned: bool = False


def of_trace(trace: Trace, setup: TraceSetup, config: Configuration | None = None) -> Snapshot:
    """The machines of a trace, empty."""
    made = []
    for listed, place in zip(trace.nodes, machines.nodes(trace.nodes, setup.zones, setup.policy), strict=True):
        labels = {HOST_NAME: listed.name, MODEL: listed.model or "none"}
        node = structs.replace(place.node, metadata=structs.replace(place.node.metadata, labels=labels))
        made.append(Machine(node, normalise.encode(place.topology)))
    return snapshot(made, config)


def pods_of_trace(trace: Trace, setup: TraceSetup) -> list[tuple[Pod, int]]:
    """The distinct pods of a trace that ask for whole GPUs or none, each with how many there are."""
    whole = workload.whole_gpus(trace)
    if setup.pinned:
        whole = workload.with_whole_cpus(whole)
    counted: dict[workload.Shape, int] = {}
    for each in whole.pods:
        shape = workload.shape_of(each)
        counted[shape] = counted.get(shape, 0) + 1
    return [(_pod(shape, setup, number), count) for number, (shape, count) in enumerate(counted.items())]


def _pod(shape: workload.Shape, setup: TraceSetup, number: int) -> Pod:
    made = machines.named(machines.pod(shape, pinned=setup.pinned), f"{_words(shape)}-{number}")
    return _of_models(made, shape.models)


def _words(shape: workload.Shape) -> str:
    return f"cpu-{shape.cpu_milli}m" + (f"-gpu-{shape.gpus}" if shape.gpus else "")


def _of_models(pod: Pod, models: Sequence[str]) -> Pod:
    if not models:
        return pod
    wanted = NodeSelectorRequirement(key=MODEL, operator="In", values=tuple(models))
    term = NodeSelectorTerm(match_expressions=(wanted,))
    required = NodeSelector(node_selector_terms=(term,))
    affinity = Affinity(node_affinity=NodeAffinity(required_during_scheduling_ignored_during_execution=required))
    return structs.replace(pod, spec=structs.replace(pod.spec, affinity=affinity))
