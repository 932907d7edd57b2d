"""Recorded pods under the static memory policy: initial state, hints, allocation and removal, op by op."""

from msgspec import UNSET, Struct, UnsetType

from numalign.kubelet.demand import PodDemand
from numalign.kubelet.memory import static
from numalign.kubelet.memory.state import MemoryState, Table
from numalign.kubelet.memory.static import StaticMemory
from numalign.kubelet.settings import MemoryReservation, Settings
from numalign.kubelet.versions import Minor
from numalign.oracle.kubelet import forms
from numalign.oracle.kubelet.family import CaseOrigin, Family
from numalign.oracle.kubelet.forms import Allocate, Block, ContainerHints, ManagerOp, PodHints, RecordedHints, ZoneState


class RemoveContainer(ManagerOp, frozen=True, kw_only=True, tag="remove"):
    container: str


class MemoryCase(Struct, frozen=True, kw_only=True):
    id: str
    nodes: tuple[forms.MemoryNode, ...]
    reserved: dict[str, dict[str, int]]
    """The reserved bytes by zone and memory type."""
    pods: tuple[forms.Pod, ...]
    ops: tuple[PodHints | ContainerHints | Allocate | RemoveContainer, ...]


class PodMemoryHinted(PodHints, frozen=True, kw_only=True):
    hints: RecordedHints | None


class ContainerMemoryHinted(ContainerHints, frozen=True, kw_only=True):
    hints: RecordedHints | None


class MemoryAllocated(Allocate, frozen=True, kw_only=True):
    hints: None = None
    error: str | UnsetType
    pod_blocks: dict[str, tuple[Block, ...]] | UnsetType
    machine_state: dict[str, ZoneState]


class ContainerRemoved(RemoveContainer, frozen=True, kw_only=True):
    hints: None = None
    machine_state: dict[str, ZoneState]


class MemoryAmounts(Struct, frozen=True, kw_only=True):
    allocatable: int
    free: int
    reserved: int


class InitialZone(Struct, frozen=True, kw_only=True):
    assignments: int
    cells: forms.Zones
    memory: dict[str, MemoryAmounts]


class MemoryAnswer(MemoryCase, frozen=True, kw_only=True):
    initial_state: dict[str, InitialZone]
    ops: tuple[PodMemoryHinted | ContainerMemoryHinted | MemoryAllocated | ContainerRemoved, ...]


def answer(case: MemoryCase, origin: CaseOrigin) -> MemoryAnswer:
    policy = _started(case, origin.minor)
    replay = MemoryReplay(policy)
    pods = forms.by_uid(case.pods)
    initial = {str(zone): _initial(policy, replay.state, zone) for zone in replay.state.zones}
    ops = tuple(replay.op(op, pods[op.pod]) for op in case.ops)
    return forms.completed(MemoryAnswer, case, initial_state=initial, ops=ops)


def _started(case: MemoryCase, minor: Minor) -> StaticMemory:
    settings = Settings(
        memory_policy="Static",
        reserved_memory=tuple(MemoryReservation(int(zone), limits) for zone, limits in case.reserved.items()),
        reserved=forms.totals(case.reserved.values()),
        minor=minor,
    )
    policy = static.start_memory_manager(forms.memory_only(case.nodes), settings)
    assert policy is not None, "the static policy was asked for"
    return policy


def _initial(policy: StaticMemory, state: MemoryState, zone: int) -> InitialZone:
    allocatable, tables = policy.allocatable[zone], state.zones[zone].tables
    seen = forms.zone_states(state)[str(zone)]

    def amounts(kind: str, table: Table) -> MemoryAmounts:
        return MemoryAmounts(allocatable=allocatable[kind], free=table.free, reserved=table.reserved)

    return InitialZone(
        assignments=seen.assignments,
        cells=seen.cells,
        memory={kind: amounts(kind, table) for kind, table in tables.items()},
    )


class MemoryReplay:
    """Replays all ops of one case; `state` is the memory manager's current state."""

    def __init__(self, policy: StaticMemory) -> None:
        self.policy = policy
        self.state = policy.initial()

    def op(
        self, op: PodHints | ContainerHints | Allocate | RemoveContainer, pod: PodDemand
    ) -> PodMemoryHinted | ContainerMemoryHinted | MemoryAllocated | ContainerRemoved:
        match op:
            case PodHints():
                hints = self.policy.pod_hints(self.state, pod)
                return forms.completed(PodMemoryHinted, op, hints=forms.hint_map(hints))
            case ContainerHints():
                hints = self.policy.container_hints(self.state, pod, pod.container(op.container))
                return forms.completed(ContainerMemoryHinted, op, hints=forms.hint_map(hints))
            case Allocate():
                return self._allocated(op, pod)
            case RemoveContainer():
                self.state = self.policy.remove(self.state, pod.uid, op.container)
                return forms.completed(ContainerRemoved, op, machine_state=forms.zone_states(self.state))

    def _allocated(self, op: Allocate, pod: PodDemand) -> MemoryAllocated:
        container = pod.container(op.container)
        self.state, refusal = self.policy.allocate(self.state, pod, container, op.affinity.model)
        held = self.state.blocks.get(pod.uid, {})
        return forms.completed(
            MemoryAllocated,
            op,
            error=refusal.error if refusal else UNSET,
            pod_blocks=forms.unless_empty({name: forms.blocks(each) for name, each in held.items()}),
            machine_state=forms.zone_states(self.state),
        )


FAMILY = Family("mem_static", MemoryCase, answer)
