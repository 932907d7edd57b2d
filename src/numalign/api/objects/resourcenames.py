"""Classifies resources by name: hugepages, extended resources, and resources that a pod may set as a whole.

Requests, QoS, the kubelet model and the scheduling rules call it."""

import re
from typing import Final

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
HUGEPAGES_PREFIX: Final = "hugepages-"
QUOTA_PREFIX: Final = "requests."
NATIVE_DOMAIN: Final = "kubernetes.io/"

LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
QUALIFIED: Final = re.compile(rf"{LABEL}(\.{LABEL})*/[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?")
MAX_DOMAIN: Final = 253


def is_hugepages(name: str) -> bool:
    return name.startswith(HUGEPAGES_PREFIX)


def is_bytes(name: str) -> bool:
    """Whether people write its amounts with a unit such as Gi."""
    return name in (MEMORY, EPHEMERAL_STORAGE) or is_hugepages(name)


def is_native(name: str) -> bool:
    """A name without a domain, or with one of Kubernetes' own."""
    return "/" not in name or NATIVE_DOMAIN in name


def is_extended(name: str) -> bool:
    """A resource outside kubernetes.io, such as a device plugin's `example.com/nic`."""
    if is_native(name) or name.startswith(QUOTA_PREFIX):
        return False
    # The name must stay valid when a ResourceQuota puts its prefix in front (kube-scheduler spec, extended resources).
    domain = QUOTA_PREFIX + name.partition("/")[0]
    return len(domain) <= MAX_DOMAIN and QUALIFIED.fullmatch(name) is not None


def is_pod_level(name: str) -> bool:
    """One that `spec.resources` of a pod may state for the pod as a whole (kubelet spec 10)."""
    return name in (CPU, MEMORY) or is_hugepages(name)
