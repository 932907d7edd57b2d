"""The built-in resources of the API server, as data.

`schemas.registry` serves them together with those of custom resource definitions; all other modules refer to them by
the constants below. Two resources with the same `group_resource` store the same objects: core and events.k8s.io
events, or the versions of a custom resource."""

from dataclasses import dataclass, field
from typing import Final

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


PODS: Final = Resource(
    "",
    "v1",
    "pods",
    "Pod",
    namespaced=True,
    short_names=("po",),
    categories=ALL,
    subresources=frozenset({"status", "binding", "eviction"}),
    generations=True,
)
NODES: Final = Resource("", "v1", "nodes", "Node", namespaced=False, short_names=("no",), subresources=STATUS)
NAMESPACES: Final = Resource(
    "",
    "v1",
    "namespaces",
    "Namespace",
    namespaced=False,
    short_names=("ns",),
    subresources=frozenset({"status", "finalize"}),
    # The real server does not delete collections of namespaces.
    verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
)
EVENTS: Final = Resource("", "v1", "events", "Event", namespaced=True, short_names=("ev",))
CONFIGMAPS: Final = Resource("", "v1", "configmaps", "ConfigMap", namespaced=True, short_names=("cm",))
SECRETS: Final = Resource("", "v1", "secrets", "Secret", namespaced=True)
SERVICEACCOUNTS: Final = Resource("", "v1", "serviceaccounts", "ServiceAccount", namespaced=True, short_names=("sa",))
SERVICES: Final = Resource(
    "", "v1", "services", "Service", namespaced=True, short_names=("svc",), categories=ALL, subresources=STATUS
)
ENDPOINTS: Final = Resource("", "v1", "endpoints", "Endpoints", namespaced=True, short_names=("ep",))
PERSISTENTVOLUMES: Final = Resource(
    "", "v1", "persistentvolumes", "PersistentVolume", namespaced=False, short_names=("pv",), subresources=STATUS
)
PERSISTENTVOLUMECLAIMS: Final = Resource(
    "",
    "v1",
    "persistentvolumeclaims",
    "PersistentVolumeClaim",
    namespaced=True,
    short_names=("pvc",),
    subresources=STATUS,
)
REPLICATIONCONTROLLERS: Final = Resource(
    "",
    "v1",
    "replicationcontrollers",
    "ReplicationController",
    namespaced=True,
    short_names=("rc",),
    categories=ALL,
    subresources=SCALED,
    generations=True,
)
LIMITRANGES: Final = Resource("", "v1", "limitranges", "LimitRange", namespaced=True, short_names=("limits",))
RESOURCEQUOTAS: Final = Resource(
    "", "v1", "resourcequotas", "ResourceQuota", namespaced=True, short_names=("quota",), subresources=STATUS
)
PODTEMPLATES: Final = Resource("", "v1", "podtemplates", "PodTemplate", namespaced=True, generations=True)

DEPLOYMENTS: Final = Resource(
    APPS,
    "v1",
    "deployments",
    "Deployment",
    namespaced=True,
    short_names=("deploy",),
    categories=ALL,
    subresources=SCALED,
    generations=True,
)
REPLICASETS: Final = Resource(
    APPS,
    "v1",
    "replicasets",
    "ReplicaSet",
    namespaced=True,
    short_names=("rs",),
    categories=ALL,
    subresources=SCALED,
    generations=True,
)
STATEFULSETS: Final = Resource(
    APPS,
    "v1",
    "statefulsets",
    "StatefulSet",
    namespaced=True,
    short_names=("sts",),
    categories=ALL,
    subresources=SCALED,
    generations=True,
)
DAEMONSETS: Final = Resource(
    APPS,
    "v1",
    "daemonsets",
    "DaemonSet",
    namespaced=True,
    short_names=("ds",),
    categories=ALL,
    subresources=STATUS,
    generations=True,
)
CONTROLLERREVISIONS: Final = Resource(APPS, "v1", "controllerrevisions", "ControllerRevision", namespaced=True)
JOBS: Final = Resource(
    "batch", "v1", "jobs", "Job", namespaced=True, categories=ALL, subresources=STATUS, generations=True
)
CRONJOBS: Final = Resource(
    "batch",
    "v1",
    "cronjobs",
    "CronJob",
    namespaced=True,
    short_names=("cj",),
    categories=ALL,
    subresources=STATUS,
    generations=True,
)
LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", "Lease", namespaced=True)
NEW_EVENTS: Final = Resource("events.k8s.io", "v1", "events", "Event", namespaced=True, short_names=("ev",))
ENDPOINTSLICES: Final = Resource(
    "discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", namespaced=True, generations=True
)
PODDISRUPTIONBUDGETS: Final = Resource(
    "policy",
    "v1",
    "poddisruptionbudgets",
    "PodDisruptionBudget",
    namespaced=True,
    short_names=("pdb",),
    subresources=STATUS,
    generations=True,
)
PRIORITYCLASSES: Final = Resource(
    "scheduling.k8s.io",
    "v1",
    "priorityclasses",
    "PriorityClass",
    namespaced=False,
    short_names=("pc",),
    generations=True,
)
RUNTIMECLASSES: Final = Resource("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", namespaced=False)
STORAGECLASSES: Final = Resource(STORAGE, "v1", "storageclasses", "StorageClass", namespaced=False, short_names=("sc",))
CSINODES: Final = Resource(STORAGE, "v1", "csinodes", "CSINode", namespaced=False, subresources=STATUS)
CSIDRIVERS: Final = Resource(STORAGE, "v1", "csidrivers", "CSIDriver", namespaced=False)
CSISTORAGECAPACITIES: Final = Resource(STORAGE, "v1", "csistoragecapacities", "CSIStorageCapacity", namespaced=True)
VOLUMEATTACHMENTS: Final = Resource(
    STORAGE, "v1", "volumeattachments", "VolumeAttachment", namespaced=False, subresources=STATUS
)
RESOURCECLAIMS: Final = Resource(DEVICES, "v1", "resourceclaims", "ResourceClaim", namespaced=True, subresources=STATUS)
RESOURCECLAIMTEMPLATES: Final = Resource(
    DEVICES, "v1", "resourceclaimtemplates", "ResourceClaimTemplate", namespaced=True
)
RESOURCESLICES: Final = Resource(DEVICES, "v1", "resourceslices", "ResourceSlice", namespaced=False, generations=True)
DEVICECLASSES: Final = Resource(DEVICES, "v1", "deviceclasses", "DeviceClass", namespaced=False, generations=True)
DEVICETAINTRULES: Final = Resource(
    DEVICES, "v1", "devicetaintrules", "DeviceTaintRule", namespaced=False, subresources=STATUS, generations=True
)
ROLES: Final = Resource(RBAC, "v1", "roles", "Role", namespaced=True)
ROLEBINDINGS: Final = Resource(RBAC, "v1", "rolebindings", "RoleBinding", namespaced=True)
CLUSTERROLES: Final = Resource(RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False)
CLUSTERROLEBINDINGS: Final = Resource(RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
CUSTOMRESOURCEDEFINITIONS: Final = Resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
    short_names=("crd", "crds"),
    categories=("api-extensions",),
    subresources=STATUS,
    generations=True,
)
SELFSUBJECTACCESSREVIEWS: Final = Resource(
    AUTHORIZATION,
    "v1",
    "selfsubjectaccessreviews",
    "SelfSubjectAccessReview",
    namespaced=False,
    verbs=CREATE_ONLY,
)
SELFSUBJECTRULESREVIEWS: Final = Resource(
    AUTHORIZATION, "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview", namespaced=False, verbs=CREATE_ONLY
)
SUBJECTACCESSREVIEWS: Final = Resource(
    AUTHORIZATION, "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False, verbs=CREATE_ONLY
)
SELFSUBJECTREVIEWS: Final = Resource(
    "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False, verbs=CREATE_ONLY
)
TOKENREVIEWS: Final = Resource(
    "authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False, verbs=CREATE_ONLY
)

REVIEWS: Final = frozenset(
    (SELFSUBJECTACCESSREVIEWS, SELFSUBJECTRULESREVIEWS, SUBJECTACCESSREVIEWS, SELFSUBJECTREVIEWS, TOKENREVIEWS)
)
"""Resources whose objects are answered and never stored."""

BUILT_IN: Final = tuple(value for value in list(globals().values()) if isinstance(value, Resource))
