"""The part of a kubelet's configuration that decides admission, and the rules for its policy options.

`configuration` makes it from a KubeletConfiguration, the oracles from recorded cases, the agent from a running node.
Values are typed but not validated: `start` refuses what the kubelet refuses. The options of the Topology and CPU
Managers share one form: text by name, behind maturity gates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from msgspec import Struct, field

from numalign.api.nrt import topologymanager
from numalign.kubelet import versions
from numalign.kubelet.refusals import StartRefusal

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


_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})


class Naming(NamedTuple):
    """How a manager words its refusals."""

    manager: str
    prefix: str
    """Prefix of the manager's maturity gates."""
    not_enabled: Mapping[versions.Stage, str]


CPU_OPTIONS = Naming(
    "cpumanager",
    "CPU",
    {
        "alpha": "CPU Manager Policy Alpha-level Options not enabled",
        "beta": "CPU Manager Policy Beta-level Options not enabled",
    },
)
TOPOLOGY_OPTIONS = Naming(
    "topologymanager",
    "Topology",
    {
        "alpha": "topology manager policy alpha-level options not enabled",
        "beta": "topology manager policy beta-level options not enabled",
    },
)


def maturity_gate(option: str, naming: Naming, minor: versions.Minor) -> str:
    """The feature gate of the option's maturity; empty for an option that needs none, or that does not exist."""
    stage = versions.option_stage(option, minor)
    return "" if stage in (None, "ga") else f"{naming.prefix}ManagerPolicy{str(stage).capitalize()}Options"


def require_available(option: str, known: frozenset[str], naming: Naming, settings: Settings) -> None:
    """Refuse options that this kubelet does not have, or whose maturity gate is off."""
    stage = versions.option_stage(option, settings.minor) if option in known else None
    if stage is None:
        raise StartRefusal(naming.manager, f'unknown {naming.prefix} Manager Policy option: "{option}"')
    gate = maturity_gate(option, naming, settings.minor)
    if gate and not settings.gate(gate):
        raise StartRefusal(naming.manager, f'{naming.not_enabled[stage]}, but option "{option}" provided')


def boolean_option(option: str, text: str, naming: Naming) -> bool:
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise StartRefusal(
        naming.manager, f'bad value for option "{option}": strconv.ParseBool: parsing "{text}": invalid syntax'
    )
