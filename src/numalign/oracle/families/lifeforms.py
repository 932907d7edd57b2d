"""The schema of `sequence`: hardware, configuration, ops, snapshots and verdicts.

`Case` and its parts are inputs; `Answer` adds the model's results."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from numalign.api.attributes import cpuset
from numalign.kubelet.device import Held
from numalign.kubelet.settings import (
    CPUPolicy,
    MemoryPolicy,
    MemoryReservation,
    Settings,
    TopologyPolicy,
    TopologyScope,
)
from numalign.kubelet.state import ContainerPlacement, Isolation, KubeletState
from numalign.kubelet.versions import Minor
from numalign.oracle.families import encodings, hardware, podforms
from numalign.oracle.families.encodings import Block, Hint, ZoneState
from numalign.oracle.families.family import OPTION_GATES

POD_LEVEL_GATE = "PodLevelResourceManagers"


class ReservedMemory(Struct, frozen=True, kw_only=True):
    numa: int
    limits: dict[str, int]


class Config(Struct, frozen=True, kw_only=True):
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
        withheld = encodings.totals(each.limits for each in self.reserved_memory)
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


class Op(Struct, frozen=True, kw_only=True, tag_field="op"):
    pass


class Admit(Op, frozen=True, kw_only=True, tag="admit"):
    pod: podforms.Pod


class Remove(Op, frozen=True, kw_only=True, tag="remove"):
    uid: str


class Start(Op, frozen=True, kw_only=True, tag="start"):
    uid: str


class Restart(Op, frozen=True, kw_only=True, tag="restart"):
    pass


class Node(Struct, frozen=True, kw_only=True):
    id: str
    topology: str | hardware.Topology
    config: Config
    memory_nodes: tuple[hardware.MemoryNode, ...]
    devices: hardware.Plugins


class Case(Node, frozen=True, kw_only=True):
    ops: tuple[Admit | Remove | Start | Restart, ...] | UnsetType | None = UNSET


class Snapshot(Struct, frozen=True, kw_only=True):
    """The node after an op. Without the static CPU policy there is no shared CPU set."""

    default_cpus: str
    memory: dict[str, ZoneState] | UnsetType
    devices_in_use: Held | UnsetType

    @classmethod
    def of(cls, state: KubeletState) -> Snapshot:
        in_use = {resource: state.devices.in_use(resource) for resource in state.devices.resources()}
        return cls(
            default_cpus=cpuset.text(state.cpu.default) if state.cpu else "",
            memory=encodings.zone_states(state.memory) if state.memory else UNSET,
            devices_in_use=encodings.unless_empty({resource: ids for resource, ids in in_use.items() if ids}),
        )


class Placed(Struct, frozen=True, kw_only=True):
    affinity: Hint
    exclusive_cpus: str | None
    memory: tuple[Block, ...] | None
    devices: Held | UnsetType
    cpu_isolation: Isolation
    memory_isolation: Isolation

    @classmethod
    def of(cls, placed: ContainerPlacement) -> Placed:
        return cls(
            affinity=encodings.hint(placed.affinity),
            exclusive_cpus=encodings.cpus(placed.cpus),
            memory=encodings.blocks(placed.memory) or None,
            devices=encodings.unless_empty(placed.devices),
            cpu_isolation=placed.cpu_isolation,
            memory_isolation=placed.memory_isolation,
        )


class ClassifiedPod(podforms.Pod, frozen=True, kw_only=True):
    qos: str


class Admitted(Op, frozen=True, kw_only=True, tag="admit"):
    """The verdict on a new pod or, after a restart, on a running pod named by its uid."""

    pod: ClassifiedPod | UnsetType = UNSET
    uid: str | UnsetType = UNSET
    admit: bool
    reason: str | UnsetType
    message: str | UnsetType
    containers: dict[str, Placed] | UnsetType = UNSET
    pod_cpus: str | UnsetType = UNSET
    pod_memory: tuple[Block, ...] | UnsetType = UNSET
    node: Snapshot


class Started(Start, frozen=True, kw_only=True):
    node: Snapshot


class Restarted(Restart, frozen=True, kw_only=True):
    message: str | UnsetType = UNSET
    node: Snapshot | UnsetType = UNSET
    readmit: tuple[Admitted, ...] | UnsetType = UNSET


class Answer(Node, frozen=True, kw_only=True):
    init_error: str | UnsetType = UNSET
    initial_node: Snapshot | UnsetType = UNSET
    ops: tuple[Admitted | Remove | Started | Restarted, ...] | UnsetType | None = UNSET
