"""Recorded pods under the static CPU policy: start, hints, allocation per container, removal.

The recorder chose the affinity of each container, so it is an input. The pod determines which containers are allocated
and removed; a recording with more or fewer of them differs."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UNSET, Struct, UnsetType

from numalign.api.attributes import cpuset
from numalign.kubelet.cpu import start as starting
from numalign.kubelet.cpu.state import CPUState
from numalign.kubelet.cpu.static import StaticCPUs
from numalign.kubelet.demand import PodDemand
from numalign.kubelet.refusals import StartRefusal
from numalign.kubelet.settings import Settings, TopologyPolicy
from numalign.oracle.families import encodings, hardware, podforms
from numalign.oracle.families.encodings import Hint, RecordedHints
from numalign.oracle.families.family import OPTION_GATES, Family, Origin
from numalign.oracle.families.hardware import Topology


class Node(Struct, frozen=True, kw_only=True):
    """The machine, its CPU manager's configuration, and the CPU assignments before the pod arrives."""

    id: str
    topology: str | Topology
    options: dict[str, str]
    tm_policy: TopologyPolicy
    num_reserved: int
    reserved_cpus: str
    default: str
    assignments: dict[str, dict[str, str]]


class Chosen(Struct, frozen=True, kw_only=True):
    affinity: Hint


class Removal(Struct, frozen=True, kw_only=True):
    container: str


class Case(Node, frozen=True, kw_only=True):
    pod: podforms.Pod | UnsetType = UNSET
    steps: tuple[Chosen, ...] | UnsetType = UNSET
    removals: tuple[Removal, ...] | UnsetType = UNSET
    """In the order that the recorder chose."""


class Step(Chosen, frozen=True, kw_only=True):
    container: str
    hints: RecordedHints | None
    cpus: str | None
    error: str | UnsetType = UNSET
    error_type: str | UnsetType = UNSET
    default_after: str


class Removed(Removal, frozen=True, kw_only=True):
    default_after: str


class Answer(Case, frozen=True, kw_only=True):
    steps: tuple[Step, ...] | UnsetType = UNSET
    removals: tuple[Removed, ...] | UnsetType = UNSET
    policy_error: str | UnsetType = UNSET
    allocatable: str
    pod_hints: RecordedHints | None
    pod_hints_after: RecordedHints | None


def answer(case: Case, origin: Origin) -> Answer:
    try:
        policy = start(case, origin)
    except StartRefusal as refusal:
        return _refused(case, refusal.error)
    if case.pod is UNSET:
        raise ValueError("the policy starts, but the case has no pod to go on with")
    pod = podforms.demand(case.pod)
    replay = Replay(policy, pod, state_before(case))
    return encodings.completed(
        Answer,
        case,
        allocatable=cpuset.text(policy.allocatable),
        pod_hints=replay.pod_hints(),
        steps=tuple(replay.steps(case.steps or ())),
        pod_hints_after=replay.pod_hints(),
        removals=encodings.unless_empty(tuple(replay.removed(case.removals or ()))),
    )


def _refused(case: Case, error: str) -> Answer:
    nothing = {"allocatable": "", "pod_hints": None, "steps": UNSET, "pod_hints_after": None, "removals": UNSET}
    return encodings.completed(Answer, case, policy_error=error, **nothing)


def start(case: Node, origin: Origin) -> StaticCPUs:
    settings = Settings(
        topology_policy=case.tm_policy,
        cpu_policy="static",
        cpu_options=case.options,
        reserved_cpus=cpuset.parse(case.reserved_cpus),
        reserved={"cpu": 1000 * case.num_reserved},
        feature_gates=OPTION_GATES,
        minor=origin.minor,
    )
    return starting.static_policy(hardware.machine(origin.topology(case.topology)), settings)


def state_before(case: Node) -> CPUState:
    held = {
        uid: {container: cpuset.parse(text) for container, text in containers.items()}
        for uid, containers in case.assignments.items()
    }
    return CPUState(default=cpuset.parse(case.default), assignments=held)


class Replay:
    """Replays one pod against the policy; `state` is the CPU manager's current state."""

    def __init__(self, policy: StaticCPUs, pod: PodDemand, state: CPUState) -> None:
        self.policy = policy
        self.pod = pod
        self.state = state

    def pod_hints(self) -> RecordedHints | None:
        return encodings.hint_map(self.policy.pod_hints(self.state, self.pod))

    def steps(self, chosen: tuple[Chosen, ...]) -> Iterator[Step]:
        """One step per container, up to the first that is refused."""
        for place, container in enumerate(self.pod.containers):
            affinity = chosen[place].affinity if place < len(chosen) else encodings.NO_HINT
            step = self._step(container.name, affinity)
            yield step
            if step.error is not UNSET:
                return

    def _step(self, name: str, affinity: Hint) -> Step:
        container = self.pod.container(name)
        hints = self.policy.container_hints(self.state, self.pod, container)
        self.state, refusal = self.policy.allocate(self.state, self.pod, container, affinity.model.mask)
        return Step(
            container=name,
            hints=encodings.hint_map(hints),
            affinity=affinity,
            cpus=None if refusal else encodings.cpus(self.state.assigned(self.pod.uid, name)),
            error=refusal.error if refusal else UNSET,
            error_type=refusal.reason if refusal else UNSET,
            default_after=cpuset.text(self.state.default),
        )

    def removed(self, order: tuple[Removal, ...]) -> Iterator[Removed]:
        """Every container with CPUs releases them: first those that the recording names, in its order, then the
        others."""
        for name in dict.fromkeys([*(each.container for each in order), *(each.name for each in self.pod.containers)]):
            if self.state.assigned(self.pod.uid, name) is not None:
                self.state = self.policy.remove(self.state, self.pod.uid, name)
                yield Removed(container=name, default_after=cpuset.text(self.state.default))


FAMILY = Family("cpu_static", Case, answer, prefix="cpu-")
