"""Recorded pods under the static CPU policy: families `cpu_static`, `cpu_distribute` and `cpu_livelock`.

The recorder chose the affinity of each container, so it is an input. The pod determines which containers are allocated
and removed; a recording with more or fewer of them differs. `cpu_distribute` has no hints and no removals. In
`cpu_livelock` the kubelet never returns, and the only right answer of the model is to say so."""

from collections.abc import Iterator

from msgspec import UNSET, Struct, UnsetType, structs

from numalign.api.decode import cpuset
from numalign.kubelet.cpu import static
from numalign.kubelet.cpu.state import CPUState
from numalign.kubelet.cpu.static import StaticCPUs
from numalign.kubelet.demand import PodDemand
from numalign.kubelet.refusals import StartRefusal, Undecided
from numalign.kubelet.settings import Settings, TopologyPolicy
from numalign.oracle.kubelet import forms
from numalign.oracle.kubelet.family import OPTION_GATES, CaseOrigin, Family
from numalign.oracle.kubelet.forms import Hint, RecordedHints, Topology


class CpuNode(Struct, frozen=True, kw_only=True):
    """The machine, its CPU manager's configuration, and the CPU assignments before the pod arrives."""

    id: str
    topology: str | Topology
    options: dict[str, str]
    tm_policy: TopologyPolicy
    num_reserved: int
    reserved_cpus: str
    default: str
    assignments: dict[str, dict[str, str]]


class ChosenAffinity(Struct, frozen=True, kw_only=True):
    affinity: Hint


class CpuRemoval(Struct, frozen=True, kw_only=True):
    container: str


class CpuCase(CpuNode, frozen=True, kw_only=True):
    pod: forms.Pod | UnsetType = UNSET
    steps: tuple[ChosenAffinity, ...] | UnsetType = UNSET
    removals: tuple[CpuRemoval, ...] | UnsetType = UNSET
    """The removals in the order that the recorder chose."""


class CpuStep(ChosenAffinity, frozen=True, kw_only=True):
    container: str
    hints: RecordedHints | None
    cpus: str | None
    error: str | UnsetType = UNSET
    error_type: str | UnsetType = UNSET
    default_after: str


class CpusRemoved(CpuRemoval, frozen=True, kw_only=True):
    default_after: str


class CpuAnswer(CpuCase, frozen=True, kw_only=True):
    steps: tuple[CpuStep, ...] | UnsetType = UNSET
    removals: tuple[CpusRemoved, ...] | UnsetType = UNSET
    policy_error: str | UnsetType = UNSET
    allocatable: str
    pod_hints: RecordedHints | None
    pod_hints_after: RecordedHints | None


def answer(case: CpuCase, origin: CaseOrigin) -> CpuAnswer:
    try:
        policy = start(case, origin)
    except StartRefusal as refusal:
        return _refused(case, refusal.error)
    if case.pod is UNSET:
        raise ValueError("the policy starts, but the case has no pod to go on with")
    pod = forms.demand(case.pod)
    replay = CpuReplay(policy, pod, state_before(case))
    return forms.completed(
        CpuAnswer,
        case,
        allocatable=cpuset.text(policy.allocatable),
        pod_hints=replay.pod_hints(),
        steps=tuple(replay.steps(case.steps or ())),
        pod_hints_after=replay.pod_hints(),
        removals=forms.unless_empty(tuple(replay.removed(case.removals or ()))),
    )


def _refused(case: CpuCase, error: str) -> CpuAnswer:
    nothing = {"allocatable": "", "pod_hints": None, "steps": UNSET, "pod_hints_after": None, "removals": UNSET}
    return forms.completed(CpuAnswer, case, policy_error=error, **nothing)


def start(case: CpuNode, origin: CaseOrigin) -> StaticCPUs:
    settings = Settings(
        topology_policy=case.tm_policy,
        cpu_policy="static",
        cpu_options=case.options,
        reserved_cpus=cpuset.parse(case.reserved_cpus),
        reserved={"cpu": 1000 * case.num_reserved},
        feature_gates=OPTION_GATES,
        minor=origin.minor,
    )
    return static.static_policy(forms.machine(origin.topology(case.topology)), settings)


def state_before(case: CpuNode) -> CPUState:
    held = {
        uid: {container: cpuset.parse(text) for container, text in containers.items()}
        for uid, containers in case.assignments.items()
    }
    return CPUState(default=cpuset.parse(case.default), assignments=held)


class CpuReplay:
    """Replays one pod against the policy; `state` is the CPU manager's current state."""

    def __init__(self, policy: StaticCPUs, pod: PodDemand, state: CPUState) -> None:
        self.policy = policy
        self.pod = pod
        self.state = state

    def pod_hints(self) -> RecordedHints | None:
        return forms.hint_map(self.policy.pod_hints(self.state, self.pod))

    def steps(self, chosen: tuple[ChosenAffinity, ...]) -> Iterator[CpuStep]:
        """One step per container, up to the first that is refused."""
        for place, container in enumerate(self.pod.containers):
            affinity = chosen[place].affinity if place < len(chosen) else forms.NO_HINT
            step = self._step(container.name, affinity)
            yield step
            if step.error is not UNSET:
                return

    def _step(self, name: str, affinity: Hint) -> CpuStep:
        container = self.pod.container(name)
        hints = self.policy.container_hints(self.state, self.pod, container)
        self.state, refusal = self.policy.allocate(self.state, self.pod, container, affinity.model.mask)
        return CpuStep(
            container=name,
            hints=forms.hint_map(hints),
            affinity=affinity,
            cpus=None if refusal else forms.cpus(self.state.assigned(self.pod.uid, name)),
            error=refusal.error if refusal else UNSET,
            error_type=refusal.reason if refusal else UNSET,
            default_after=cpuset.text(self.state.default),
        )

    def removed(self, order: tuple[CpuRemoval, ...]) -> Iterator[CpusRemoved]:
        """Every container with CPUs releases them: first those that the recording names, in its order, then the
        others."""
        for name in dict.fromkeys([*(each.container for each in order), *(each.name for each in self.pod.containers)]):
            if self.state.assigned(self.pod.uid, name) is not None:
                self.state = self.policy.remove(self.state, self.pod.uid, name)
                yield CpusRemoved(container=name, default_after=cpuset.text(self.state.default))


STATIC = Family("cpu_static", CpuCase, answer, prefix="cpu-")


def answer_distributed(case: CpuCase, origin: CaseOrigin) -> CpuAnswer:
    full = answer(case, origin)
    steps = tuple(structs.replace(step, hints=None) for step in full.steps or ())
    return structs.replace(
        full, steps=UNSET if full.steps is UNSET else steps, pod_hints=None, pod_hints_after=None, removals=UNSET
    )


DISTRIBUTE = Family("cpu_distribute", CpuCase, answer_distributed, prefix="cpud-")


NEVER_RETURNS = "allocation never returns"


class LivelockCase(CpuNode, frozen=True, kw_only=True):
    pod: forms.Pod
    container: str
    affinity: Hint


class LivelockAnswer(LivelockCase, frozen=True, kw_only=True):
    allocatable: str
    expected: str


def answer_livelock(case: LivelockCase, origin: CaseOrigin) -> LivelockAnswer:
    policy = start(case, origin)
    return forms.completed(
        LivelockAnswer, case, allocatable=cpuset.text(policy.allocatable), expected=_outcome(policy, case)
    )


def _outcome(policy: StaticCPUs, case: LivelockCase) -> str:
    pod = forms.demand(case.pod)
    container = pod.container(case.container)
    try:
        state, refusal = policy.allocate(state_before(case), pod, container, case.affinity.model.mask)
    except Undecided as undecided:
        return NEVER_RETURNS if "never returns" in undecided.why else str(undecided)
    return f"allocation returns {refusal or forms.cpus(state.assigned(pod.uid, container.name))}"


LIVELOCK = Family("cpu_livelock", LivelockCase, answer_livelock)
