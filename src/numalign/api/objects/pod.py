"""Pods, with the fields that scheduling and admission use: containers, volumes, affinity and spreading.

Informers and the command line decode them; the scheduler and the kubelet model read them. They are immutable. Amounts
are `Quantity` objects. Totals are in `requests`, the QoS class in `qos`. Claims and the inline disks that exist in one
place decide where a pod can run; all other volumes have a name only."""

from typing import Any, Final

import msgspec

from numalign.api.decode.quantity import Quantity
from numalign.api.decode.structs import Int32, Int64, Wire
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.selectors import LabelSelector


class ClaimVolume(Wire, frozen=True):
    claim_name: str = ""
    read_only: bool = False


class EphemeralVolume(Wire, frozen=True):
    """A claim of the pod's own, named after pod and volume; a controller makes it from the template."""


class ImageVolume(Wire, frozen=True):
    reference: str = ""


class CsiVolume(Wire, frozen=True):
    driver: str = ""


class GcePersistentDisk(Wire, frozen=True):
    pd_name: str = ""
    partition: int = 0
    read_only: bool = False


class AwsElasticBlockStore(Wire, frozen=True):
    volume_id: str = msgspec.field(default="", name="volumeID")
    partition: int = 0
    read_only: bool = False


class IscsiDisk(Wire, frozen=True):
    iqn: str = ""
    read_only: bool = False


class RbdImage(Wire, frozen=True):
    monitors: tuple[str, ...] = ()
    image: str = ""
    pool: str = "rbd"
    read_only: bool = False


class CinderDisk(Wire, frozen=True):
    volume_id: str = msgspec.field(default="", name="volumeID")


class AzureDisk(Wire, frozen=True):
    disk_name: str = ""
    disk_uri: str = msgspec.field(default="", name="diskURI")


class AzureFile(Wire, frozen=True):
    secret_name: str = ""
    share_name: str = ""


class VsphereDisk(Wire, frozen=True):
    volume_path: str = ""


class PortworxVolume(Wire, frozen=True):
    volume_id: str = msgspec.field(default="", name="volumeID")


class Volume(Wire, frozen=True):
    name: str = ""
    persistent_volume_claim: ClaimVolume | None = None
    ephemeral: EphemeralVolume | None = None
    image: ImageVolume | None = None
    csi: CsiVolume | None = None
    gce_persistent_disk: GcePersistentDisk | None = None
    aws_elastic_block_store: AwsElasticBlockStore | None = None
    iscsi: IscsiDisk | None = None
    rbd: RbdImage | None = None
    cinder: CinderDisk | None = None
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    vsphere_volume: VsphereDisk | None = None
    portworx_volume: PortworxVolume | None = None


class NodeSelectorRequirement(Wire, frozen=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Wire, frozen=True):
    """All requirements must hold; a term without requirements matches no node."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Wire, frozen=True):
    """One matching term is enough."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(Wire, frozen=True):
    weight: Int32 = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Wire, frozen=True):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] = ()

    @property
    def required(self) -> NodeSelector | None:
        return self.required_during_scheduling_ignored_during_execution

    @property
    def preferred(self) -> tuple[PreferredSchedulingTerm, ...]:
        return self.preferred_during_scheduling_ignored_during_execution


class PodAffinityTerm(Wire, frozen=True):
    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(Wire, frozen=True):
    weight: Int32 = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Wire, frozen=True):
    """Terms about other pods, to be near them or, as anti-affinity, away from them."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()

    @property
    def required(self) -> tuple[PodAffinityTerm, ...]:
        return self.required_during_scheduling_ignored_during_execution

    @property
    def preferred(self) -> tuple[WeightedPodAffinityTerm, ...]:
        return self.preferred_during_scheduling_ignored_during_execution


class Affinity(Wire, frozen=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Wire, frozen=True):
    max_skew: Int32 = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


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
        """Whether an init container keeps running beside the app containers instead of ending before them."""
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
    scheduling_group: dict[str, Any] | None = None
    workload_ref: dict[str, Any] | None = None
    """In Kubernetes 1.35, what `scheduling_group` is later."""
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
        """Whether the container runs or ran before, so that the kubelet has admitted its pod."""
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
        """Whether the pod has ended: no container runs or will run."""
        return self.phase in FINISHED


class Pod(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    def in_admission_order(self) -> tuple[Container, ...]:
        """Init containers, then app containers, each in their written order, as the kubelet admits them."""
        return self.spec.init_containers + self.spec.containers

    @property
    def has_started(self) -> bool:
        """Whether a container was seen to run, so that the kubelet has admitted the pod."""
        status = self.status
        if status.phase == "Running" or not (status.init_container_statuses or status.container_statuses):
            return status.phase == "Running"
        return any(each.has_started for each in (*status.init_container_statuses, *status.container_statuses))

    @property
    def has_stopped(self) -> bool:
        """Whether the pod is finished, or every long-running container has terminated and no other one runs."""
        states = {status.name: status.state for status in self.status.init_container_statuses}
        states |= {status.name: status.state for status in self.status.container_statuses}
        lasting = (*filter(lambda each: each.is_sidecar, self.spec.init_containers), *self.spec.containers)
        return self.status.is_finished or (
            all(each.name in states and states[each.name].terminated is not None for each in lasting)
            and all(state.running is None for state in states.values())
            and bool(lasting)
        )
