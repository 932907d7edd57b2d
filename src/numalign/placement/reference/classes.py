"""How the plugin sorts resources: by name, by what a node offers, and by whether a pod holds them for itself.

`demand` asks what has to fit on one NUMA node, `filter` what a node has at all; the caches and `eviction` ask which
pods hold exclusive resources (scheduler plugin spec 6). Only requests are looked at, never limits.
"""

from collections.abc import Container as Names
from typing import Final

from numalign.api.decode.quantity import Quantity
from numalign.api.nrt.wire import NodeResourceTopology
from numalign.api.objects import qos, resourcenames
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Container, Pod
from numalign.api.objects.qos import QoS

HOST_LEVEL: Final = frozenset({"ephemeral-storage", "storage"})
ALWAYS_PRESENT: Final = frozenset({"cpu", "memory", "pods", "ephemeral-storage"})
VOLUMES_PREFIX: Final = "attachable-volumes-"


def is_numa_affine(name: str) -> bool:
    return name in (resourcenames.CPU, resourcenames.MEMORY) or resourcenames.is_hugepages(name)


def is_host_level(name: str) -> bool:
    """One that needs no NUMA node where no zone lists it."""
    return name in HOST_LEVEL or not resourcenames.is_native(name)


def present_on(node: Node) -> frozenset[str]:
    """The names that the node has at all, in whatever amount, as the scheduler's node totals keep them."""
    return ALWAYS_PRESENT.union(filter(_is_counted, node.status.allocatable))


def _is_counted(name: str) -> bool:
    return (
        resourcenames.is_hugepages(name)
        or name.startswith(VOLUMES_PREFIX)
        or resourcenames.NATIVE_DOMAIN in name
        or resourcenames.is_extended(name)
    )


def listed_by(nrt: NodeResourceTopology) -> frozenset[str]:
    """The names that any zone lists, whatever its type."""
    return frozenset(resource.name for zone in nrt.zones or () for resource in zone.resources)


def asks_for_devices(pod: Pod) -> bool:
    """Whether a container requests an extended resource, even an amount of zero."""
    names = (name for container in pod.in_admission_order() for name in container.resources.requests)
    return not all(map(resourcenames.is_native, names))


def is_exclusive(quality: QoS, name: str, amount: Quantity, listed: Names[str]) -> bool:
    """Whether the container gets this amount exclusively. `listed`: the names in the node's report."""
    if not resourcenames.is_native(name):
        return name in listed
    if quality is not QoS.GUARANTEED:
        return False
    if name == resourcenames.CPU:
        return amount.value > 0 and amount.value * 1000 == amount.milli
    # The plugin does not read the Memory Manager's policy.
    return is_numa_affine(name) and amount.value > 0


def pinned_containers(pod: Pod, listed: Names[str]) -> list[Container]:
    """The containers that hold something exclusive while the pod runs: sidecars first, then app containers."""
    quality = qos.of(pod)
    lasting = [*(each for each in pod.spec.init_containers if each.is_sidecar), *pod.spec.containers]
    return [each for each in lasting if _holds_exclusive(quality, each, listed)]


def is_exclusive_pod(pod: Pod, listed: Names[str]) -> bool:
    return bool(pinned_containers(pod, listed))


def _holds_exclusive(quality: QoS, container: Container, listed: Names[str]) -> bool:
    wanted = container.resources.requests
    return any(is_exclusive(quality, name, amount, listed) for name, amount in wanted.items())
