"""VolumeRestrictions: disks that one node can mount once, and claims that one pod in the cluster can use.

Disks in the pod's spec conflict on the same node. A ReadWriteOncePod claim conflicts with its user on any node, and
preemption can help (kube-scheduler spec 1.14). `VolumeUsers` follows the cluster state; generic ephemeral volumes
are not counted, because no other pod can use them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from numalign.api.objects.pod import Pod, Volume
from numalign.api.objects.volumes import READ_WRITE_ONCE_POD
from numalign.placement.rules.clusterstate import AssignedPod, ClusterState
from numalign.placement.rules.rule import FITS, Codes, Refusal, Refusals
from numalign.placement.rules.volumes import volumecatalogue
from numalign.placement.rules.volumes.volumestock import VolumeStock


def is_disk(volume: Volume) -> bool:
    """Whether it is a disk that pods on one node may not be able to share."""
    return bool(volume.gce_persistent_disk or volume.aws_elastic_block_store or volume.iscsi or volume.rbd)


class VolumeUsers:
    def __init__(self, world: ClusterState) -> None:
        self._world = world
        self._rows: dict[str, dict[int, int]] = {}
        self.with_disks: dict[int, dict[str, AssignedPod]] = {}
        """By row and uid, pods that bring disks of their own."""
        world.follow(self)

    def is_used(self, claim: str) -> bool:
        """Whether a pod on an existing node uses the claim."""
        return any(self._world.present[row] for row in self._rows.get(claim, ()))

    def node_changed(self, row: int) -> None:
        """Nothing here depends on what the node is."""

    def pod_added(self, assigned: AssignedPod) -> None:
        if not assigned.pod.spec.volumes:
            return
        self._count(assigned, 1)
        if any(map(is_disk, assigned.pod.spec.volumes)):
            self.with_disks.setdefault(assigned.row, {})[assigned.uid] = assigned

    def pod_removed(self, assigned: AssignedPod) -> None:
        self._count(assigned, -1)
        if assigned.uid in self.with_disks.get(assigned.row, ()):
            del self.with_disks[assigned.row][assigned.uid]
            if not self.with_disks[assigned.row]:
                del self.with_disks[assigned.row]

    def _count(self, assigned: AssignedPod, change: int) -> None:
        for name in volumecatalogue.named(assigned.pod):
            if not name.is_ephemeral:
                rows = self._rows.setdefault(name.full, {})
                rows[assigned.row] = rows.get(assigned.row, 0) + change
                if rows[assigned.row] == 0:
                    del rows[assigned.row]
                if not rows:
                    del self._rows[name.full]


DISK_TAKEN: Final = Refusal(("node(s) had no available disk",))
CLAIM_TAKEN: Final = Refusal(
    (
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by "
        "another pod",
    )
)
DISK_CODE, CLAIM_CODE = 1, 2


class PreparedRestrictions(Struct, frozen=True):
    world: ClusterState
    disks: tuple[Volume, ...]
    claims: frozenset[str]
    """Names of the pod's claims that only one pod may use."""
    taken: int
    """How many of them some pod uses."""
    refusals: Refusals
    only: None = None


class VolumeRestrictions:
    name: Final = "VolumeRestrictions"

    def __init__(self, stock: VolumeStock, users: VolumeUsers) -> None:
        self._stock, self._users = stock, users

    def concerns(self, pod: Pod) -> bool:
        return bool(pod.spec.volumes) and volumecatalogue.are_special(pod.spec.volumes)

    def prepare(self, pod: Pod, world: ClusterState) -> PreparedRestrictions | Refusal | None:
        if not pod.spec.volumes:
            return None
        exclusive: set[str] = set()
        for name in volumecatalogue.named(pod):
            claim = None if name.is_ephemeral else self._stock.claims.known(name.full)
            if claim is None and not name.is_ephemeral:
                return Refusal((volumecatalogue.not_found(name.name),), unresolvable=True)
            if claim is not None and READ_WRITE_ONCE_POD in claim.spec.access_modes:
                exclusive.add(name.name)
        namespace, disks = pod.metadata.namespace, disks_of(pod)
        taken = sum(self._users.is_used(volumecatalogue.ClaimName(namespace, name).full) for name in exclusive)
        if not (disks or taken):
            return None
        refusals = Refusals(DISK_TAKEN, CLAIM_TAKEN)
        return PreparedRestrictions(
            world=world, disks=disks, claims=frozenset(exclusive), taken=taken, refusals=refusals
        )

    def filter(self, prepared: PreparedRestrictions) -> Codes:
        codes = np.full(prepared.world.capacity, CLAIM_CODE if prepared.taken else FITS, np.int32)
        for row, pods in self._users.with_disks.items():
            if _conflict(prepared.disks, (assigned.pod for assigned in pods.values())):
                codes[row] = DISK_CODE
        return codes

    def filter_row(
        self, prepared: PreparedRestrictions, row: int, removed: Collection[str], added: Sequence[Pod]
    ) -> int:
        there = prepared.world.on_row[row]
        left = [assigned.pod for uid, assigned in there.items() if uid not in removed]
        if _conflict(prepared.disks, (*left, *added)):
            return DISK_CODE
        gone = _uses(prepared, (there[uid].pod for uid in removed))
        return CLAIM_CODE if prepared.taken + _uses(prepared, added) - gone > 0 else FITS


def disks_of(pod: Pod) -> tuple[Volume, ...]:
    """Volumes that are disks which can conflict."""
    return tuple(filter(is_disk, pod.spec.volumes))


def _uses(prepared: PreparedRestrictions, pods: Iterable[Pod]) -> int:
    # By name alone, as kube-scheduler does: a claim of that name in another namespace counts too.
    names = (each.persistent_volume_claim for pod in pods for each in pod.spec.volumes)
    return sum(each is not None and each.claim_name in prepared.claims for each in names)


def _conflict(disks: Sequence[Volume], pods: Iterable[Pod]) -> bool:
    return any(_is_same(disk, other) for pod in pods for other in disks_of(pod) for disk in disks)


def _is_same(one: Volume, other: Volume) -> bool:
    if one.rbd and other.rbd:
        image, taken = one.rbd, other.rbd
        is_same = (image.pool, image.image) == (taken.pool, taken.image)
        shares_monitor = not set(image.monitors).isdisjoint(taken.monitors)
        return is_same and shares_monitor and not (image.read_only and taken.read_only)
    identity, read_only = _disk(one)
    taken_identity, taken_read_only = _disk(other)
    return identity is not None and identity == taken_identity and not (read_only and taken_read_only)


def _disk(volume: Volume) -> tuple[tuple[str, str] | None, bool]:
    """The identity of the disk, and whether another reader can share it."""
    if volume.gce_persistent_disk:
        return ("gce", volume.gce_persistent_disk.pd_name), volume.gce_persistent_disk.read_only
    if volume.aws_elastic_block_store:
        return ("aws", volume.aws_elastic_block_store.volume_id), False
    if volume.iscsi:
        return ("iscsi", volume.iscsi.iqn), volume.iscsi.read_only
    return None, False
