"""The scheduler's own choice and placement, without a queue and without HTTP.

Promises about placed pods are tested with this: the choice is `scheduler.choosing` under the default profile, the
placement is `Engine.place`, and facts go through `scheduler.cluster`, as in the process."""

from __future__ import annotations

from importlib.util import find_spec
from random import Random

import pytest
from msgspec import structs

from numalign.api.nrt import normalise
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod
from numalign.placement.decisions import Decision
from numalign.placement.engine import Engine
from numalign.placement.rules.clusterstate import ClusterState
from numalign.placement.settings import Settings
from numalign.placement.view import NodeView
from numalign.scheduler import main, placementannotation
from numalign.scheduler.choose import choose
from numalign.scheduler.choose.choose import Attempt, Chosen
from numalign.scheduler.choose.cluster import Cluster
from numalign.scheduler.choose.plugins import Plugins
from tests.conftest import require

KERNELS = pytest.mark.parametrize("compiled", [False, True], ids=["plain Python", "machine code"])
"""For tests that take `compiled`."""


class Placing:
    """A cluster and the default profile on it; `compiled`: with machine code."""

    def __init__(self, settings: Settings | None = None, *, compiled: bool = False) -> None:
        world = ClusterState()
        self.cluster = Cluster(Engine(settings), world)
        self.profile = Plugins(world).profile(main.defaults().profiles[0])
        if compiled:
            require(find_spec("numba"), "numba, as `make install` brings it")
            assert self.engine.warm()

    @property
    def engine(self) -> Engine:
        return self.cluster.engine

    def node(self, node: Node) -> None:
        self.cluster.node(node)

    def report(self, topology: NodeTopology, now: float = 0.0) -> None:
        self.cluster.report(normalise.encode(topology), now)

    def place(self, pod: Pod, rng: Random, now: float = 0.0) -> Decision | None:
        """The pod on the best node, bound there; None: on none."""
        attempt = Attempt(pod=pod, shape=self.engine.shape(pod), now=now)
        found = choose.choose(attempt, self.profile, self.cluster, rng)
        if not isinstance(found, Chosen):
            return None
        self.cluster.assume(pod, found.decision)
        self.cluster.bound(found.decision.uid)
        return found.decision


def foretold(pod: Pod, decision: Decision) -> Pod:
    """The pod as its binding leaves it, with the placement that the scheduler expects."""
    text = placementannotation.of(decision)
    annotations = {**pod.metadata.annotations, placementannotation.NAME: text} if text else pod.metadata.annotations
    return structs.replace(pod, metadata=structs.replace(pod.metadata, annotations=annotations))


def views(engine: Engine) -> list[NodeView]:
    """Every node, by name."""
    return [seen for name in sorted(engine.rows) if (seen := engine.view(name)) is not None]
