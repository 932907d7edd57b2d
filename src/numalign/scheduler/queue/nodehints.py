"""Changes of nodes: would the plugin that refused the pod take this node now, and did it not before?

The plugins' own rules are asked, about a world that has this one node and no pods: what they refuse there they refuse
in the cluster too. The nodes looked at last are kept, because one change is held against many pods."""

from __future__ import annotations

from collections import deque
from typing import Any

from numalign.api.objects import nodematching, requests
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod
from numalign.placement.rules.clusterstate import World
from numalign.placement.rules.nodes import nodeunschedulable
from numalign.placement.rules.rule import FITS, FilterRule, Refusal

PODS = "pods"


class SingleNodes:
    """Single nodes, as rules see them."""

    def __init__(self) -> None:
        # An update is about two of them, before and after.
        self._worlds: deque[tuple[Node, World]] = deque(maxlen=2)

    def newly_fits(self, rule: FilterRule[Any], pod: Pod, old: Node | None, new: Node | None) -> bool:
        if new is None or not self.fits(rule, pod, new):
            return False
        return old is None or not self.fits(rule, pod, old)

    def roomier(self, rule: FilterRule[Any], pod: Pod, old: Node | None, new: Node | None) -> bool:
        """For NodeResourcesFit: the pod fits the empty node, which has more of something that it asks for."""
        if new is None or not self.fits(rule, pod, new):
            return False
        return old is None or has_grown(pod, old, new)

    def fits(self, rule: FilterRule[Any], pod: Pod, node: Node) -> bool:
        prepared = rule.prepare(pod, self._world(node))
        if prepared is None or isinstance(prepared, Refusal):
            return prepared is None
        return int(rule.filter(prepared)[0]) == FITS

    def _world(self, node: Node) -> World:
        for seen, world in self._worlds:
            if seen is node:
                return world
        world = World()
        world.put_node(0, node)
        self._worlds.append((node, world))
        return world


def has_grown(pod: Pod, old: Node, new: Node) -> bool:
    before, after = old.allocatable, new.allocatable
    asked = [name for name, amount in requests.effective(pod).items() if amount.nanos]
    return any(name in after and (name not in before or before[name] < after[name]) for name in (PODS, *asked))


def tolerates_cordons(pod: Pod) -> bool:
    """For NodeUnschedulable: the pod's new toleration is the one that counts."""
    return nodematching.tolerated(*nodeunschedulable.CORDONED, pod.spec.tolerations)
