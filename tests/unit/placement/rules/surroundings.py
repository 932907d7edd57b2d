"""What the rules about pods and volumes keep beside the world, for tests that have no scheduler to keep it."""

from __future__ import annotations

from numalign.placement.rules.attachedvolumes import AttachedVolumes
from numalign.placement.rules.namespaces import Namespaces
from numalign.placement.rules.owners import Owners
from numalign.placement.rules.podcounts import PodCounts
from numalign.placement.rules.podterms import PodTerms
from numalign.placement.rules.volumestock import VolumeStock
from numalign.placement.rules.volumeusers import VolumeUsers
from numalign.placement.rules.world import World


class Surroundings:
    def __init__(self, world: World) -> None:
        self.namespaces = Namespaces()
        self.owners = Owners()
        self.counts = PodCounts(world)
        self.terms = PodTerms(world)
        self.stock = VolumeStock()
        self.users = VolumeUsers(world)
        self.attached = AttachedVolumes(world, self.stock)
