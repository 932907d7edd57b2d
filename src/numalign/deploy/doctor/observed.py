"""The state of a cluster at one moment, as far as the doctor could read it.

`collect` fills `Observed` from an API server, `files` from the output of kubectl. What could not be read is in
`unread`, with the reason: a check that needs it is skipped. Objects have only the fields that checks read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from numalign.api import errors
from numalign.api.decode import decode
from numalign.api.decode.structs import Int32, Wire
from numalign.api.nrt import wire
from numalign.api.nrt.publishers import ManagedMeta
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Affinity, Toleration
from numalign.deploy import podtroubles
from numalign.deploy.podtroubles import WatchedPod
from numalign.kube import resources
from numalign.kube.resources import LeaseSpec, Resource


class PublishedReport(wire.Salvaged, frozen=True):
    """A report with the managed fields that say who wrote it."""

    metadata: ManagedMeta = ManagedMeta()


def read_report(raw: bytes) -> PublishedReport:
    """A report that does not match its schema, as far as it can be read."""
    salvaged = msgspec.structs.asdict(wire.decode(raw))
    try:
        salvaged["metadata"] = decode.decode(_Managed, raw).metadata
    except errors.BadObject:
        salvaged["metadata"] = ManagedMeta(**msgspec.structs.asdict(salvaged["metadata"]))
    return PublishedReport(**salvaged)


class _Managed(Wire, frozen=True):
    metadata: ManagedMeta = ManagedMeta()


class ConfigMapVolume(Wire, frozen=True):
    name: str = ""


class TemplateVolume(Wire, frozen=True):
    name: str = ""
    config_map: ConfigMapVolume | None = None


class TemplateContainer(Wire, frozen=True):
    name: str = ""
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()


class TemplateSpec(Wire, frozen=True):
    containers: tuple[TemplateContainer, ...] = ()
    service_account_name: str = "default"
    node_selector: dict[str, str] = field(default_factory=dict)
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    volumes: tuple[TemplateVolume, ...] = ()


class Template(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: TemplateSpec = TemplateSpec()


class WorkloadSpec(Wire, frozen=True):
    replicas: Int32 = 1
    template: Template = Template()


class WorkloadStatus(Wire, frozen=True):
    available_replicas: Int32 = 0


class Workload(Wire, frozen=True):
    """A DaemonSet or a Deployment."""

    metadata: ObjectMeta = ObjectMeta()
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


class DefinedSchema(Wire, frozen=True):
    # Upstream spells it with capitals that the camel case of Wire does not have.
    schema: dict[str, Any] = field(default_factory=dict, name="openAPIV3Schema")


class DefinedVersion(Wire, frozen=True):
    name: str = ""
    served: bool = False
    storage: bool = False
    schema: DefinedSchema = DefinedSchema()


class DefinedNames(Wire, frozen=True):
    kind: str = ""
    plural: str = ""


class DefinitionSpec(Wire, frozen=True):
    group: str = ""
    scope: str = ""
    names: DefinedNames = DefinedNames()
    versions: tuple[DefinedVersion, ...] = ()


class Condition(Wire, frozen=True):
    type: str = ""
    status: str = ""
    message: str = ""


class DefinitionStatus(Wire, frozen=True):
    conditions: tuple[Condition, ...] = ()


class Definition(Wire, frozen=True):
    """A CustomResourceDefinition."""

    metadata: ObjectMeta = ObjectMeta()
    spec: DefinitionSpec = DefinitionSpec()
    status: DefinitionStatus = DefinitionStatus()


class Rule(Wire, frozen=True):
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = field(default=(), name="nonResourceURLs")


class Role(Wire, frozen=True):
    """A Role or a ClusterRole."""

    metadata: ObjectMeta = ObjectMeta()
    rules: tuple[Rule, ...] | None = ()


class RoleRef(Wire, frozen=True):
    kind: str = ""
    name: str = ""


class Subject(Wire, frozen=True):
    kind: str = ""
    name: str = ""
    namespace: str = ""


class RoleBinding(Wire, frozen=True):
    """A RoleBinding or a ClusterRoleBinding."""

    metadata: ObjectMeta = ObjectMeta()
    role_ref: RoleRef = RoleRef()
    subjects: tuple[Subject, ...] | None = ()


class ConfigMap(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    data: dict[str, str] = field(default_factory=dict)


class RenewedLease(Wire, frozen=True):
    """A Lease with the API server's time of its last renewal."""

    metadata: ManagedMeta = ManagedMeta()
    spec: LeaseSpec = LeaseSpec()


RBAC: Final = "rbac.authorization.k8s.io/v1"
NODE_LEASES: Final = "kube-node-lease"
DEFINITION: Final = f"noderesourcetopologies.{wire.GROUP}"

NODES: Final = resources.NODES
PODS: Final = podtroubles.PODS
REPORTS: Final = tuple(
    Resource(wire.GROUP, version, "noderesourcetopologies", wire.KIND, PublishedReport, read_report)
    for version in (wire.V1ALPHA2, wire.V1ALPHA1)
)
"""The newer version first: an older definition serves only v1alpha1."""
DAEMON_SETS: Final = resources.of("apps/v1", "daemonsets", "DaemonSet", Workload)
DEPLOYMENTS: Final = resources.of("apps/v1", "deployments", "Deployment", Workload)
DEFINITIONS: Final = resources.of(
    "apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition", Definition
)
LEASES: Final = resources.of("coordination.k8s.io/v1", "leases", "Lease", RenewedLease)
CLUSTER_ROLES: Final = resources.of(RBAC, "clusterroles", "ClusterRole", Role)
CLUSTER_ROLE_BINDINGS: Final = resources.of(RBAC, "clusterrolebindings", "ClusterRoleBinding", RoleBinding)
ROLES: Final = resources.of(RBAC, "roles", "Role", Role)
ROLE_BINDINGS: Final = resources.of(RBAC, "rolebindings", "RoleBinding", RoleBinding)
CONFIG_MAPS: Final = resources.of("v1", "configmaps", "ConfigMap", ConfigMap)
LISTED: Final[tuple[Resource[Any], ...]] = (
    NODES,
    PODS,
    DAEMON_SETS,
    DEPLOYMENTS,
    CLUSTER_ROLES,
    CLUSTER_ROLE_BINDINGS,
    ROLES,
    ROLE_BINDINGS,
)
"""Listed in all namespaces. Reports, node leases and single objects are read in their own ways."""
CONFIGZ: Final = "nodes/proxy"
VERSION: Final = "version"
ABSENT: Final = "no such object in the files"


class Observed(Struct, frozen=True, kw_only=True):
    version: str = ""
    """Of the API server; empty: unknown."""
    now: datetime | None = None
    """The API server's time; None: unknown, so no age is judged."""
    here: datetime | None = None
    """The time of the machine that the doctor runs on, at the same moment."""
    nodes: tuple[Node, ...] = ()
    pods: tuple[WatchedPod, ...] = ()
    reports: tuple[PublishedReport, ...] = ()
    daemon_sets: tuple[Workload, ...] = ()
    deployments: tuple[Workload, ...] = ()
    definition: Definition | None = None
    """The CustomResourceDefinition of reports; None: there is none."""
    node_leases: tuple[RenewedLease, ...] = ()
    leases: tuple[RenewedLease, ...] = ()
    """Of schedulers."""
    config_maps: tuple[ConfigMap, ...] = ()
    """Those that schedulers mount."""
    cluster_roles: tuple[Role, ...] = ()
    cluster_role_bindings: tuple[RoleBinding, ...] = ()
    roles: tuple[Role, ...] = ()
    role_bindings: tuple[RoleBinding, ...] = ()
    configz: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """By node, the KubeletConfiguration in force of kubelets that were asked."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """By plural resource name, why it could not be read."""
    odd: tuple[str, ...] = ()
    """Objects that could not be decoded, each with the reason."""
