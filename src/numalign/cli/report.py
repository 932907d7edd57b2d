"""What `numalign kubelet admit` answers, as values: the JSON and YAML output, field by field.

`reporting` fills these in from the model, `drawing` turns them into text. docs/kubelet-admit.md documents every
field, so a change here is a change there. Amounts are CPUs (thousandths possible), bytes, or numbers of devices; sets
of zones are lists of ids."""

from __future__ import annotations

from msgspec import Struct

from numalign.api.qos import QoS
from numalign.cli.amounts import Amount
from numalign.kubelet.admission import Verdict

Zones = tuple[int, ...]


class Reported(Struct, frozen=True, rename="camel"):
    """Base of everything in a report."""


class Affinity(Reported, frozen=True, kw_only=True):
    """What the topology manager settled on; zones None: any."""

    zones: Zones | None
    preferred: bool


class MemoryBlock(Reported, frozen=True, kw_only=True):
    type: str
    zones: Zones
    bytes: int


class Container(Reported, frozen=True, kw_only=True):
    """Where one container sits; `zones` are those of everything that it holds, CPUs None for the shared ones."""

    name: str
    zones: Zones
    affinity: Affinity
    cpus: str | None
    memory: tuple[MemoryBlock, ...]
    devices: dict[str, tuple[str, ...]]


class Offer(Reported, frozen=True, kw_only=True):
    """A set of zones that a manager offered, and whether it is among the smallest that could ever do."""

    zones: Zones
    preferred: bool


class ZoneSupply(Reported, frozen=True, kw_only=True):
    """What a zone had for the request when it was refused; `group`: zones its memory is bound together with."""

    zones: Zones
    free: Amount
    short: Amount
    group: Zones | None = None


class Wanted(Reported, frozen=True, kw_only=True):
    """One resource of a refused request. Offered None: its manager has no say in the alignment."""

    resource: str
    needed: Amount
    node_free: Amount | None
    zones: tuple[ZoneSupply, ...]
    offered: tuple[Offer, ...] | None
    offered_count: int
    """All offers; the list stops at the narrowest ones."""


class Explanation(Reported, frozen=True, kw_only=True):
    """Why a pod was refused. Container empty: the pod as a whole."""

    container: str
    cause: str
    text: str
    node_has_room: bool
    """Whether the node's totals would have sufficed for the whole pod."""
    wanted: tuple[Wanted, ...]


class Pod(Reported, frozen=True, kw_only=True):
    namespace: str
    name: str
    source: str
    qos_class: QoS
    requests: dict[str, Amount]
    verdict: Verdict
    reason: str
    message: str
    container: str
    steps: int
    """Sets of zones and combinations of hints that the kubelet goes through for this pod."""
    notes: tuple[str, ...]
    """What else is worth knowing, in words."""
    containers: tuple[Container, ...]
    explanation: Explanation | None

    @property
    def full_name(self) -> str:
        return f"{self.namespace}/{self.name}"


class ZoneState(Reported, frozen=True, kw_only=True):
    """One resource in one zone, or in the devices of a zone set; pods by namespace/name."""

    zones: Zones
    allocatable: Amount
    free: Amount
    pods: dict[str, Amount]


class Resource(Reported, frozen=True, kw_only=True):
    """One resource of the node; no zones where no manager pins it."""

    name: str
    allocatable: Amount
    free: Amount
    zones: tuple[ZoneState, ...]


class Kubelet(Reported, frozen=True, kw_only=True):
    version: str
    topology_manager_policy: str
    topology_manager_scope: str
    cpu_manager_policy: str
    memory_manager_policy: str


class Report(Reported, frozen=True, kw_only=True):
    machine: str
    kubelet: Kubelet
    pods: tuple[Pod, ...]
    resources: tuple[Resource, ...]
    """The node after the last pod."""
