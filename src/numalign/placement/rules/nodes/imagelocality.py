"""ImageLocality: nodes that have a pod's images score higher.

Large and widespread images count more. An image that few nodes have counts little, so that these nodes are not
flooded (kube-scheduler spec 1.11). The score is not normalized."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from numalign.api.objects.pod import Pod
from numalign.placement.rules.clusterstate import ClusterState
from numalign.placement.rules.rule import MAX_SCORE, Rows, Scores, span

MIB: Final = 1 << 20
LEAST: Final = 23 * MIB
MOST_PER_IMAGE: Final = 1000 * MIB


class ImageLocality:
    name: Final = "ImageLocality"

    def prepare_score(self, pod: Pod, world: ClusterState, rows: Rows) -> Scores:
        """The score by row."""
        references = tuple(_references(pod))
        stamp = (world.images.generation, len(world.rows), world.capacity)
        return world.images.scores.get(references, stamp, lambda: _scores(references, world))

    def score(self, prepared: Scores, rows: Rows) -> Scores:
        return prepared[span(rows)]

    def normalized(self, prepared: Scores, raw: Scores) -> Scores:
        return raw

    def score_alone(self, prepared: Scores) -> Scores:
        return prepared


def _scores(references: Sequence[str], world: ClusterState) -> Scores:
    total = np.zeros(world.capacity, np.int64)
    for reference in references:
        state = world.images.by_name.get(tagged(reference))
        if state is not None:
            total[state.listed()] += int(state.size * (len(state.rows) / len(world.rows)))
    most = MOST_PER_IMAGE * len(references)
    return MAX_SCORE * (np.clip(total, LEAST, most) - LEAST) // (most - LEAST) if references else total


def tagged(reference: str) -> str:
    """The image name with the default tag if it has none. A colon before the last slash precedes a registry's port."""
    return reference if reference.rfind(":") > reference.rfind("/") else f"{reference}:latest"


def _references(pod: Pod) -> Iterator[str]:
    yield from (container.image for container in pod.in_admission_order())
    yield from (volume.image.reference for volume in pod.spec.volumes if volume.image)
