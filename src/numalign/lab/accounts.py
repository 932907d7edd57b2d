"""The accounts of a lab's API server, the rights of numalign's programs, and the roles that grant them.

`up` creates accounts and kubeconfigs and calls `grant` before any program starts. Kubelets and Kubernetes components
have the same accounts as in any cluster, so that RBAC and the node authorizer apply as there. Programs of numalign have
only the rights listed here; tests compare them with the documentation and with the requests that the programs make.
Every agent may change only its own Node and report. Other programs are administrators. `refused` is what the server
refuses to all of them, because it would reach the real machine."""

import asyncio
from base64 import b64encode
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from numalign.api.decode.structs import Wire
from numalign.api.nrt import wire
from numalign.api.objects.meta import ObjectMeta
from numalign.kube import resources
from numalign.kube.client import Client
from numalign.lab import controlplane, privatefile
from numalign.lab.controlplane import ADMINS, Account

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


SCHEDULER_RIGHTS: Final = (
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
AGENT_RIGHTS: Final = (
    Right("", ("nodes",), ("get",), own=True),
    Right("", ("pods",), ("list",)),
    Right("", ("nodes/proxy",), ("get",), own=True, option="--configz"),
    # Server-side apply also needs the right to create by name.
    Right(wire.GROUP, REPORTS, ("get", "create", "patch"), own=True),
    # Events of a Node, which has no namespace, are in this namespace.
    Right("events.k8s.io", ("events",), NOTE, namespace="default"),
)
COLLECTOR_RIGHTS: Final = (Right("", ("nodes",), ("get", *LOOK)), Right(wire.GROUP, REPORTS, ("get", "list", "delete")))


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


ADMIN: Final = "admin"
COMPONENTS: Final = ("system:kube-controller-manager", "system:kube-scheduler")
NODES: Final = "system:nodes"
SCHEDULER, COLLECTOR = "numalign:scheduler", "numalign:gc"
AGENTS: Final = "numalign:agents"
"""The group of all agents; each agent has its own account."""


def every(nodes: Iterable[str]) -> dict[str, Account]:
    """By user."""
    groups = {ADMIN: ADMINS} | dict.fromkeys((*COMPONENTS, SCHEDULER, COLLECTOR), "")
    for name in nodes:
        groups |= {node_user(name): NODES, agent_user(name): AGENTS}
    return {user: controlplane.account(user, group) for user, group in groups.items()}


def node_user(name: str) -> str:
    return f"system:node:{name}"


def agent_user(node: str) -> str:
    return f"numalign:agent:{node}"


def kubeconfig(account: Account, url: str, authority: Path) -> dict[str, Any]:
    trusted = b64encode(authority.read_bytes()).decode()
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "lab", "cluster": {"server": url, "certificate-authority-data": trusted}}],
        "users": [{"name": account.user, "user": {"token": account.token}}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": account.user}}],
        "current-context": "lab",
    }


def write(content: dict[str, Any], file: Path) -> Path:
    return privatefile.write(file, msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")


class AnyObject(Wire, frozen=True):
    """An object of any kind, of which only existence matters."""

    metadata: ObjectMeta = ObjectMeta()


POLICIES_VERSION: Final = "admissionregistration.k8s.io/v1"
NO_LOCAL_VOLUMES: Final = "no-local-volumes.lab.numalign.io"


async def grant(client: Client, nodes: Iterable[str]) -> None:
    await asyncio.gather(*(_create(client, each) for each in (*wanted(nodes), *refused())))


def refused() -> Iterator[dict[str, Any]]:
    """A policy against local volumes: a kubelet would change the owner of a folder of the real machine to the group
    that a pod names."""
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["persistentvolumes"],
    }
    why = "a local volume is a folder of the real machine, whose owner a kubelet of the lab would change"
    yield {
        "apiVersion": POLICIES_VERSION,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": NO_LOCAL_VOLUMES},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "!has(object.spec.local)", "message": why}],
        },
    }
    yield {
        "apiVersion": POLICIES_VERSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": NO_LOCAL_VOLUMES},
        "spec": {"policyName": NO_LOCAL_VOLUMES, "validationActions": ["Deny"]},
    }


def wanted(nodes: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Roles and bindings, without rights of options that labs do not use."""
    agent = _needed(AGENT_RIGHTS)
    yield from roles(Holder("User", SCHEDULER), _needed(SCHEDULER_RIGHTS))
    yield from roles(Holder("User", COLLECTOR), _needed(COLLECTOR_RIGHTS))
    yield from roles(Holder("Group", AGENTS), (right for right in agent if not right.own))
    for node in nodes:
        yield from roles(Holder("User", agent_user(node)), (right for right in agent if right.own), node)


def _needed(every: Iterable[Right]) -> list[Right]:
    return [right for right in every if not right.option]


async def _create(client: Client, thing: dict[str, Any]) -> None:
    kind = thing["kind"]
    plural = f"{kind.lower()}s".replace("policys", "policies")
    resource = resources.of(thing["apiVersion"], plural, kind, AnyObject)
    await client.create(resource.within(thing["metadata"].get("namespace", "")), thing)
