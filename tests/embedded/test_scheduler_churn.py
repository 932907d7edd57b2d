"""After hours of coming and going the scheduler knows what one that was just started would know, and holds no more."""

from __future__ import annotations

import pytest

from numalign.api.caches import BoundedCache
from numalign.api.objects.pod import Pod
from numalign.placement import engine
from numalign.placement.ledger.divergences import Change
from numalign.placement.ledger.ledger import Ledger
from numalign.placement.rules.clusterstate import ClusterState
from numalign.simulator.controllers.cluster.nodelifecycle import NodeLifecycle
from numalign.simulator.controllers.framework.runner import ControllerContext
from numalign.simulator.nodes.kubelet import heartbeat
from numalign.simulator.nodes.kubelet.heartbeat import Heartbeat
from tests.embedded import schedulerchurn as churning
from tests.embedded.schedulerchurn import HOUR, Churn

SLACK = 2_000
"""Things in a part that are not worth a word, where it is about a day."""
EMPTIED_WHEN_FULL = "Shapes._by_key"
"""Holds any number up to its limit: at noon and at midnight by chance."""


def a_little(nodes: int = 8, seconds: float = 120.0) -> Churn:
    return churning.played(nodes, seconds, every=4.0, checkpoints=1)


def test_after_a_little_churn_nothing_differs_from_what_is_made_from_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    # So that shapes are forgotten already in a little while.
    monkeypatch.setattr(engine, "MANY_SHAPES", 16)
    churn = a_little(nodes=20, seconds=240.0)
    assert churn.found == []
    assert churn.bound > 100


def test_a_count_that_is_not_taken_back_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ClusterState, "drop_pod", lambda self, uid: self.pods.pop(uid, None))
    assert any("scores of" in each for each in a_little().found)


def test_a_pod_that_is_never_forgotten_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = Ledger.gone

    def remembering(self: Ledger, pod: Pod, now: float) -> Change:
        self.__dict__.setdefault("visitors", []).append(pod.metadata.uid)
        return gone(self, pod, now)

    monkeypatch.setattr(Ledger, "gone", remembering)
    assert any("Ledger.visitors holds" in each for each in a_little().found)


def feel_pulses(patch: pytest.MonkeyPatch) -> None:
    """Who looks after nodes knows that they live without a word being written: leases and statuses that say the same
    again are half of a day's work, and no scheduler looks at them."""
    controllers: list[NodeLifecycle] = []
    setup = NodeLifecycle.setup

    def watched(self: NodeLifecycle, context: ControllerContext) -> None:
        controllers.append(self)
        setup(self, context)

    def felt(self: Heartbeat) -> None:
        for seen in (each._seen for each in controllers if self._node_state.name in each._seen):
            seen[self._node_state.name] = self._env.clock.now()

    patch.setattr(NodeLifecycle, "setup", watched)
    patch.setattr(Heartbeat, "_renew", felt)
    patch.setattr(heartbeat, "BEAT", 30.0)
    patch.setattr(heartbeat, "STATUS_PERIOD", 1800.0)


def fill_caches_early(patch: pytest.MonkeyPatch) -> None:
    """Long before noon: a cache that is full holds no more at midnight, one without a limit does."""
    made = BoundedCache.__init__
    patch.setattr(BoundedCache, "__init__", lambda self, most: made(self, min(most, 256)))
    patch.setattr(engine, "MANY_SHAPES", 256)


@pytest.mark.slow
def test_a_day_of_churn_on_500_nodes_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some 23,000 pods."""
    feel_pulses(monkeypatch)
    fill_caches_early(monkeypatch)
    churn = churning.played(500, 24 * HOUR, every=8.0, checkpoints=6)
    assert churn.found == []
    noon, midnight = churn.footprints[2], churn.footprints[-1]
    grown = {part: count for part, count in midnight.items() if count > 1.2 * noon[part] + SLACK}
    assert grown.keys() - {EMPTIED_WHEN_FULL} == set()
