"""Which pods on nodes use which claims, and which have disks that cannot be shared.

Follows a world; `volumerestrictions` and `attachedvolumes` read. Claims of volumes made for one pod alone are not
counted as used: nobody else can name them (kube-scheduler spec 1.14)."""

from __future__ import annotations

from numalign.api.objects.podvolumes import Volume
from numalign.placement.rules.clusterstate import AssignedPod, ClusterState
from numalign.placement.rules.volumes import claims


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
        """By a pod on a node that is there."""
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
        for name in claims.named(assigned.pod):
            if not name.is_ephemeral:
                rows = self._rows.setdefault(name.full, {})
                rows[assigned.row] = rows.get(assigned.row, 0) + change
                if rows[assigned.row] == 0:
                    del rows[assigned.row]
                if not rows:
                    del self._rows[name.full]
