"""The release that an installation is: its name, its namespace, and what its cluster offers.

It has what a Helm template knows as `.Release` and `.Capabilities`. `render` and `objects` take it; nothing here asks a
cluster."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from numalign import __version__

NODE_IN_TOKENS: Final = (1, 32)
"""Kubernetes puts the node of a pod into the identity of the pod's token."""
MONITORING: Final = "monitoring.coreos.com/v1"
OPENSHIFT: Final = "security.openshift.io/v1"
CERT_MANAGER: Final = "cert-manager.io/v1"
NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
LONGEST_RELEASE: Final = 53
"""As in Helm."""
LONGEST_NAMESPACE: Final = 63
NUMBERS: Final = re.compile(r"v?(\d+)\.(\d+)")


class Release(Struct, frozen=True, kw_only=True):
    name: str = "numalign"
    namespace: str = "numalign-system"
    kube_version: str = "1.37.1"
    api_versions: frozenset[str] = frozenset()
    """Groups with versions that the cluster serves, such as monitoring.coreos.com/v1."""
    manager: str = "numalign"
    """The label app.kubernetes.io/managed-by: the tool that applies the objects."""
    version: str = __version__
    """Of the programs."""

    def at_least(self, minor: tuple[int, int]) -> bool:
        found = NUMBERS.match(self.kube_version)
        return found is not None and (int(found[1]), int(found[2])) >= minor
