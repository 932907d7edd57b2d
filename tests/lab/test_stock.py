"""Why all this: the same pods on the same nodes, placed by a scheduler that does not know zones."""

from __future__ import annotations

from numalign.api.pod import DEFAULT_SCHEDULER
from tests.lab import fleet, loads
from tests.lab.live import Live

STRICT = [node.name for node in fleet.loaded() if node.settings.topology_policy in ("restricted", "single-numa-node")]


def test_the_stock_scheduler_gets_pods_turned_away(cluster: Live) -> None:
    stories = cluster.run(loads.played(cluster, STRICT, DEFAULT_SCHEDULER))
    rejected = [each for story in stories.values() for each in story.rejected]
    assert len(rejected) >= len(STRICT)
    assert any("Topology" in each for each in rejected)
