"""Output structs for zones, resources and amounts, and all of `numalign kubelet admit`: JSON and YAML field by field.

`results.admit` fills in those of `kubelet admit`; `explain` and `topology` share the ones for resources, zones and what
is lacking. docs/use/kubelet-admit.md documents every field. The models count node totals of cpu in milli-CPUs; output
has CPUs (thousandths possible), bytes, or numbers of devices. This module formats no text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from numalign.api.objects import resourcenames
from numalign.api.objects.pod import ResourceList
from numalign.api.objects.qos import QoS
from numalign.kubelet.admission import Verdict

if TYPE_CHECKING:
    from numalign.placement.explain.reasons import Lack


Amount = int | float


def requested(written: ResourceList) -> dict[str, Amount]:
    counted = {name: each.milli if name == resourcenames.CPU else each.value for name, each in written.items()}
    return {name: total(name, amount) for name, amount in counted.items()}


def total(resource: str, counted: int) -> Amount:
    """A node total as the model counts it; only a fraction of a CPU makes it other than a whole number."""
    if resource != resourcenames.CPU:
        return counted
    return counted / 1000 if counted % 1000 else counted // 1000


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


class AdmittedContainer(Reported, frozen=True, kw_only=True):
    """Where one container sits; `zones` are those of everything that it holds, CPUs None for the shared ones."""

    name: str
    zones: Zones
    affinity: Affinity
    cpus: str | None
    memory: tuple[MemoryBlock, ...]
    devices: dict[str, tuple[str, ...]]


class Hint(Reported, frozen=True, kw_only=True):
    """A set of zones that a manager offered, and whether it is among the smallest that could ever do."""

    zones: Zones
    preferred: bool


class Offered(Reported, frozen=True, kw_only=True):
    """The topology hints of one resource. None: its manager has no preference."""

    resource: str
    hints: tuple[Hint, ...] | None
    count: int
    """Number of all hints; the list stops at the narrowest ones."""


class ZoneLack(Reported, frozen=True, kw_only=True):
    """What one zone has of a resource, and what it lacks of the need."""

    zone: int
    free: Amount
    short: Amount


class Lacking(Reported, frozen=True, kw_only=True):
    """A resource that a pod was refused for. `in_zones` 0: anywhere on the node. `most` None: amounts do not decide."""

    resource: str
    need: Amount
    in_zones: int
    most: Amount | None
    zones: tuple[ZoneLack, ...]


class Explanation(Reported, frozen=True, kw_only=True):
    """Why a pod was refused. Container empty: the pod as a whole."""

    container: str
    cause: str
    """Empty where only the kubelet's own message says why."""
    text: str
    never: bool
    """Whether the empty node would refuse the pod, too."""
    node_has_room: bool
    """Whether the node's totals suffice for the whole pod."""
    node_free: dict[str, Amount]
    """What the node as a whole had free of what the pod requests."""
    lacks: tuple[Lacking, ...]
    offered: tuple[Offered, ...]
    """The hints of the last alignment."""


class Held(Reported, frozen=True, kw_only=True):
    """What a pod holds of one resource in a set of zones."""

    resource: str
    amount: Amount
    zones: Zones
    certain: bool = True


class AdmittedPod(Reported, frozen=True, kw_only=True):
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
    """Further remarks, as sentences."""
    containers: tuple[AdmittedContainer, ...]
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


class KubeletSettings(Reported, frozen=True, kw_only=True):
    version: str
    topology_manager_policy: str
    topology_manager_scope: str
    cpu_manager_policy: str
    memory_manager_policy: str


class AdmitReport(Reported, frozen=True, kw_only=True):
    machine: str
    kubelet: KubeletSettings
    pods: tuple[AdmittedPod, ...]
    resources: tuple[Resource, ...]
    """The node after the last pod."""


def lacking(lack: Lack) -> Lacking:
    def of(amount: int) -> Amount:
        return total(lack.resource, amount)

    return Lacking(
        resource=lack.resource,
        need=of(lack.need),
        in_zones=lack.zones,
        most=None if lack.most is None else of(lack.most),
        zones=tuple(ZoneLack(zone=each.zone, free=of(each.free), short=of(each.short)) for each in lack.by_zone),
    )
