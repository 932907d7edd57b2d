"""One pod's turn, put together: what beside the pod decides where it may go.

`cycle` calls `attempt` for every pod that it tries, `repeating` for one that was tried before, so that both ask the
same question."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct

from numalign.api.objects.pod import Pod
from numalign.placement.columns.shapes import Shape
from numalign.scheduler.choose.choose import Attempt
from numalign.scheduler.choose.scoredetails import ScoreDetails
from numalign.scheduler.cluster import Cluster
from numalign.scheduler.intake.stormguard import StormGuard
from numalign.scheduler.queue.nominations import ByRow, Nominations

NOTHING: Final[Mapping[int, Any]] = MappingProxyType({})


class AttemptContext(Struct, frozen=True):
    cluster: Cluster
    nominations: Nominations
    rejections: StormGuard

    def attempt(self, pod: Pod, shape: Shape, now: float, start: int, ranking: ScoreDetails | None = None) -> Attempt:
        """`start`: where the search for nodes begins, if it is not for all."""
        world, nominations = self.cluster.world, self.nominations
        promised: Mapping[int, tuple[Pod, ...]] = NOTHING
        leaving: Mapping[int, tuple[str, ...]] = NOTHING
        if len(nominations):
            promised = ByRow(nominations, world, lambda node: nominations.above(node, pod))
            leaving = ByRow(nominations, world, nominations.leaving)
        return Attempt(
            pod=pod,
            shape=shape,
            now=now,
            nominated=nominations.node_of(pod.metadata.uid),
            promised=promised,
            leaving=leaving,
            kept_off=self.rejections.kept_off(pod, shape.number, world.rows, now),
            start=start % max(1, self.cluster.nodes),
            ranking=ranking,
        )
