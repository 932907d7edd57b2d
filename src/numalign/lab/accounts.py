"""The accounts of a lab's API server: one per component with a token, and their kubeconfigs.

Kubelets and Kubernetes components have the same accounts as in any cluster, so that RBAC and the node authorizer apply
as there. Programs of numalign have only the rights that `granting` gives them. Other programs are administrators."""

from __future__ import annotations

import secrets
from base64 import b64encode
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec

from numalign.lab.controlplane import ADMINS, Account

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
        groups |= {node(name): NODES, agent(name): AGENTS}
    return {user: Account(user, secrets.token_urlsafe(24), group) for user, group in groups.items()}


def node(name: str) -> str:
    return f"system:node:{name}"


def agent(node: str) -> str:
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
    """Readable by the owner only."""
    file.touch(mode=0o600)
    file.write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")
    return file
