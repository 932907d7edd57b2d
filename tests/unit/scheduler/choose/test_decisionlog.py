"""Decisions remembered: bounded, with their chances, and with scores where there is time for them."""

from __future__ import annotations

from random import Random

from numalign.api.objects.meta import ObjectMeta
from numalign.scheduler.choose import decisionlog
from numalign.scheduler.choose.choose import Chosen
from numalign.scheduler.choose.decisionlog import (
    FORGETFUL,
    DecisionLog,
    LoggedAttempt,
    RecordedRandomness,
    ReplayedRandomness,
)
from numalign.scheduler.choose.scoring import Phase, ScoreDetails
from tests.unit.scheduler.servers import Servers, trainer


def turn(name: str, at: float = 0.0) -> LoggedAttempt:
    return LoggedAttempt(
        pod=ObjectMeta(name=name, namespace="n", uid=f"uid-{name}"), attempt=1, at=at, result="unschedulable"
    )


def test_the_latest_ones_are_kept_and_found_by_pod() -> None:
    kept = DecisionLog(most=3)
    for name in "abac":
        kept.note(turn(name))
    assert [each.pod.name for each in kept] == ["b", "a", "c"]
    assert [len(kept.of(name)) for name in ("n/a", "uid-b", "n/x", "")] == [1, 1, 0, 3]


def test_details_are_wanted_ten_times_a_second_at_most() -> None:
    kept = DecisionLog()
    assert [kept.wants_details(at) for at in (0.0, 0.05, 0.11, 0.12, 5.0)] == [True, False, True, False, True]
    assert not FORGETFUL.wants_details(0.0)


def test_what_was_drawn_can_be_drawn_again() -> None:
    chances = RecordedRandomness(Random(3))
    drawn = [chances.random() for _ in range(3)]
    assert chances.drawn() == tuple(drawn)
    assert chances.drawn() == ()
    again = ReplayedRandomness(drawn)
    assert [again.random() for _ in range(4)] == [*drawn, drawn[0]]
    assert ReplayedRandomness(()).random() == 0.0


def test_a_decision_tells_node_and_zones() -> None:
    servers = Servers("a")
    found = servers.choose(trainer("p"))
    assert isinstance(found, Chosen)
    told = decisionlog.record_of(
        LoggedAttempt(pod=trainer("p").metadata, attempt=2, at=1.0, result="scheduled", decision=found.decision)
    )
    assert (told.pod, told.node, told.zones, told.attempt) == ("default/p", "a", "v1;main=0", 2)


def test_a_ranking_says_what_each_plugin_added() -> None:
    servers, ranking = Servers("a", "b", "c", "d"), ScoreDetails(lambda: 0.0)
    found = servers.choose(trainer("p"), ranking=ranking)
    assert isinstance(found, Chosen)
    best = ranking.best(servers.cluster.world, found.decision.node or "")
    assert (len(best), best[0].node) == (3, found.decision.node)
    assert all(sum(each.plugins.values()) == each.total for each in best)
    assert "NodeResourceTopologyMatch" in best[0].plugins


def test_phases_add_up_to_the_whole() -> None:
    ticks = iter(range(100))
    servers, ranking = Servers("a", "b"), ScoreDetails(lambda: float(next(ticks)))
    servers.choose(trainer("p"), ranking=ranking)
    assert list(ranking.phases) == [Phase.FILTER, Phase.ZONES, Phase.SCORE, Phase.PLACE]
    assert sum(ranking.phases.values()) == next(ticks) - 1
