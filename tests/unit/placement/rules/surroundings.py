"""What the rules about pods and volumes keep beside the world, for tests that have no scheduler to keep it."""

from __future__ import annotations

from numalign.placement.rules.clusterstate import ClusterState
from numalign.placement.rules.pods.matchers import Namespaces
from numalign.placement.rules.pods.owners import Owners
from numalign.placement.rules.pods.podcounts import PodCounts
from numalign.placement.rules.pods.podterms import PodTerms
from numalign.placement.rules.volumes.nodevolumelimits import AttachedVolumes
from numalign.placement.rules.volumes.volumerestrictions import VolumeUsers
from numalign.placement.rules.volumes.volumestock import VolumeStock


class Surroundings:
    def __init__(self, world: ClusterState) -> None:
        self.namespaces = Namespaces()
        self.owners = Owners()
        self.counts = PodCounts(world)
        self.terms = PodTerms(world)
        self.stock = VolumeStock()
        self.users = VolumeUsers(world)
        self.attached = AttachedVolumes(world, self.stock)
