"""After hours of coming and going the scheduler knows what one that was just started would know, and holds no more."""

from __future__ import annotations

import pytest

from numalign.api.objects.pod import Pod
from numalign.placement import engine
from numalign.placement.columns import shapes
from numalign.placement.commit import committer
from numalign.placement.ledger import charges, unobserved
from numalign.placement.ledger.divergences import Change
from numalign.placement.ledger.ledger import Ledger
from numalign.placement.rules.clusterstate import World
from numalign.placement.rules.pods import podcounts
from numalign.placement.rules.resources import totals
from numalign.placement.verdicts import evaluation
from numalign.scheduler.choose import noderanks
from numalign.simulator.controllers.cluster.nodelifecycle import NodeLifecycle
from numalign.simulator.controllers.framework.runner import Desk
from numalign.simulator.nodes.kubelet import heartbeat
from numalign.simulator.nodes.kubelet.heartbeat import Heartbeat
from tests.embedded import schedulerchurn as churning
from tests.embedded.schedulerchurn import HOUR, Churn

SLACK = 2_000
"""Things in a part that are not worth a word, where it is about a day."""
MEMORIES = (
    (unobserved, "MOST_KNOWN"),
    (committer, "MOST_ALONE"),
    (engine, "MANY_SHAPES"),
    (evaluation, "MOST_LOOKS"),
    (shapes, "MOST_REMEMBERED"),
    (charges, "MOST_KNOWN"),
    (podcounts, "MOST_LABELS"),
    (totals, "MOST_READ"),
    (totals, "MOST_NUMBERS"),
    (noderanks, "MOST_KNOWN"),
)
"""What was found out about pods and nodes is kept up to so many."""
EMPTIED_WHEN_FULL = (
    "Beliefs._anywhere",
    "Committer._alone",
    "Evaluation._by_looks",
    "PodCounts._labels",
    "Shapes._by_key",
)
"""Memories that hold any number up to their limit: at noon and at midnight by chance."""


def a_little(nodes: int = 8, seconds: float = 120.0) -> Churn:
    return churning.played(nodes, seconds, every=4.0, checkpoints=1)


def test_after_a_little_churn_nothing_differs_from_what_is_made_from_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    # So that shapes are forgotten already in a little while.
    monkeypatch.setattr(engine, "MANY_SHAPES", 16)
    churn = a_little(nodes=20, seconds=240.0)
    assert churn.found == []
    assert churn.bound > 100


def test_a_count_that_is_not_taken_back_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(World, "drop_pod", lambda self, uid: self.pods.pop(uid, None))
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
    sit = NodeLifecycle.sit

    def sitting(self: NodeLifecycle, desk: Desk) -> None:
        controllers.append(self)
        sit(self, desk)

    def felt(self: Heartbeat) -> None:
        for seen in (each._seen for each in controllers if self._standing.name in each._seen):
            seen[self._standing.name] = self._around.clock.now()

    patch.setattr(NodeLifecycle, "sit", sitting)
    patch.setattr(Heartbeat, "_renew", felt)
    patch.setattr(heartbeat, "BEAT", 30.0)
    patch.setattr(heartbeat, "STATUS_PERIOD", 1800.0)


def fill_memories_early(patch: pytest.MonkeyPatch) -> None:
    """Long before noon: a memory that is full holds no more at midnight, one without a limit does."""
    for module, limit in MEMORIES:
        patch.setattr(module, limit, 256)


@pytest.mark.slow
def test_a_day_of_churn_on_500_nodes_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some 23,000 pods."""
    feel_pulses(monkeypatch)
    fill_memories_early(monkeypatch)
    churn = churning.played(500, 24 * HOUR, every=8.0, checkpoints=6)
    assert churn.found == []
    noon, midnight = churn.footprints[2], churn.footprints[-1]
    grown = {part: count for part, count in midnight.items() if count > 1.2 * noon[part] + SLACK}
    assert grown.keys() - set(EMPTIED_WHEN_FULL) == set()
