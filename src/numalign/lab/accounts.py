"""The accounts of a lab's API server and the roles that grant them the rights of `deploy.rights`.

`up` creates accounts and kubeconfigs and calls `grant` before any program starts. Kubelets and Kubernetes components
have the same accounts as in any cluster, so that RBAC and the node authorizer apply as there. Programs of numalign have
only the rights listed in `deploy.rights`. Every agent may change only its own Node and report. Other programs are
administrators. `refused` is what the server refuses to all of them, because it would reach the real machine."""

import asyncio
import contextlib
from base64 import b64encode
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from numalign.api.decode.structs import Wire
from numalign.api.objects.meta import ObjectMeta
from numalign.api.schedulerconfig.configuration import LeaderElection
from numalign.deploy import rights
from numalign.deploy.rights import Holder, Right
from numalign.kube import errors, resources
from numalign.kube.client import Client
from numalign.lab import controlplane
from numalign.lab.controlplane import ADMINS, Account
from numalign.lab.spec import LabSpec
from numalign.process import privatefile
from numalign.process.certificates import Authority, KeyPair

ADMIN: Final = "admin"
COMPONENTS: Final = ("system:kube-controller-manager", "system:kube-scheduler", "system:kube-proxy")
NODES: Final = "system:nodes"
SCHEDULER, COLLECTOR = "numalign:scheduler", "numalign:gc"
KUBELET_CLIENT: Final = "kube-apiserver-kubelet-client"
"""The user that kubelets with real containers know the API server as."""
AGENTS: Final = "numalign:agents"
"""The group of all agents; each agent has its own account."""


def every(nodes: Iterable[str]) -> dict[str, Account]:
    """The accounts by user."""
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
    login = {"token": account.token} if account.certificate is None else _with_certificate(account.certificate)
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "lab", "cluster": {"server": url, "certificate-authority-data": trusted}}],
        "users": [{"name": account.user, "user": login}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": account.user}}],
        "current-context": "lab",
    }


def _with_certificate(pair: KeyPair) -> dict[str, str]:
    texts = {"client-certificate-data": pair.certificate, "client-key-data": pair.key}
    return {key: b64encode(text.encode()).decode() for key, text in texts.items()}


def certified(authority: Authority, user: str, group: str) -> Account:
    """An account that the server knows by its certificate: the list of tokens is read only when the server starts."""
    return Account(user, "", group, authority.issue_client(user, group))


def write(content: dict[str, Any], file: Path) -> Path:
    """Writes the file; only its owner can read it."""
    return privatefile.write(file, msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")


class AnyObject(Wire, frozen=True):
    """An object of any kind, of which only existence matters."""

    metadata: ObjectMeta = ObjectMeta()


POLICIES_VERSION: Final = "admissionregistration.k8s.io/v1"
NO_LOCAL_VOLUMES: Final = "no-local-volumes.lab.numalign.io"


async def grant(client: Client, spec: LabSpec, election: LeaderElection) -> None:
    """`election` is that of numalign's scheduler."""
    every = [*wanted((each.name for each in spec.nodes), election), _for_kubelets()]
    if not spec.local_volumes:
        every += refused()
    await asyncio.gather(*(_create(client, each) for each in every))


async def grant_node(client: Client, node: str) -> None:
    """The rights of one more node."""
    for each in wanted_on(node):
        with contextlib.suppress(errors.Conflict):
            await _create(client, each)


def _for_kubelets() -> dict[str, Any]:
    """The API server may ask kubelets for logs and run commands, where these know it."""
    return {
        "apiVersion": rights.API_VERSION,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": KUBELET_CLIENT},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:kubelet-api-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": KUBELET_CLIENT}],
    }


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


def wanted(nodes: Iterable[str], election: LeaderElection) -> Iterator[dict[str, Any]]:
    """Roles and bindings, without rights of options that labs do not use."""
    scheduling = rights.by_lease(rights.SCHEDULER, election.resource_namespace, election.resource_name)
    yield from rights.roles(Holder("User", SCHEDULER), _needed(scheduling))
    yield from rights.roles(Holder("User", COLLECTOR), _needed(rights.COLLECTOR))
    yield from rights.roles(Holder("Group", AGENTS), (right for right in _needed(rights.AGENT) if not right.own))
    for node in nodes:
        yield from wanted_on(node)


def wanted_on(node: str) -> Iterator[dict[str, Any]]:
    """Of the agent on this node."""
    own = (right for right in _needed(rights.AGENT) if right.own)
    yield from rights.roles(Holder("User", agent_user(node)), own, node)


def _needed(every: Iterable[Right]) -> list[Right]:
    return [right for right in every if not right.option]


async def _create(client: Client, thing: dict[str, Any]) -> None:
    kind = thing["kind"]
    plural = f"{kind.lower()}s".replace("policys", "policies")
    resource = resources.of(thing["apiVersion"], plural, kind, AnyObject)
    await client.create(resource.within(thing["metadata"].get("namespace", "")), thing)
