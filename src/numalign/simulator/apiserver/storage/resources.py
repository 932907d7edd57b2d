"""The built-in resources of the API server, as data.

`schemas.registry` serves them together with those of custom resource definitions; all other modules refer to them by
the constants below. Two resources with the same `group_resource` store the same objects: core and events.k8s.io
events, or the versions of a custom resource."""

from dataclasses import dataclass, field
from typing import Any, Final

EVERYDAY: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
CREATE_ONLY: Final = ("create",)
STATUS: Final = frozenset({"status"})
SCALED: Final = frozenset({"status", "scale"})
ALL: Final = ("all",)
APPS: Final = "apps"
RBAC: Final = "rbac.authorization.k8s.io"
STORAGE: Final = "storage.k8s.io"
DEVICES: Final = "resource.k8s.io"
AUTHORIZATION: Final = "authorization.k8s.io"

GroupResource = tuple[str, str]
GroupVersionKind = tuple[str, str, str]
"""The core group is empty."""


@dataclass(frozen=True)
class Resource:
    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: frozenset[str] = frozenset()
    verbs: tuple[str, ...] = EVERYDAY
    generations: bool = False
    """Whether metadata.generation counts the changes of its spec."""
    custom: bool = False
    """Whether a custom resource definition declares it."""
    group_resource: GroupResource = field(init=False, repr=False, compare=False, default=("", ""))
    """The group and plural under which its objects are stored."""
    _hash: int = field(init=False, repr=False, compare=False, default=0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "singular", self.singular or self.kind.lower())
        # Read several times in every request; the fields above never change.
        group = "" if self.group == "events.k8s.io" else self.group
        object.__setattr__(self, "group_resource", (group, self.plural))
        object.__setattr__(self, "_hash", hash((self.group, self.version, self.plural)))

    def __hash__(self) -> int:
        return self._hash

    @property
    def gvk(self) -> GroupVersionKind:
        return self.group, self.version, self.kind

    @property
    def list_kind(self) -> str:
        return f"{self.kind}List"

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """The name in messages: pods, deployments.apps."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


def _namespaced(group: str, plural: str, kind: str, *short_names: str, **rest: Any) -> Resource:
    return Resource(group, "v1", plural, kind, namespaced=True, short_names=short_names, **rest)


def _cluster_scoped(group: str, plural: str, kind: str, *short_names: str, **rest: Any) -> Resource:
    return Resource(group, "v1", plural, kind, namespaced=False, short_names=short_names, **rest)


PODS: Final = _namespaced(
    "", "pods", "Pod", "po", categories=ALL, subresources=frozenset({"status", "binding", "eviction"}), generations=True
)
NODES: Final = _cluster_scoped("", "nodes", "Node", "no", subresources=STATUS)
# The real server does not delete collections of namespaces.
NAMESPACES: Final = _cluster_scoped(
    "",
    "namespaces",
    "Namespace",
    "ns",
    subresources=frozenset({"status", "finalize"}),
    verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
)
EVENTS: Final = _namespaced("", "events", "Event", "ev")
CONFIGMAPS: Final = _namespaced("", "configmaps", "ConfigMap", "cm")
SECRETS: Final = _namespaced("", "secrets", "Secret")
SERVICEACCOUNTS: Final = _namespaced("", "serviceaccounts", "ServiceAccount", "sa")
SERVICES: Final = _namespaced("", "services", "Service", "svc", categories=ALL, subresources=STATUS)
ENDPOINTS: Final = _namespaced("", "endpoints", "Endpoints", "ep")
PERSISTENTVOLUMES: Final = _cluster_scoped("", "persistentvolumes", "PersistentVolume", "pv", subresources=STATUS)
PERSISTENTVOLUMECLAIMS: Final = _namespaced(
    "", "persistentvolumeclaims", "PersistentVolumeClaim", "pvc", subresources=STATUS
)
REPLICATIONCONTROLLERS: Final = _namespaced(
    "", "replicationcontrollers", "ReplicationController", "rc", categories=ALL, subresources=SCALED, generations=True
)
LIMITRANGES: Final = _namespaced("", "limitranges", "LimitRange", "limits")
RESOURCEQUOTAS: Final = _namespaced("", "resourcequotas", "ResourceQuota", "quota", subresources=STATUS)
PODTEMPLATES: Final = _namespaced("", "podtemplates", "PodTemplate", generations=True)

DEPLOYMENTS: Final = _namespaced(
    APPS, "deployments", "Deployment", "deploy", categories=ALL, subresources=SCALED, generations=True
)
REPLICASETS: Final = _namespaced(
    APPS, "replicasets", "ReplicaSet", "rs", categories=ALL, subresources=SCALED, generations=True
)
STATEFULSETS: Final = _namespaced(
    APPS, "statefulsets", "StatefulSet", "sts", categories=ALL, subresources=SCALED, generations=True
)
DAEMONSETS: Final = _namespaced(
    APPS, "daemonsets", "DaemonSet", "ds", categories=ALL, subresources=STATUS, generations=True
)
CONTROLLERREVISIONS: Final = _namespaced(APPS, "controllerrevisions", "ControllerRevision")
JOBS: Final = _namespaced("batch", "jobs", "Job", categories=ALL, subresources=STATUS, generations=True)
CRONJOBS: Final = _namespaced(
    "batch", "cronjobs", "CronJob", "cj", categories=ALL, subresources=STATUS, generations=True
)
LEASES: Final = _namespaced("coordination.k8s.io", "leases", "Lease")
NEW_EVENTS: Final = _namespaced("events.k8s.io", "events", "Event", "ev")
ENDPOINTSLICES: Final = _namespaced("discovery.k8s.io", "endpointslices", "EndpointSlice", generations=True)
PODDISRUPTIONBUDGETS: Final = _namespaced(
    "policy", "poddisruptionbudgets", "PodDisruptionBudget", "pdb", subresources=STATUS, generations=True
)
PRIORITYCLASSES: Final = _cluster_scoped(
    "scheduling.k8s.io", "priorityclasses", "PriorityClass", "pc", generations=True
)
RUNTIMECLASSES: Final = _cluster_scoped("node.k8s.io", "runtimeclasses", "RuntimeClass")
STORAGECLASSES: Final = _cluster_scoped(STORAGE, "storageclasses", "StorageClass", "sc")
CSINODES: Final = _cluster_scoped(STORAGE, "csinodes", "CSINode", subresources=STATUS)
CSIDRIVERS: Final = _cluster_scoped(STORAGE, "csidrivers", "CSIDriver")
CSISTORAGECAPACITIES: Final = _namespaced(STORAGE, "csistoragecapacities", "CSIStorageCapacity")
VOLUMEATTACHMENTS: Final = _cluster_scoped(STORAGE, "volumeattachments", "VolumeAttachment", subresources=STATUS)
RESOURCECLAIMS: Final = _namespaced(DEVICES, "resourceclaims", "ResourceClaim", subresources=STATUS)
RESOURCECLAIMTEMPLATES: Final = _namespaced(DEVICES, "resourceclaimtemplates", "ResourceClaimTemplate")
RESOURCESLICES: Final = _cluster_scoped(DEVICES, "resourceslices", "ResourceSlice", generations=True)
DEVICECLASSES: Final = _cluster_scoped(DEVICES, "deviceclasses", "DeviceClass", generations=True)
DEVICETAINTRULES: Final = _cluster_scoped(
    DEVICES, "devicetaintrules", "DeviceTaintRule", subresources=STATUS, generations=True
)
ROLES: Final = _namespaced(RBAC, "roles", "Role")
ROLEBINDINGS: Final = _namespaced(RBAC, "rolebindings", "RoleBinding")
CLUSTERROLES: Final = _cluster_scoped(RBAC, "clusterroles", "ClusterRole")
CLUSTERROLEBINDINGS: Final = _cluster_scoped(RBAC, "clusterrolebindings", "ClusterRoleBinding")
CUSTOMRESOURCEDEFINITIONS: Final = _cluster_scoped(
    "apiextensions.k8s.io",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    "crd",
    "crds",
    categories=("api-extensions",),
    subresources=STATUS,
    generations=True,
)
# Policies are stored; nothing here enforces them.
NETWORKPOLICIES: Final = _namespaced(
    "networking.k8s.io", "networkpolicies", "NetworkPolicy", "netpol", generations=True
)
VALIDATINGADMISSIONPOLICIES: Final = _cluster_scoped(
    "admissionregistration.k8s.io",
    "validatingadmissionpolicies",
    "ValidatingAdmissionPolicy",
    categories=("api-extensions",),
    subresources=STATUS,
    generations=True,
)
VALIDATINGADMISSIONPOLICYBINDINGS: Final = _cluster_scoped(
    "admissionregistration.k8s.io",
    "validatingadmissionpolicybindings",
    "ValidatingAdmissionPolicyBinding",
    categories=("api-extensions",),
    generations=True,
)
SELFSUBJECTACCESSREVIEWS: Final = _cluster_scoped(
    AUTHORIZATION, "selfsubjectaccessreviews", "SelfSubjectAccessReview", verbs=CREATE_ONLY
)
SELFSUBJECTRULESREVIEWS: Final = _cluster_scoped(
    AUTHORIZATION, "selfsubjectrulesreviews", "SelfSubjectRulesReview", verbs=CREATE_ONLY
)
SUBJECTACCESSREVIEWS: Final = _cluster_scoped(
    AUTHORIZATION, "subjectaccessreviews", "SubjectAccessReview", verbs=CREATE_ONLY
)
SELFSUBJECTREVIEWS: Final = _cluster_scoped(
    "authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview", verbs=CREATE_ONLY
)
TOKENREVIEWS: Final = _cluster_scoped("authentication.k8s.io", "tokenreviews", "TokenReview", verbs=CREATE_ONLY)

REVIEWS: Final = frozenset(
    (SELFSUBJECTACCESSREVIEWS, SELFSUBJECTRULESREVIEWS, SUBJECTACCESSREVIEWS, SELFSUBJECTREVIEWS, TOKENREVIEWS)
)
"""Resources whose objects are answered and never stored."""

BUILT_IN: Final = tuple(value for value in list(globals().values()) if isinstance(value, Resource))
