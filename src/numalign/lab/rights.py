"""What our programs may ask of an API server: their rights as data, and the roles that grant them.

A lab grants them to the accounts that its programs have, and tests hold the pages of the programs, and what the
programs ask for, against them. Whatever is not here is refused. Pure; nothing here talks to a server."""

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
    """With their part, as in `pods/status`."""
    verbs: tuple[str, ...]
    own: bool = False
    """On objects of the holder's own name alone, where each holder has an account."""
    namespace: str = ""
    """The one where it is needed; empty: all, or the resource has none."""
    option: str = ""
    """The setting without which nobody needs it."""


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
    # It applies, and whoever does is asked for the right to create by name, too.
    Right(wire.GROUP, REPORTS, ("get", "create", "patch"), own=True),
    # Those of a Node, which has no namespace, are kept there.
    Right("events.k8s.io", ("events",), NOTE, namespace="default"),
)
COLLECTOR: Final = (
    Right("", ("nodes",), ("get", *LOOK)),
    Right(wire.GROUP, REPORTS, ("get", "list", "delete")),
)


def roles(holder: Holder, rights: Iterable[Right], own: str = "") -> list[dict[str, Any]]:
    """A role and its binding for all namespaces, and for each one that a right is limited to. `own`: the name of the
    objects that are the holder's own."""
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
