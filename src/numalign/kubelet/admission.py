"""Admission: what the kubelet does with a pod that was bound to its node, and with what follows.

The topology manager asks the managers for hints (devices, CPUs, memory, always in this order), merges them, and lets
the same managers allocate; then the general predicates have their say. Nothing is rolled back: what a refused pod was
given stays with the managers until the next admission begins by collecting it (kubelet spec 1). A pod that ends
leaves by `KubeletState.without_pod`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, structs

from numalign.api.objects.pod import Pod
from numalign.kubelet import demand as demands
from numalign.kubelet import predicates
from numalign.kubelet.refusals import Refusal, Undecided
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import ContainerPlacement, KubeletState, placement
from numalign.kubelet.walk import Alignment, Refused, Walk

Verdict = Literal["admitted", "rejected", "undecided"]

SLOW = 100_000_000
"""Steps from which on an admission takes the kubelet minutes: a merge walks about a million combinations a second."""


class Outcome(Struct, frozen=True, kw_only=True):
    """The kubelet's answer, in its own words, and how it came about."""

    verdict: Verdict
    reason: str = ""
    message: str = ""
    container: str = ""
    """Where it was refused; empty if for the pod as a whole."""
    alignments: tuple[Alignment, ...] = ()
    placement: Mapping[str, ContainerPlacement] = {}
    steps: int = 0
    """Sets of zones and combinations of hints that the kubelet goes through for this pod."""

    @property
    def admitted(self) -> bool:
        return self.verdict == "admitted"

    @property
    def slow(self) -> bool:
        """Whether the real kubelet would need minutes, or longer, for this answer."""
        return self.steps >= SLOW


def admit(kubelet: Kubelet, state: KubeletState, pod: Pod) -> tuple[KubeletState, Outcome]:
    """Admit a pod: topology manager first, general predicates after it."""
    others = [other for uid, other in state.active.items() if uid != demands.identity(pod)]
    state, outcome = align(kubelet, state, pod)
    if not outcome.admitted:
        return state, outcome
    lacking = predicates.lacking(kubelet, state, pod, others)
    if lacking is None:
        return state, outcome
    rejected = Outcome(
        verdict="rejected",
        reason=lacking.reason,
        message=lacking.message,
        alignments=outcome.alignments,
        steps=outcome.steps,
    )
    return state.without_pod(demands.identity(pod)), rejected


def align(kubelet: Kubelet, state: KubeletState, pod: Pod) -> tuple[KubeletState, Outcome]:
    """The topology manager's part of an admission: hints, merge, allocation."""
    demand = demands.of(pod, kubelet.reading)
    walk = Walk(kubelet, state.with_pod(pod))
    try:
        walk.pod(demand)
    except Undecided as undecided:
        why = Outcome(verdict="undecided", message=str(undecided), alignments=tuple(walk.alignments), steps=walk.steps)
        return state, why
    except Refused as refused:
        rejected = Outcome(
            verdict="rejected",
            reason=refused.refusal.reason,
            message=refused.refusal.pod_message,
            container=refused.container,
            alignments=tuple(walk.alignments),
            steps=walk.steps,
        )
        return walk.state.without_pod(demand.uid), rejected
    return walk.state, Outcome(
        verdict="admitted", alignments=tuple(walk.alignments), steps=walk.steps, placement=placement(walk.state, demand)
    )


def started(kubelet: Kubelet, state: KubeletState, uid: str) -> KubeletState:
    """All containers of an active pod have been started, one after the other."""
    for container in state.active[uid].in_admission_order():
        state = container_started(kubelet, state, uid, container.name)
    return state


def container_started(kubelet: Kubelet, state: KubeletState, uid: str, container: str) -> KubeletState:
    """The start hook: memory of init containers that have ended is given back (kubelet spec 6.6)."""
    if not kubelet.memory or not state.memory:
        return state
    demand = demands.of(state.active[uid], kubelet.reading)
    return structs.replace(state, memory=kubelet.memory.started(state.memory, demand, container))


def late_devices(
    kubelet: Kubelet, state: KubeletState, uid: str, container: str
) -> tuple[KubeletState, Refusal | None]:
    """Devices that a container does not have yet when it is about to run: pods served as a whole (spec 10.5)."""
    demand = demands.of(state.active[uid], kubelet.reading)
    wanted = demand.container(container)
    if not kubelet.devices.missing(state.devices, demand, wanted):
        return state, None
    collected = kubelet.devices.collect(state.devices, state.container_names())
    affinity = state.affinity(uid, container).mask
    devices, refusal = kubelet.devices.allocate(collected, demand, wanted, affinity)
    return structs.replace(state, devices=devices), refusal


def collect(kubelet: Kubelet, state: KubeletState) -> KubeletState:
    """What is left once all managers have dropped what inactive pods held; admission does this by itself."""
    walk = Walk(kubelet, state)
    walk.collect()
    return walk.state
