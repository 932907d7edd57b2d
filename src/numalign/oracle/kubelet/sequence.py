"""Recorded sequences on a node: all managers together, pods admitted, started and removed, kubelet restarts.

`SequenceCase` and its parts are inputs; `SequenceAnswer` adds the model's results. The recording holds a snapshot of
the node after every op. A restart admits every active pod again. If the managers refuse to start, the sequence ends.
The general admission predicates were not part of the recordings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from numalign.api.decode import cpuset
from numalign.api.objects import qos
from numalign.api.objects.pod import Pod
from numalign.kubelet import admission
from numalign.kubelet import start as starting
from numalign.kubelet.device import Held
from numalign.kubelet.refusals import StartRefusal, Undecided
from numalign.kubelet.settings import (
    CPUPolicy,
    MemoryPolicy,
    MemoryReservation,
    Settings,
    TopologyPolicy,
    TopologyScope,
)
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import ContainerPlacement, Isolation, KubeletState
from numalign.kubelet.versions import Minor
from numalign.oracle.kubelet import forms
from numalign.oracle.kubelet.family import OPTION_GATES, CaseOrigin, Family
from numalign.oracle.kubelet.forms import Block, Hint, ZoneState

POD_LEVEL_GATE = "PodLevelResourceManagers"


class ReservedMemory(Struct, frozen=True, kw_only=True):
    numa: int
    limits: dict[str, int]


class NodeConfig(Struct, frozen=True, kw_only=True):
    tm_policy: TopologyPolicy
    tm_scope: TopologyScope
    tm_options: dict[str, str]
    cpu_policy: CPUPolicy
    cpu_options: dict[str, str]
    reserved_cpus: str
    reserved_cpu_milli: int
    memory_policy: MemoryPolicy
    reserved_memory: tuple[ReservedMemory, ...]
    gate_pod_level_resource_managers: bool

    def settings(self, minor: Minor) -> Settings:
        withheld = forms.totals(each.limits for each in self.reserved_memory)
        return Settings(
            topology_policy=self.tm_policy,
            topology_scope=self.tm_scope,
            topology_options=self.tm_options,
            cpu_policy=self.cpu_policy,
            cpu_options=self.cpu_options,
            reserved_cpus=cpuset.parse(self.reserved_cpus),
            memory_policy=self.memory_policy,
            reserved_memory=tuple(MemoryReservation(each.numa, each.limits) for each in self.reserved_memory),
            reserved={"cpu": self.reserved_cpu_milli, **withheld},
            # A kubelet that does not know the gate behaves as if it were off, and refuses to start if it is named.
            feature_gates={**OPTION_GATES, **({POD_LEVEL_GATE: True} if self.gate_pod_level_resource_managers else {})},
            minor=minor,
        )


class SequenceOp(Struct, frozen=True, kw_only=True, tag_field="op"):
    pass


class Admit(SequenceOp, frozen=True, kw_only=True, tag="admit"):
    pod: forms.Pod


class Remove(SequenceOp, frozen=True, kw_only=True, tag="remove"):
    uid: str


class Start(SequenceOp, frozen=True, kw_only=True, tag="start"):
    uid: str


class Restart(SequenceOp, frozen=True, kw_only=True, tag="restart"):
    pass


class SequenceNode(Struct, frozen=True, kw_only=True):
    id: str
    topology: str | forms.Topology
    config: NodeConfig
    memory_nodes: tuple[forms.MemoryNode, ...]
    devices: forms.Plugins


class SequenceCase(SequenceNode, frozen=True, kw_only=True):
    ops: tuple[Admit | Remove | Start | Restart, ...] | UnsetType | None = UNSET


class NodeSnapshot(Struct, frozen=True, kw_only=True):
    """The node after an op. Without the static CPU policy there is no shared CPU set."""

    default_cpus: str
    memory: dict[str, ZoneState] | UnsetType
    devices_in_use: Held | UnsetType

    @classmethod
    def of(cls, state: KubeletState) -> NodeSnapshot:
        in_use = {resource: state.devices.in_use(resource) for resource in state.devices.resources()}
        return cls(
            default_cpus=cpuset.text(state.cpu.default) if state.cpu else "",
            memory=forms.zone_states(state.memory) if state.memory else UNSET,
            devices_in_use=forms.unless_empty({resource: ids for resource, ids in in_use.items() if ids}),
        )


class PlacedContainer(Struct, frozen=True, kw_only=True):
    affinity: Hint
    exclusive_cpus: str | None
    memory: tuple[Block, ...] | None
    devices: Held | UnsetType
    cpu_isolation: Isolation
    memory_isolation: Isolation

    @classmethod
    def of(cls, placed: ContainerPlacement) -> PlacedContainer:
        return cls(
            affinity=forms.hint(placed.affinity),
            exclusive_cpus=forms.cpus(placed.cpus),
            memory=forms.blocks(placed.memory) or None,
            devices=forms.unless_empty(placed.devices),
            cpu_isolation=placed.cpu_isolation,
            memory_isolation=placed.memory_isolation,
        )


class ClassifiedPod(forms.Pod, frozen=True, kw_only=True):
    qos: str


class Admitted(SequenceOp, frozen=True, kw_only=True, tag="admit"):
    """The verdict on a new pod or, after a restart, on a running pod named by its uid."""

    pod: ClassifiedPod | UnsetType = UNSET
    uid: str | UnsetType = UNSET
    admit: bool
    reason: str | UnsetType
    message: str | UnsetType
    containers: dict[str, PlacedContainer] | UnsetType = UNSET
    pod_cpus: str | UnsetType = UNSET
    pod_memory: tuple[Block, ...] | UnsetType = UNSET
    node: NodeSnapshot


class Started(Start, frozen=True, kw_only=True):
    node: NodeSnapshot


class Restarted(Restart, frozen=True, kw_only=True):
    message: str | UnsetType = UNSET
    node: NodeSnapshot | UnsetType = UNSET
    readmit: tuple[Admitted, ...] | UnsetType = UNSET


class SequenceAnswer(SequenceNode, frozen=True, kw_only=True):
    init_error: str | UnsetType = UNSET
    initial_node: NodeSnapshot | UnsetType = UNSET
    ops: tuple[Admitted | Remove | Started | Restarted, ...] | UnsetType | None = UNSET


def answer(case: SequenceCase, origin: CaseOrigin) -> SequenceAnswer:
    machine = forms.machine(origin.topology(case.topology), case.memory_nodes, case.devices)
    try:
        kubelet = starting.start(machine, case.config.settings(origin.minor))
    except StartRefusal as refusal:
        # No op follows. Recordings write this as null or as no field.
        return forms.completed(SequenceAnswer, case, init_error=_text(refusal), ops=UNSET if case.ops else case.ops)
    life = SequenceReplay(kubelet)
    return forms.completed(
        SequenceAnswer, case, initial_node=NodeSnapshot.of(life.state), ops=tuple(life.ops(tuple(case.ops or ())))
    )


class SequenceReplay:
    """One node; `state` is the state of its kubelet."""

    def __init__(self, kubelet: Kubelet) -> None:
        self.kubelet = kubelet
        self.state: KubeletState = kubelet.initial()

    def ops(
        self, recorded: tuple[Admit | Remove | Start | Restart, ...]
    ) -> Iterator[Admitted | Remove | Started | Restarted]:
        """Op by op, up to a restart that fails."""
        for op in recorded:
            answered = self._op(op)
            yield answered
            if isinstance(answered, Restarted) and answered.message is not UNSET:
                return

    def _op(self, op: Admit | Remove | Start | Restart) -> Admitted | Remove | Started | Restarted:
        match op:
            case Admit():
                pod = op.pod.model
                classified = forms.completed(ClassifiedPod, op.pod, qos=qos.of(pod))
                return Admitted(pod=classified, **self._verdict(pod))
            case Remove():
                self.state = self.state.without_pod(op.uid)
                return op
            case Start():
                if op.uid in self.state.active:  # a refused or removed pod starts nothing
                    self.state = admission.started(self.kubelet, self.state, op.uid)
                return Started(uid=op.uid, node=NodeSnapshot.of(self.state))
            case Restart():
                return self._restarted()

    def _verdict(self, pod: Pod) -> dict[str, Any]:
        self.state, outcome = admission.align(self.kubelet, self.state, pod)
        if outcome.verdict == "undecided":
            raise Undecided(outcome.message)
        said = {
            "admit": outcome.admitted,
            "reason": forms.unless_empty(outcome.reason),
            "message": forms.unless_empty(outcome.message),
            "node": NodeSnapshot.of(self.state),
        }
        if not outcome.admitted:
            return said
        placed = {name: PlacedContainer.of(placement) for name, placement in outcome.placement.items()}
        return {**said, "containers": placed, **self._held_as_a_whole(pod.metadata.uid)}

    def _held_as_a_whole(self, uid: str) -> dict[str, Any]:
        """The CPUs and memory of a pod with pod-level resources, besides those of its containers (kubelet spec 10)."""
        cpus = self.state.cpu.pods.get(uid) if self.state.cpu else None
        memory = self.state.memory.pods.get(uid) if self.state.memory else None
        return {
            "pod_cpus": UNSET if cpus is None else cpuset.text(cpus),
            "pod_memory": forms.unless_empty(forms.blocks(memory or ())),
        }

    def _restarted(self) -> Restarted:
        try:
            self.state = starting.restart(self.kubelet, self.state)
        except StartRefusal as refusal:
            return Restarted(message=_text(refusal))
        self.state = admission.collect(self.kubelet, self.state)
        node = NodeSnapshot.of(self.state)
        again = tuple(Admitted(uid=uid, **self._verdict(pod)) for uid, pod in tuple(self.state.active.items()))
        return Restarted(node=node, readmit=forms.unless_empty(again))


def _text(refusal: StartRefusal) -> str:
    return f"{refusal.manager} start: {refusal.error}"


FAMILY = Family("sequence", SequenceCase, answer, prefix="seq-")
POD_LEVEL = Family("sequence_podlevel", SequenceCase, answer, prefix="seqpl-")
