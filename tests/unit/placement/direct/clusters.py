"""Engines with nodes in direct mode, for tests."""

from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import strategies as st
from msgspec import structs

from numalign.api.attributes import directresult
from numalign.api.attributes.directmode import FEATURES, DirectMode
from numalign.api.attributes.directresult import DirectResult
from numalign.api.decode import quantity
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.node import Node, NodeStatus
from numalign.api.objects.pod import Pod
from numalign.kubelet import start
from numalign.kubelet.machine.machine import Machine
from numalign.kubelet.report import directreport, report
from numalign.kubelet.settings import Settings
from numalign.placement.decisions import Decision
from numalign.placement.engine import Engine
from numalign.placement.facts import NodeSeen, PodSeen, ReportSeen
from tests.unit.kubelet import made

ALL = DirectMode(frozenset(FEATURES))
UNMANAGED = Settings()


def node(name: str = "n", cpus: int = 16, labels: Mapping[str, str] | None = None) -> Node:
    offered = {"cpu": cpus, "memory": 16 << 30, made.NIC: 4, "pods": 110}
    amounts = {resource: quantity.of(amount) for resource, amount in offered.items()}
    meta = ObjectMeta(name=name, uid=name, labels=dict(labels or {}))
    return Node(metadata=meta, status=NodeStatus(capacity=amounts, allocatable=amounts))


def topology(
    name: str = "n", machine: Machine | None = None, settings: Settings = UNMANAGED, mode: DirectMode = ALL
) -> NodeTopology:
    machine = machine or made.machine(zones=2, cores=8)
    kubelet = start.start(machine, settings)
    plain = report.of(name, kubelet, kubelet.initial())
    return directreport.advertised(plain, machine, settings, mode)


def engine(*names: str, labels: Mapping[str, str] | None = None, cpus: int = 16, **more: Any) -> Engine:
    found = Engine()
    for name in names:
        found.apply(NodeSeen(node(name, cpus, labels)))
        found.apply(ReportSeen(topology(name, **more), 0.0))
    return found


def named(pod: Pod, name: str) -> Pod:
    return structs.replace(pod, metadata=structs.replace(pod.metadata, name=name, uid=name))


def bound(pod: Pod, decision: Decision) -> Pod:
    """The pod as the API server has it once it is bound."""
    assert decision.direct is not None
    annotations = {**pod.metadata.annotations, directresult.RESULT: directresult.encode(decision.direct)}
    meta = structs.replace(pod.metadata, annotations=annotations)
    return structs.replace(pod, metadata=meta, spec=structs.replace(pod.spec, node_name=decision.node))


def result(decision: Decision | None) -> DirectResult:
    assert decision is not None
    assert decision.direct is not None
    return decision.direct


def see(engine: Engine, pod: Pod) -> None:
    engine.apply(PodSeen(pod, 0.0))


class Story:
    """Pods end, and processes start anew; how pods are placed is up to each story."""

    def __init__(self, draw: Any, started: Callable[[], Engine]) -> None:
        self.draw, self.started = draw, started
        self.on, self.there = started(), dict[str, Pod]()

    def end(self, name: str) -> None:
        if self.there:
            gone = self.there.pop(self.draw(st.sampled_from(sorted(self.there))))
            self.on.apply(PodSeen(structs.replace(gone, status=structs.replace(gone.status, phase="Succeeded")), 1.0))

    def restart(self, name: str) -> None:
        self.on = self.started()
        for each in self.there.values():
            see(self.on, each)
