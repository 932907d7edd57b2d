"""The claims that a pod's volumes stand for.

All volume rules ask. A volume that is made for one pod alone has a claim of the pod's own, named after both; one of
that name that somebody else made does not count (kube-scheduler spec 1.17)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from numalign.api.objects.pod import Pod
from numalign.api.objects.podvolumes import Volume
from numalign.api.objects.volumes import PersistentVolumeClaim


class ClaimName(Struct, frozen=True):
    namespace: str
    name: str
    is_ephemeral: bool = False

    @property
    def full(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def named(pod: Pod) -> Iterator[ClaimName]:
    """In the order of the volumes; twice, if two volumes use one."""
    for volume in pod.spec.volumes:
        name = of_volume(pod, volume)
        if name is not None:
            yield name


def are_special(volumes: Iterable[Volume]) -> bool:
    """Whether one of them is more than files that the node's kubelet makes: a claim, or a disk."""
    return any(volume != Volume(name=volume.name, image=volume.image) for volume in volumes)


def of_volume(pod: Pod, volume: Volume) -> ClaimName | None:
    if volume.persistent_volume_claim is not None:
        return ClaimName(pod.metadata.namespace, volume.persistent_volume_claim.claim_name)
    if volume.ephemeral is not None:
        return ClaimName(pod.metadata.namespace, f"{pod.metadata.name}-{volume.name}", is_ephemeral=True)
    return None


def is_for(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    """Whether the claim was made for this pod."""
    controller = claim.metadata.controller
    return controller is not None and controller.uid == pod.metadata.uid


def not_found(name: str) -> str:
    return f'persistentvolumeclaim "{name}" not found'


def not_owned(claim: ClaimName, pod: Pod) -> str:
    whole, meta = f"{claim.namespace}/{claim.name}", pod.metadata
    return f"PVC {whole} was not created for pod {meta.namespace}/{meta.name} (pod is not owner)"
