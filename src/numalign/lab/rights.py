"""The rights of numalign's programs at an API server, as data, and the roles that grant them. Pure.

`granting` grants them in a lab. Tests compare them with the documentation of the programs and with the requests that
the programs make. Every other request is refused."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal

from msgspec import Struct

from numalign.api.nrt import wire

GROUP: Final = "rbac.authorization.k8s.io"
API_VERSION: Final = f"{GROUP}/v1"
LOOK: Final = ("list", "watch")
NOTE: Final = ("create", "patch")
REPORTS: Final = ("noderesourcetopologies",)
STORAGE: Final = ("storageclasses", "csinodes", "csidrivers", "csistoragecapacities", "volumeattachments")
ROOM: Final = ("nodes", "pods", "namespaces", "services", "replicationcontrollers")
VOLUMES: Final = ("persistentvolumes", "persistentvolumeclaims")


class Right(Struct, frozen=True):
    group: str
    resources: tuple[str, ...]
    """With their subresource, as in `pods/status`."""
    verbs: tuple[str, ...]
    own: bool = False
    """Only for objects with the holder's own name, where each holder has an account."""
    namespace: str = ""
    """The namespace where it is needed; empty means all, or a resource without namespace."""
    option: str = ""
    """The setting that needs it; empty means always."""


class Holder(Struct, frozen=True):
    kind: Literal["User", "Group"]
    name: str


SCHEDULER: Final = (
    Right("", (*ROOM, *VOLUMES), LOOK),
    Right("apps", ("replicasets", "statefulsets"), LOOK),
    Right("storage.k8s.io", STORAGE, LOOK),
    Right("policy", ("poddisruptionbudgets",), LOOK),
    Right("resource.k8s.io", ("deviceclasses",), LOOK),
    Right(wire.GROUP, REPORTS, LOOK),
    Right("", ("pods",), ("get", "delete")),
    Right("", ("pods/binding",), ("create",)),
    Right("", ("pods/status", *VOLUMES), ("patch",)),
    Right("events.k8s.io", ("events",), NOTE),
    Right("coordination.k8s.io", ("leases",), ("get", "create", "update"), namespace="kube-system"),
    Right("authentication.k8s.io", ("tokenreviews",), ("create",), option="pages over TLS"),
    Right("authorization.k8s.io", ("subjectaccessreviews",), ("create",), option="pages over TLS"),
)
AGENT: Final = (
    Right("", ("nodes",), ("get",), own=True),
    Right("", ("pods",), ("list",)),
    Right("", ("nodes/proxy",), ("get",), own=True, option="--configz"),
    # Server-side apply also needs the right to create by name.
    Right(wire.GROUP, REPORTS, ("get", "create", "patch"), own=True),
    # Events of a Node, which has no namespace, are in this namespace.
    Right("events.k8s.io", ("events",), NOTE, namespace="default"),
)
COLLECTOR: Final = (
    Right("", ("nodes",), ("get", *LOOK)),
    Right(wire.GROUP, REPORTS, ("get", "list", "delete")),
)


def roles(holder: Holder, rights: Iterable[Right], own: str = "") -> list[dict[str, Any]]:
    """A role and its binding for all namespaces, and for each namespace of a limited right. `own` is the name of the
    holder's own objects."""
    by_namespace: dict[str, list[dict[str, Any]]] = {}
    for right in rights:
        by_namespace.setdefault(right.namespace, []).append(_rule(right, own))
    return [each for namespace, rules in by_namespace.items() for each in _granted(holder, namespace, rules)]


def _rule(right: Right, own: str) -> dict[str, Any]:
    rule = {"apiGroups": [right.group], "resources": [*right.resources], "verbs": [*right.verbs]}
    return rule | ({"resourceNames": [own]} if right.own else {})


def _granted(holder: Holder, namespace: str, rules: list[dict[str, Any]]) -> list[dict[str, Any]]:
    kind = "Role" if namespace else "ClusterRole"
    metadata = {"name": holder.name} | ({"namespace": namespace} if namespace else {})
    role = {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "rules": rules}
    binding = {
        "apiVersion": API_VERSION,
        "kind": f"{kind}Binding",
        "metadata": metadata,
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": holder.name},
        "subjects": [{"apiGroup": GROUP, "kind": holder.kind, "name": holder.name}],
    }
    return [role, binding]
