"""Which access a process takes when nobody says: that of its kubeconfig, else that of the pod it runs in.

Every main function calls `found`; who knows better calls `kubeconfig.access` or `incluster.access` itself."""

import os
from collections.abc import Mapping

from numalign.kube.access import incluster, kubeconfig
from numalign.kube.access.auth import Access


def found(file: str = "", context: str = "", environment: Mapping[str, str] = os.environ) -> Access:
    """A named file or context takes precedence; then the variable KUBECONFIG, also in a pod."""
    in_a_pod = bool(environment.get(incluster.HOST))
    if file or context or not in_a_pod or environment.get(kubeconfig.VARIABLE):
        return kubeconfig.access((file,) if file else (), context, environment=environment)
    return incluster.access(environment)
