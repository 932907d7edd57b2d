"""Recorded sequences on a node: all managers together, pods admitted, started and removed, kubelet restarts.

The recording holds a snapshot of the node after every op. A restart admits every active pod again. If the managers
refuse to start, the sequence ends. The general admission predicates were not part of the recordings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import UNSET

from numalign.api.attributes import cpuset
from numalign.api.objects import qos
from numalign.api.objects.pod import Pod
from numalign.kubelet import admission
from numalign.kubelet import start as starting
from numalign.kubelet.refusals import StartRefusal, Undecided
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState
from numalign.oracle.families import encodings, hardware
from numalign.oracle.families.family import Family, Origin
from numalign.oracle.families.lifeforms import (
    Admit,
    Admitted,
    Answer,
    Case,
    ClassifiedPod,
    Placed,
    Remove,
    Restart,
    Restarted,
    Snapshot,
    Start,
    Started,
)


def answer(case: Case, origin: Origin) -> Answer:
    machine = hardware.machine(origin.topology(case.topology), case.memory_nodes, case.devices)
    try:
        kubelet = starting.start(machine, case.config.settings(origin.minor))
    except StartRefusal as refusal:
        # No op follows. Recordings write this as null or as no field.
        return encodings.completed(Answer, case, init_error=_text(refusal), ops=UNSET if case.ops else case.ops)
    life = Life(kubelet)
    return encodings.completed(
        Answer, case, initial_node=Snapshot.of(life.state), ops=tuple(life.ops(tuple(case.ops or ())))
    )


class Life:
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
                classified = encodings.completed(ClassifiedPod, op.pod, qos=qos.of(pod))
                return Admitted(pod=classified, **self._verdict(pod))
            case Remove():
                self.state = self.state.without_pod(op.uid)
                return op
            case Start():
                if op.uid in self.state.active:  # a refused or removed pod starts nothing
                    self.state = admission.started(self.kubelet, self.state, op.uid)
                return Started(uid=op.uid, node=Snapshot.of(self.state))
            case Restart():
                return self._restarted()

    def _verdict(self, pod: Pod) -> dict[str, Any]:
        self.state, outcome = admission.align(self.kubelet, self.state, pod)
        if outcome.verdict == "undecided":
            raise Undecided(outcome.message)
        said = {
            "admit": outcome.admitted,
            "reason": encodings.unless_empty(outcome.reason),
            "message": encodings.unless_empty(outcome.message),
            "node": Snapshot.of(self.state),
        }
        if not outcome.admitted:
            return said
        placed = {name: Placed.of(placement) for name, placement in outcome.placement.items()}
        return {**said, "containers": placed, **self._held_as_a_whole(pod.metadata.uid)}

    def _held_as_a_whole(self, uid: str) -> dict[str, Any]:
        """The CPUs and memory of a pod with pod-level resources, besides those of its containers (kubelet spec 10)."""
        cpus = self.state.cpu.pods.get(uid) if self.state.cpu else None
        memory = self.state.memory.pods.get(uid) if self.state.memory else None
        return {
            "pod_cpus": UNSET if cpus is None else cpuset.text(cpus),
            "pod_memory": encodings.unless_empty(encodings.blocks(memory or ())),
        }

    def _restarted(self) -> Restarted:
        try:
            self.state = starting.restart(self.kubelet, self.state)
        except StartRefusal as refusal:
            return Restarted(message=_text(refusal))
        self.state = admission.collect(self.kubelet, self.state)
        node = Snapshot.of(self.state)
        again = tuple(Admitted(uid=uid, **self._verdict(pod)) for uid, pod in tuple(self.state.active.items()))
        return Restarted(node=node, readmit=encodings.unless_empty(again))


def _text(refusal: StartRefusal) -> str:
    return f"{refusal.manager} start: {refusal.error}"


FAMILY = Family("sequence", Case, answer, prefix="seq-")
POD_LEVEL = Family("sequence_podlevel", Case, answer, prefix="seqpl-")
