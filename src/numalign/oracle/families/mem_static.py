"""Recorded pods under the static memory policy: initial state, hints, allocation and removal, op by op."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from numalign.kubelet.demand import PodDemand
from numalign.kubelet.memory import start as starting
from numalign.kubelet.memory.state import MemoryState, Table
from numalign.kubelet.memory.static import StaticMemory
from numalign.kubelet.settings import MemoryReservation, Settings
from numalign.kubelet.versions import Minor
from numalign.oracle.families import encodings, hardware, podforms
from numalign.oracle.families.encodings import Block, RecordedHints, ZoneState
from numalign.oracle.families.family import Family, Origin
from numalign.oracle.families.managerops import Allocate, ContainerHints, Op, PodHints


class Remove(Op, frozen=True, kw_only=True, tag="remove"):
    container: str


class Case(Struct, frozen=True, kw_only=True):
    id: str
    nodes: tuple[hardware.MemoryNode, ...]
    reserved: dict[str, dict[str, int]]
    """By zone and memory type."""
    pods: tuple[podforms.Pod, ...]
    ops: tuple[PodHints | ContainerHints | Allocate | Remove, ...]


class PodHinted(PodHints, frozen=True, kw_only=True):
    hints: RecordedHints | None


class ContainerHinted(ContainerHints, frozen=True, kw_only=True):
    hints: RecordedHints | None


class Allocated(Allocate, frozen=True, kw_only=True):
    hints: None = None
    error: str | UnsetType
    pod_blocks: dict[str, tuple[Block, ...]] | UnsetType
    machine_state: dict[str, ZoneState]


class Removed(Remove, frozen=True, kw_only=True):
    hints: None = None
    machine_state: dict[str, ZoneState]


class Amounts(Struct, frozen=True, kw_only=True):
    allocatable: int
    free: int
    reserved: int


class InitialZone(Struct, frozen=True, kw_only=True):
    assignments: int
    cells: encodings.Zones
    memory: dict[str, Amounts]


class Answer(Case, frozen=True, kw_only=True):
    initial_state: dict[str, InitialZone]
    ops: tuple[PodHinted | ContainerHinted | Allocated | Removed, ...]


def answer(case: Case, origin: Origin) -> Answer:
    policy = _started(case, origin.minor)
    replay = Replay(policy)
    pods = podforms.by_uid(case.pods)
    initial = {str(zone): _initial(policy, replay.state, zone) for zone in replay.state.zones}
    ops = tuple(replay.op(op, pods[op.pod]) for op in case.ops)
    return encodings.completed(Answer, case, initial_state=initial, ops=ops)


def _started(case: Case, minor: Minor) -> StaticMemory:
    settings = Settings(
        memory_policy="Static",
        reserved_memory=tuple(MemoryReservation(int(zone), limits) for zone, limits in case.reserved.items()),
        reserved=encodings.totals(case.reserved.values()),
        minor=minor,
    )
    policy = starting.start(hardware.memory_only(case.nodes), settings)
    assert policy is not None, "the static policy was asked for"
    return policy


def _initial(policy: StaticMemory, state: MemoryState, zone: int) -> InitialZone:
    allocatable, tables = policy.allocatable[zone], state.zones[zone].tables
    seen = encodings.zone_states(state)[str(zone)]

    def amounts(kind: str, table: Table) -> Amounts:
        return Amounts(allocatable=allocatable[kind], free=table.free, reserved=table.reserved)

    return InitialZone(
        assignments=seen.assignments,
        cells=seen.cells,
        memory={kind: amounts(kind, table) for kind, table in tables.items()},
    )


class Replay:
    """Replays all ops of one case; `state` is the memory manager's current state."""

    def __init__(self, policy: StaticMemory) -> None:
        self.policy = policy
        self.state = policy.initial()

    def op(
        self, op: PodHints | ContainerHints | Allocate | Remove, pod: PodDemand
    ) -> PodHinted | ContainerHinted | Allocated | Removed:
        match op:
            case PodHints():
                hints = self.policy.pod_hints(self.state, pod)
                return encodings.completed(PodHinted, op, hints=encodings.hint_map(hints))
            case ContainerHints():
                hints = self.policy.container_hints(self.state, pod, pod.container(op.container))
                return encodings.completed(ContainerHinted, op, hints=encodings.hint_map(hints))
            case Allocate():
                return self._allocated(op, pod)
            case Remove():
                self.state = self.policy.remove(self.state, pod.uid, op.container)
                return encodings.completed(Removed, op, machine_state=encodings.zone_states(self.state))

    def _allocated(self, op: Allocate, pod: PodDemand) -> Allocated:
        container = pod.container(op.container)
        self.state, refusal = self.policy.allocate(self.state, pod, container, op.affinity.model)
        held = self.state.blocks.get(pod.uid, {})
        return encodings.completed(
            Allocated,
            op,
            error=refusal.error if refusal else UNSET,
            pod_blocks=encodings.unless_empty({name: encodings.blocks(each) for name, each in held.items()}),
            machine_state=encodings.zone_states(self.state),
        )


FAMILY = Family("mem_static", Case, answer)
