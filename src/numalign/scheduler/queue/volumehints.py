"""Changes of volumes: is the claim one of the pod's, does a pod that left share a disk or a claim with it?

Objects around claims and volumes (classes, drivers, capacities) are not looked into: any of them may help."""

from __future__ import annotations

from numalign.api.objects.pod import Pod
from numalign.api.objects.volumes import PersistentVolume, PersistentVolumeClaim
from numalign.placement.rules.volumes import claims, volumerestrictions


def is_claimed(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """The claim is named by the pod, or made for one of its ephemeral volumes."""
    meta = claim.metadata
    return any((each.namespace, each.name) == (meta.namespace, meta.name) for each in claims.named(pod))


def is_in_other_zone(old: PersistentVolume | None, new: PersistentVolume | None) -> bool:
    """For VolumeZone, which reads the zones of a volume from its labels."""
    return old is None or new is None or old.metadata.labels != new.metadata.labels


def frees_disk(pod: Pod, gone: Pod | None, _: object = None) -> bool:
    """For VolumeRestrictions, which knows claims by their name alone: both have one of a name, or both have disks."""
    if gone is None:
        return True
    both_disks = volumerestrictions.disks_of(pod) and volumerestrictions.disks_of(gone)
    return bool(both_disks) or not _claims(pod).isdisjoint(_claims(gone))


def frees_attachment(_: Pod, gone: Pod | None, __: object = None) -> bool:
    """For NodeVolumeLimits: whatever volume the pod that left had, it may have counted."""
    return gone is None or bool(gone.spec.volumes)


def _claims(pod: Pod) -> set[str]:
    return {each.name for each in claims.named(pod)}
