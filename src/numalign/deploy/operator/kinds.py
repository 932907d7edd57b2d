"""NUMAResourcesOperator and NUMAResourcesScheduler: the custom resources that the operator obeys.

Group, version, names, fields, defaults and annotations are those of the NUMA Resources Operator (deploy spec 8), so
that its YAML works. numalign adds `name` and `nodeSelector` to a node group. `crds` has the definitions, `agents` and
`schedulers` read the specs. docs/compatibility/operator.md says what each field does here."""

from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from numalign.api.decode.structs import Int32, Int64, Wire
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.selectors import LabelSelector
from numalign.api.objects.statusconditions import Condition
from numalign.kube import resources

GROUP: Final = "nodetopology.openshift.io"
VERSION: Final = "v1"
API_VERSION: Final = f"{GROUP}/{VERSION}"

PAUSE: Final = "config.numa-operator.openshift.io/pause-reconciliation"
REPORT_DEFINITION: Final = "config.numa-operator.openshift.io/nrt-api-definition"
QOS: Final = "config.numa-operator.openshift.io/scheduler-qos-request"
KEEP_REPORTS: Final = "numalign.io/keep-reports"
ENABLED: Final = "enabled"
BY_CLUSTER: Final = "cluster"
GUARANTEED: Final = "guaranteed"

LOG_LEVELS: Final = {"Normal": 2, "Debug": 4, "Trace": 6, "TraceAll": 8}
"""logLevel, and the level of klog that it stands for."""
LONGEST_GROUP_NAME: Final = 48
"""The DaemonSet of a group is called `numalign-agent-` and the name, at most 63 characters."""


Status = dict[str, Any]
"""As it is written; the operator is its only author."""
T = TypeVar("T")


def read_back(written: Any, kind: type[T]) -> T | None:
    """A part of the operator's own status; None where it is missing, or not in the operator's own form."""
    try:
        return None if written is None else msgspec.convert(written, kind)
    except (msgspec.ValidationError, RecursionError):
        return None


def conditions(status: Status) -> tuple[Condition, ...]:
    return read_back(status.get("conditions"), tuple[Condition, ...]) or ()


class GroupConfig(Wire, frozen=True):
    pods_fingerprinting: str | None = None
    info_refresh_mode: str | None = None
    info_refresh_period: str | None = None
    info_refresh_pause: str | None = None
    tolerations: tuple[dict[str, Any], ...] = ()


class NodeGroupSpec(Wire, frozen=True):
    """One of `pool_name`, `machine_config_pool_selector` and `node_selector` says which nodes it has."""

    name: str = ""
    """Of a group with `node_selector`."""
    pool_name: str | None = None
    machine_config_pool_selector: LabelSelector | None = None
    node_selector: LabelSelector | None = None
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    config: GroupConfig = GroupConfig()


class PodExclude(Wire, frozen=True):
    namespace: str = ""
    name: str = ""


class OperatorSpec(Wire, frozen=True):
    node_groups: tuple[NodeGroupSpec, ...] = ()
    image_spec: str = ""
    log_level: str = "Normal"
    pod_excludes: tuple[PodExclude, ...] = ()


class RemovedGroup(Wire, frozen=True):
    """A group, or the former nodes of one, whose reports are not deleted yet."""

    name: str
    selector: LabelSelector


class NUMAResourcesOperator(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: OperatorSpec = OperatorSpec()
    status: Status = msgspec.field(default_factory=dict)

    @property
    def removed(self) -> tuple[RemovedGroup, ...]:
        return read_back(self.status.get("removedNodeGroups"), tuple[RemovedGroup, ...]) or ()


class ScoredResourceSpec(Wire, frozen=True):
    name: str = ""
    weight: Int64 = 1


class ScoringStrategySpec(Wire, frozen=True):
    type: str = "LeastAllocated"
    resources: tuple[ScoredResourceSpec, ...] = ()


class SchedulerSpec(Wire, frozen=True):
    image_spec: str = ""
    scheduler_name: str = ""
    log_level: str = "Normal"
    cache_resync_period: str | None = None
    cache_resync_debug: str | None = None
    scheduler_informer: str | None = None
    cache_resync_detection: str | None = None
    scoring_strategy: ScoringStrategySpec | None = None
    preemption_mode: str | None = None
    replicas: Int32 | None = None


class NUMAResourcesScheduler(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: SchedulerSpec = SchedulerSpec()
    status: Status = msgspec.field(default_factory=dict)


OPERATORS: Final = resources.of(API_VERSION, "numaresourcesoperators", "NUMAResourcesOperator", NUMAResourcesOperator)
SCHEDULERS: Final = resources.of(
    API_VERSION, "numaresourcesschedulers", "NUMAResourcesScheduler", NUMAResourcesScheduler
)
OPERATOR_NAME: Final = "numaresourcesoperator"
SCHEDULER_NAME: Final = "numaresourcesscheduler"
PROFILE: Final = "topo-aware-scheduler"
"""The default of schedulerName."""


Resource = NUMAResourcesOperator | NUMAResourcesScheduler


class Custom(Struct, frozen=True):
    """One of the two kinds, and the only name that an object of it may have."""

    kind: str
    plural: str
    name: str
    short: str


OPERATOR: Final = Custom(OPERATORS.kind, OPERATORS.plural, OPERATOR_NAME, "numaresop")
SCHEDULER: Final = Custom(SCHEDULERS.kind, SCHEDULERS.plural, SCHEDULER_NAME, "numaressched")
