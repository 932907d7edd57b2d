"""Which free volume each node would get for each claim that waits for its first pod.

`volumebinding` asks. Claims are served smallest first; each takes the smallest volume that suits it and that the node
can reach, unless one was set aside for it. On every node anew: claims compete only with each other (kube-scheduler
spec 1.17). Of equal volumes the first by name is taken; the stock scheduler takes any."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from numalign.api.decode import quantity
from numalign.api.objects.volumes import PersistentVolume, PersistentVolumeClaim
from numalign.placement.rules.clusterstate import ClusterState
from numalign.placement.rules.volumes.volumecatalogue import Catalogues, ClassCatalogue
from numalign.placement.rules.volumes.volumereach import NONE, Choice


class VolumeMatch(Struct, frozen=True):
    """The volume that a claim gets on each row, by number."""

    claim: PersistentVolumeClaim
    choice: Choice
    catalogue: ClassCatalogue

    def on(self, row: int) -> PersistentVolume | None:
        return self.volume(int(self.choice[row]))

    def volume(self, number: int) -> PersistentVolume | None:
        return None if number == NONE else self.catalogue.entries[number].volume


def matches(claims: Sequence[PersistentVolumeClaim], catalogues: Catalogues, world: ClusterState) -> list[VolumeMatch]:
    """In the order in which claims are served."""
    found: list[VolumeMatch] = []
    for claim in sorted(claims, key=lambda claim: claim.size or quantity.ZERO):
        catalogue = catalogues.of(claim.class_name)
        taken = [each.choice for each in found if each.catalogue is catalogue]
        found.append(VolumeMatch(claim, catalogue.first(claim, world, taken), catalogue))
    return found
