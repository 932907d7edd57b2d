"""A snapshot with one node in it, for questions that are about that node alone.

`topology NODE` and `explain pod` of a pod that has a node ask it: a large cluster takes seconds to build, and a node a
moment."""

from __future__ import annotations

from msgspec import structs

from numalign.kube.resources import NODES, PODS, TOPOLOGIES
from numalign.scheduler.snapshot.snapshot import Snapshot


def narrowed(taken: Snapshot, node: str) -> Snapshot:
    """The node, its report and its pods. What a scheduler knows belongs together, and is left as it is."""
    if taken.state is not None:
        return taken
    objects = {
        **taken.objects,
        NODES.plural: tuple(each for each in taken.every(NODES) if each.metadata.name == node),
        TOPOLOGIES.plural: tuple(each for each in taken.every(TOPOLOGIES) if each.metadata.name == node),
        PODS.plural: tuple(each for each in taken.every(PODS) if each.spec.node_name == node),
    }
    return structs.replace(taken, objects=objects)
