"""The objects that the operator manages, as they are in the cluster.

`controller` watches and writes them by `RESOURCES`; `plan` compares them with what is wanted. They are kept whole,
because every field counts for a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from numalign.api.decode.structs import Wire
from numalign.api.objects.meta import ObjectMeta
from numalign.kube import resources
from numalign.kube.resources import TOPOLOGIES, Resource, Target

Tree = dict[str, Any]


class ManagedFields(Wire, frozen=True):
    manager: str = ""
    operation: str = ""
    subresource: str = ""
    fields_v1: Tree | None = msgspec.field(default=None, name="fieldsV1")


class LiveMeta(ObjectMeta, frozen=True):
    managed_fields: tuple[ManagedFields, ...] = ()


class Live(Wire, frozen=True):
    """Any object of the kinds below, with all fields that these kinds have."""

    metadata: LiveMeta = LiveMeta()
    spec: Any = None
    status: Any = None
    data: Any = None
    binary_data: Any = None
    immutable: Any = None
    rules: Any = None
    aggregation_rule: Any = None
    role_ref: Any = None
    subjects: Any = None
    secrets: Any = None
    image_pull_secrets: Any = None
    automount_service_account_token: Any = None

    def tree(self, kind: str = "") -> Tree:
        """As the API server has it; the kind is not known here."""
        # By way of JSON, so that lists are lists: tuples equal no list.
        found: Tree = msgspec.json.decode(msgspec.json.encode(self))
        found.setdefault("metadata", {})
        return found | ({"kind": kind} if kind else {})


class Node(Wire, frozen=True):
    """A Node, decoded only for its name and labels."""

    metadata: ObjectMeta = ObjectMeta()


class Pod(Wire, frozen=True):
    """A Pod, decoded only for its name."""

    metadata: ObjectMeta = ObjectMeta()


NODES: Final = resources.of("v1", "nodes", "Node", Node)
PODS: Final = resources.of("v1", "pods", "Pod", Pod)


class Kind(Struct, frozen=True):
    resource: Resource[Live]
    everywhere: bool
    """Whether objects of it are watched in all namespaces, or have none."""


class Key(Struct, frozen=True, order=True):
    """The identity of an object; its text is how messages name it."""

    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


def _kind(api_version: str, kind: str, plural: str, *, wide: bool = False) -> Kind:
    return Kind(resources.of(api_version, plural, kind, Live), wide)


RBAC: Final = "rbac.authorization.k8s.io/v1"
ADMISSION: Final = "admissionregistration.k8s.io/v1"
KINDS: Final[Mapping[str, Kind]] = {
    each.resource.kind: each
    for each in (
        _kind("v1", "ServiceAccount", "serviceaccounts"),
        _kind("v1", "ConfigMap", "configmaps"),
        _kind("v1", "Service", "services"),
        _kind("apps/v1", "DaemonSet", "daemonsets"),
        _kind("apps/v1", "Deployment", "deployments"),
        # Agents write Events about Nodes, which are in the namespace default, and have a Role there.
        _kind(RBAC, "Role", "roles", wide=True),
        _kind(RBAC, "RoleBinding", "rolebindings", wide=True),
        _kind(RBAC, "ClusterRole", "clusterroles", wide=True),
        _kind(RBAC, "ClusterRoleBinding", "clusterrolebindings", wide=True),
        _kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"),
        _kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
        _kind(ADMISSION, "ValidatingAdmissionPolicy", "validatingadmissionpolicies", wide=True),
        _kind(ADMISSION, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", wide=True),
        _kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", wide=True),
    )
}


REPORTS_DEFINITION: Final = f"{TOPOLOGIES.plural}.{TOPOLOGIES.group}"


def key_of(tree: Tree) -> Key:
    meta = tree["metadata"]
    return Key(tree["kind"], meta["name"], meta.get("namespace", ""))


def target(key: Key) -> Target[Live]:
    return KINDS[key.kind].resource.at(key.name, key.namespace)
