"""Finds the credentials of a process: its kubeconfig, otherwise the service account of its pod.

Every main function calls `default`. The service account's token is read again every minute and after a 401, the
authority when its file changes (kube-scheduler spec 7.5)."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from numalign.api import errors
from numalign.kube.access import kubeconfig
from numalign.kube.clock import Clock, SystemClock
from numalign.kube.transport import auth
from numalign.kube.transport.auth import Access, Identity, Login
from numalign.kube.transport.dial import Server
from numalign.kube.transport.tls import Contexts, Trust

FOLDER: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
HOST: Final = "KUBERNETES_SERVICE_HOST"
PORT: Final = "KUBERNETES_SERVICE_PORT"
SOURCE: Final = "in-cluster"


def in_cluster(environment: Mapping[str, str] = os.environ, folder: str = FOLDER, clock: Clock | None = None) -> Access:
    """The service account of the pod; BadObject outside a pod with one."""
    host, port = environment.get(HOST, ""), environment.get(PORT, "443")
    if not host or not port.isdecimal():
        why = f"{HOST} and {PORT} do not name a server; is this process in a pod?"
        raise errors.BadObject("Kubeconfig", SOURCE, "environment", why)

    def read() -> Identity:
        raw = auth.file_bytes(f"{folder}/token", SOURCE, "token")
        return Identity(auth.bearer(auth.token_text(raw, SOURCE, "token")))

    read()
    return Access(
        server=Server(host, int(port)),
        login=Login(auth.from_files(read), clock or SystemClock()),
        contexts=Contexts(Trust(file=f"{folder}/ca.crt"), SOURCE),
        namespace=_namespace(folder),
    )


def _namespace(folder: str) -> str:
    try:
        return Path(folder, "namespace").read_text().strip() or "default"
    except (OSError, ValueError):
        return "default"


def default(file: str = "", context: str = "", environment: Mapping[str, str] = os.environ) -> Access:
    """A named file or context takes precedence; then the variable KUBECONFIG, also in a pod."""
    if _is_kubeconfig_used(file, context, environment):
        return kubeconfig.access((file,) if file else (), context, environment=environment)
    return in_cluster(environment)


def context_name(file: str = "", context: str = "", environment: Mapping[str, str] = os.environ) -> str:
    """The context whose cluster `default` reaches; empty for the cluster of the pod."""
    if context or not _is_kubeconfig_used(file, context, environment):
        return context
    return kubeconfig.current_context((file,) if file else (), environment)


def _is_kubeconfig_used(file: str, context: str, environment: Mapping[str, str]) -> bool:
    return bool(file or context or not environment.get(HOST) or environment.get(kubeconfig.VARIABLE))
