"""One pod's turn, put together: what beside the pod decides where it may go.

`cycle` calls `attempt` for every pod that it tries, `repeating` for one that was tried before, so that both ask the
same question."""

from __future__ import annotations

from msgspec import Struct

from numalign.api.pod import Pod
from numalign.placement.shapes import Shape
from numalign.scheduler.choosing import Attempt
from numalign.scheduler.cluster import Cluster
from numalign.scheduler.nominations import ByRow, Nominations
from numalign.scheduler.ranking import Ranking
from numalign.scheduler.rejections import Rejections


class Surroundings(Struct, frozen=True):
    cluster: Cluster
    nominations: Nominations
    rejections: Rejections

    def attempt(self, pod: Pod, shape: Shape, now: float, start: int, ranking: Ranking | None = None) -> Attempt:
        """`start`: where the search for nodes begins, if it is not for all."""
        world = self.cluster.world
        return Attempt(
            pod=pod,
            shape=shape,
            now=now,
            nominated=self.nominations.node_of(pod.metadata.uid),
            promised=ByRow(self.nominations, world, lambda node: self.nominations.above(node, pod)),
            leaving=ByRow(self.nominations, world, self.nominations.leaving),
            kept_off=self.rejections.kept_off(shape.number, world.rows, now),
            start=start % max(1, self.cluster.nodes),
            ranking=ranking,
        )
