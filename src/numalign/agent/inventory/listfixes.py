"""What older kubelets list and pods do not hold any more, or never did: taken out before anything is made of it.

`looks` calls `put_right` after every look. Kubelets before 1.34 list pods that have finished; those before 1.23 list,
for containers without CPUs of their own, the CPUs that all of these share (exporter spec 2.3). Which CPUs these are is
in the kubelet's checkpoint; without that, a container that is known to have none of its own shows it (4.2)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from msgspec import structs

from numalign.agent.inventory.podidentity import Name
from numalign.agent.inventory.readings import Readings
from numalign.agent.sources.podresources import ContainerResources, PodResources
from numalign.api import errors
from numalign.api.nrt.placementcodec import ContainerRef
from numalign.kubelet import mask as masks
from numalign.kubelet import versions
from numalign.kubelet.versions import Minor

ACTIVE_ONLY: Final = Minor(1, 34)
"""Since then finished pods are not listed."""
EXCLUSIVE_ONLY: Final = Minor(1, 23)
"""Since then the CPUs that containers share are not."""


def put_right(read: Readings, finished: Collection[Name], reference: ContainerRef | None = None) -> Readings:
    minor = versions.parse(read.kubelet_version) or versions.NEWEST
    pods = read.pods
    if pods is None or minor >= ACTIVE_ONLY:
        return read
    pods = unfinished(pods, finished)
    if minor < EXCLUSIVE_ONLY:
        written = read.cpu_checkpoint
        pool = masks.members(written.state.default) if written is not None else pool_of(pods, reference)
        pods = without_pool(pods, pool)
    return structs.replace(read, pods=pods)


def unfinished(pods: Iterable[PodResources], finished: Collection[Name]) -> tuple[PodResources, ...]:
    return tuple(pod for pod in pods if (pod.namespace, pod.name) not in finished)


def pool_of(pods: Iterable[PodResources], reference: ContainerRef | None) -> tuple[int, ...]:
    """The CPUs of the container that has none of its own; nothing where it is not listed."""
    named = ((ContainerRef(pod.namespace, pod.name, each.name), each) for pod in pods for each in pod.containers)
    return next((container.cpus for ref, container in named if ref == reference), ())


def without_pool(pods: Iterable[PodResources], pool: Iterable[int]) -> tuple[PodResources, ...]:
    """CPUs ascending, each once."""
    shared = frozenset(pool)
    return tuple(structs.replace(pod, containers=_without(pod, shared)) for pod in pods)


def _without(pod: PodResources, shared: frozenset[int]) -> tuple[ContainerResources, ...]:
    return tuple(structs.replace(each, cpus=tuple(sorted(set(each.cpus) - shared))) for each in pod.containers)


def reference(text: str) -> ContainerRef | None:
    """namespace/pod/container; None for nothing. BadObject for anything else."""
    if not text:
        return None
    parts = tuple(part.strip() for part in text.split("/"))
    if len(parts) != len(ContainerRef._fields):
        why = f"{errors.echo(text)} is not namespace/pod/container"
        raise errors.BadObject("Agent", "settings", "reference container", why)
    return ContainerRef(*parts)
