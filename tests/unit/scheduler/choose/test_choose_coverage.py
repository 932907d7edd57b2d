"""Where pods go in a cluster of which only some nodes report: aligned pods to those nodes, other pods to the others."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numalign.api.objects.pod import Pod
from numalign.placement import facts
from numalign.scheduler import main
from numalign.scheduler import settings as configuration
from numalign.scheduler.choose.choose import Chosen
from numalign.scheduler.choose.plugins import Plugins
from tests.unit.scheduler import servers, waitingpods
from tests.unit.scheduler.servers import Servers, trainer

NODES = 10
ALLOWING = {"name": "Numalign", "args": {"nodesWithoutReport": "allow"}}
PLAIN = waitingpods.pod("plain", {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]})


class Town(Servers):
    """Nodes of which some report, and on which nothing runs."""

    def __init__(self, reporting: int) -> None:
        names = [f"n{number}" for number in range(NODES)]
        super().__init__(*names, reports=False)
        profiles = [{"schedulerName": "numalign", "pluginConfig": [ALLOWING]}]
        config = configuration.read(main.NOTHING_SAID | {"profiles": profiles}, "test")
        self.profile = Plugins(self.cluster.world).profile(config.profiles[0])
        self.names, self.reporting = names, set[str]()
        for name in names[:reporting]:
            self.report(name)

    def report(self, name: str) -> None:
        self.cluster.report(servers.reported(name), 0.0)
        self.reporting.add(name)

    def anew(self, name: str) -> None:
        """Another machine of that name, which has not reported."""
        self.cluster.node_gone(name)
        self.cluster.report_gone(name, 0.0)
        self.cluster.node(servers.node(name))
        self.reporting.discard(name)

    def chosen(self, pod: Pod, seed: int) -> str:
        found = self.choose(pod, seed)
        assert isinstance(found, Chosen)
        self.cluster.engine.apply(facts.BindFailed(pod.metadata.uid))
        return found.decision.node


def check(town: Town, seed: int) -> None:
    unreported = set(town.names) - town.reporting
    assert town.chosen(trainer("aligned"), seed) in (town.reporting or unreported)
    assert town.chosen(PLAIN, seed) in (unreported or town.reporting)


@pytest.mark.parametrize("percent", [0, 10, 50, 90, 100])
def test_nodes_that_report_are_for_pods_that_need_zones_and_the_others_for_other_pods(percent: int) -> None:
    town = Town(NODES * percent // 100)
    for seed in range(10):
        check(town, seed)


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from([1, 5, 9]),
    st.lists(st.tuples(st.integers(0, NODES - 1), st.booleans()), max_size=12),
    st.integers(0, 99),
)
def test_the_same_holds_while_reports_come_and_go(reporting: int, changes: list[tuple[int, bool]], seed: int) -> None:
    town = Town(reporting)
    for number, comes in changes:
        name = town.names[number]
        if comes:
            town.report(name)
        else:
            town.anew(name)
        check(town, seed)


def test_a_node_without_a_report_that_is_fuller_is_not_preferred() -> None:
    """The report decides only between nodes that are equal otherwise."""
    town = Town(9)
    for number in range(3):
        big = waitingpods.pod(f"big{number}", {"containers": [{"name": "m", "resources": {"requests": {"cpu": "40"}}}]})
        town.cluster.pod(servers.on(big, town.names[9], phase="Running"), 0.0)
    assert town.chosen(PLAIN, 1) in town.reporting
