"""Recorded allocations that never return: the kubelet loops over CPUs that it cannot distribute.

The only right answer of the model is that the allocation never returns."""

from __future__ import annotations

from numalign.api.attributes import cpuset
from numalign.kubelet.cpu.static import StaticCPUs
from numalign.kubelet.refusals import Undecided
from numalign.oracle.families import cpu_static, encodings, podforms
from numalign.oracle.families.encodings import Hint
from numalign.oracle.families.family import Family, Origin

NEVER_RETURNS = "allocation never returns"


class Case(cpu_static.Node, frozen=True, kw_only=True):
    pod: podforms.Pod
    container: str
    affinity: Hint


class Answer(Case, frozen=True, kw_only=True):
    allocatable: str
    expected: str


def answer(case: Case, origin: Origin) -> Answer:
    policy = cpu_static.start(case, origin)
    return encodings.completed(
        Answer, case, allocatable=cpuset.text(policy.allocatable), expected=_outcome(policy, case)
    )


def _outcome(policy: StaticCPUs, case: Case) -> str:
    pod = podforms.demand(case.pod)
    container = pod.container(case.container)
    try:
        state, refusal = policy.allocate(cpu_static.state_before(case), pod, container, case.affinity.model.mask)
    except Undecided as undecided:
        return NEVER_RETURNS if "never returns" in undecided.why else str(undecided)
    return f"allocation returns {refusal or encodings.cpus(state.assigned(pod.uid, container.name))}"


FAMILY = Family("cpu_livelock", Case, answer)
