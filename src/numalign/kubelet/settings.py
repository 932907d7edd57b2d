"""How a kubelet is configured, as far as admission is concerned.

`configuration` makes this from a KubeletConfiguration file, the oracles from recorded cases, the agent from a
running node. Values are typed but not yet judged: `start` refuses what the kubelet would refuse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from numalign.api.nrt import topologymanager
from numalign.kubelet import versions

TopologyPolicy = topologymanager.Policy
TopologyScope = topologymanager.Scope
CPUPolicy = Literal["none", "static"]
MemoryPolicy = Literal["None", "Static"]


class MemoryReservation(Struct, frozen=True):
    """`reservedMemory`: bytes of each memory type that pods never get from this zone."""

    zone: int
    limits: Mapping[str, int]


class Settings(Struct, frozen=True, kw_only=True):
    """The part of a kubelet's configuration that decides admission."""

    topology_policy: TopologyPolicy = "none"
    topology_scope: TopologyScope = "container"
    topology_options: Mapping[str, str] = field(default_factory=dict)
    cpu_policy: CPUPolicy = "none"
    cpu_options: Mapping[str, str] = field(default_factory=dict)
    reserved_cpus: int = 0
    """`reservedSystemCPUs` as a CPU set; empty: the policy picks as many as `reserved["cpu"]` asks for."""
    memory_policy: MemoryPolicy = "None"
    reserved_memory: tuple[MemoryReservation, ...] = ()
    reserved: Mapping[str, int] = field(default_factory=dict)
    """kubeReserved + systemReserved, per resource; cpu in milli-CPUs, the rest in bytes."""
    eviction_hard: Mapping[str, int] = field(default_factory=dict)
    """Hard eviction thresholds by resource, in bytes."""
    max_pods: int = 110
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    minor: versions.Minor = versions.NEWEST

    def gate(self, name: str) -> bool:
        """A feature gate as set in the configuration, else this minor's default."""
        explicit = self.feature_gates.get(name)
        return versions.gate_default(name, self.minor) if explicit is None else explicit

    def withheld(self, resource: str) -> int:
        """What Node Allocatable keeps from pods: reservations and the hard eviction threshold."""
        return self.reserved.get(resource, 0) + self.eviction_hard.get(resource, 0)
