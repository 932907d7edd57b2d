"""Pods, as far as scheduling and admission on the node look at them.

Informers and the command line make these through `decode`, the scheduler's shapes and the kubelet model read them;
nothing changes one. Amounts are `Quantity` objects. What a pod asks for in total is in `requests`, its class in `qos`.
"""

from typing import Final

import msgspec

from numalign.api.decode.quantity import Quantity
from numalign.api.decode.structs import Int32, Int64, Wire
from numalign.api.objects.affinity import Affinity, TopologySpreadConstraint
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.podvolumes import Volume

ResourceList = dict[str, Quantity]

DEFAULT_SCHEDULER: Final = "default-scheduler"
FINISHED: Final = frozenset({"Succeeded", "Failed"})


class ResourceRequirements(Wire, frozen=True):
    requests: ResourceList = msgspec.field(default_factory=dict)
    limits: ResourceList = msgspec.field(default_factory=dict)


class ContainerPort(Wire, frozen=True):
    container_port: Int32 = 0
    host_port: Int32 = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"


class VolumeMount(Wire, frozen=True):
    bind_mount_options: tuple[str, ...] = ()


class RestartRule(Wire, frozen=True):
    action: str = ""


class Container(Wire, frozen=True):
    name: str = ""
    image: str = ""
    restart_policy: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy_rules: tuple[RestartRule, ...] = ()
    volume_mounts: tuple[VolumeMount, ...] = ()

    @property
    def is_sidecar(self) -> bool:
        """Among init containers: it keeps running beside the app containers instead of ending before them."""
        return self.restart_policy == "Always"


class Toleration(Wire, frozen=True):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class SchedulingGate(Wire, frozen=True):
    name: str = ""


class PodResourceClaim(Wire, frozen=True):
    """Devices by claim, which exists or is made from a template."""

    name: str = ""
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


class PodSpec(Wire, frozen=True):
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    overhead: ResourceList = msgspec.field(default_factory=dict)
    node_name: str = ""
    scheduler_name: str = DEFAULT_SCHEDULER
    priority: Int32 = 0
    priority_class_name: str = ""
    preemption_policy: str = "PreemptLowerPriority"
    node_selector: dict[str, str] = msgspec.field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()
    affinity: Affinity | None = None
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    volumes: tuple[Volume, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    runtime_class_name: str = ""
    host_network: bool = False
    host_users: bool | None = None
    restart_policy: str = "Always"
    termination_grace_period_seconds: Int64 = 30


class PodCondition(Wire, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class ContainerRunning(Wire, frozen=True):
    started_at: str | None = None


class ContainerTerminated(Wire, frozen=True):
    exit_code: Int32 = 0
    reason: str = ""
    finished_at: str | None = None


class ContainerState(Wire, frozen=True):
    """Running, terminated, or neither of them: waiting."""

    running: ContainerRunning | None = None
    terminated: ContainerTerminated | None = None


class ContainerStatus(Wire, frozen=True):
    name: str = ""
    ready: bool = False
    started: bool = False
    restart_count: Int32 = 0
    state: ContainerState = ContainerState()
    allocated_resources: ResourceList = msgspec.field(default_factory=dict)
    resources: ResourceRequirements = ResourceRequirements()

    @property
    def has_started(self) -> bool:
        """It runs or once ran, so the kubelet has admitted its pod."""
        state = self.state
        return self.started or self.restart_count > 0 or state.running is not None or state.terminated is not None


class PodStatus(Wire, frozen=True):
    phase: str = ""
    reason: str = ""
    message: str = ""
    qos_class: str = ""
    nominated_node_name: str = ""
    start_time: str | None = None
    conditions: tuple[PodCondition, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    allocated_resources: ResourceList = msgspec.field(default_factory=dict)
    resources: ResourceRequirements | None = None

    @property
    def is_finished(self) -> bool:
        """Nothing of the pod runs any more, and nothing will."""
        return self.phase in FINISHED


class Pod(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    def in_admission_order(self) -> tuple[Container, ...]:
        """Init containers, then app containers, each in their written order: the way the kubelet walks them."""
        return self.spec.init_containers + self.spec.containers

    @property
    def has_started(self) -> bool:
        """Some container of it was seen to run: the kubelet has admitted it."""
        status = self.status
        if status.phase == "Running" or not (status.init_container_statuses or status.container_statuses):
            return status.phase == "Running"
        return any(each.has_started for each in (*status.init_container_statuses, *status.container_statuses))

    @property
    def has_stopped(self) -> bool:
        """It is finished, or every container that keeps running was reported terminated and no other one runs."""
        states = {status.name: status.state for status in self.status.init_container_statuses}
        states |= {status.name: status.state for status in self.status.container_statuses}
        lasting = (*filter(lambda each: each.is_sidecar, self.spec.init_containers), *self.spec.containers)
        return self.status.is_finished or (
            all(each.name in states and states[each.name].terminated is not None for each in lasting)
            and all(state.running is None for state in states.values())
            and bool(lasting)
        )
