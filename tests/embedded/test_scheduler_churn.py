"""After hours of coming and going the scheduler knows what one that was just started would know, and holds no more."""

from __future__ import annotations

import pytest

from numalign.api.pod import Pod
from numalign.placement import engine
from numalign.placement.changes import Change
from numalign.placement.ledger import Ledger
from numalign.placement.rules.world import World
from numalign.simulator.nodes import heartbeat
from tests.embedded import schedulerchurn as churning
from tests.embedded.schedulerchurn import HOUR, Churn

SLACK = 2_000
"""Things in a part that are not worth a word, where it is about a day."""


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


@pytest.mark.slow
def test_a_day_of_churn_on_500_nodes_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some 23,000 pods. Nobody here looks at the leases of nodes, so that they are renewed less often."""
    monkeypatch.setattr(heartbeat, "BEAT", 30.0)
    churn = churning.played(500, 24 * HOUR, every=8.0, checkpoints=6)
    assert churn.found == []
    noon, midnight = churn.footprints[2], churn.footprints[-1]
    assert {part: count for part, count in midnight.items() if count > 1.2 * noon[part] + SLACK} == {}
