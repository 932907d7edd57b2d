"""A scheduler that starts anew in the middle of it all, with nothing but objects to go by: pods of the old one are
where the new one believes them to be, and pods that it places itself are admitted, in every order.

Beside `test_admitted`: there one scheduler sees everything."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from numalign.api.nrt.nodetopology import NodeTopology
from numalign.api.objects.pod import Pod
from numalign.placement.ledger import reconcile
from tests.placing import KERNELS, Placing, foretold
from tests.unit.placement import clusters
from tests.unit.placement.clusters import ModelNode
from tests.unit.scheduler.test_admitted import Story

RESTARTS = 0.15
"""The chance that the engine starts anew before a pod is placed."""


class Restarting(Story):
    def __init__(self, seed: int, *, foretelling: bool, compiled: bool = False) -> None:
        super().__init__(seed, compiled=compiled)
        self.foretelling = foretelling
        self.chances = Random(~seed)
        self.delivered: dict[str, NodeTopology] = {name: node.topology for name, node in self.nodes.items()}

    def report(self, node: ModelNode) -> None:
        super().report(node)
        self.delivered[node.name] = node.topology

    def place(self, uid: str) -> bool:
        if self.chances.random() < RESTARTS:
            self.restart()
        return super().place(uid)

    def restart(self) -> None:
        """Objects arrive in any order, and so do pods that no report covers."""
        self.count["restarts"] += 1
        self.placing = Placing(compiled=self.compiled)
        for name, node in self.nodes.items():
            self.placing.node(node.node)
            self.placing.report(self.delivered[name], self.now)
        pods = [pod for node in self.nodes.values() for pod in self.living(node)]
        for pod in self.chances.sample(pods, k=len(pods)):
            self.placing.cluster.pod(self.foretold(pod), self.now)
            self.count["pending"] += pod.status.phase == "Pending"

    def living(self, node: ModelNode) -> list[Pod]:
        running = [clusters.on_node(pod, node.name, "Running") for pod in node.state.active.values()]
        return [*running, *node.bound.values()]

    def foretold(self, pod: Pod) -> Pod:
        """As the binding left it: with what the scheduler believed then."""
        decision = self.promised.get(pod.metadata.uid)
        return foretold(pod, decision) if decision is not None and self.foretelling else pod


class EndingThenRestarting(Restarting):
    """Pods end, and the engine that heard of it places others; the one after it never did."""

    def place(self, uid: str) -> bool:
        return Story.place(self, uid)

    def finale(self) -> None:
        for number in range(6):
            for node in self.nodes.values():
                self.end(node)
            self.place(f"late-{number}")
        self.restart()
        for node in self.nodes.values():
            self.report(node)


def restarted(seeds: range, *, foretelling: bool, compiled: bool = False) -> Counter[str]:
    total: Counter[str] = Counter()
    for seed in seeds:
        total.update(Restarting(seed, foretelling=foretelling, compiled=compiled).tell(30))
    return total


@KERNELS
@pytest.mark.parametrize("foretelling", [True, False], ids=["with forecasts", "without"])
def test_a_scheduler_that_starts_anew_goes_on_where_the_old_one_ended(foretelling: bool, compiled: bool) -> None:
    total = restarted(range(20), foretelling=foretelling, compiled=compiled)
    assert total["restarts"] > 20
    assert total["pending"] > 40


def test_pods_that_ended_unheard_and_are_still_reported_would_be_counted_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconcile, "_has_strangers", lambda *_: False)
    with pytest.raises(AssertionError):
        restarted(range(3, 4), foretelling=False)


def ended(seeds: range, *, foretelling: bool) -> list[int]:
    """Seeds of stories in which a pod was not where the new engine believed it to be."""
    wrong = []
    for seed in seeds:
        story = EndingThenRestarting(seed, foretelling=foretelling)
        story.tell(12)
        try:
            story.finale()
        except AssertionError:
            wrong.append(seed)
    return wrong


@pytest.mark.parametrize("foretelling", [True, False], ids=["with forecasts", "without"])
def test_ends_that_only_the_old_engine_saw_mislead_no_decision(foretelling: bool) -> None:
    assert ended(range(20), foretelling=foretelling) == []


def test_such_ends_are_known_from_forecasts_as_well_as_from_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconcile, "_has_strangers", lambda *_: False)
    assert ended(range(20), foretelling=True) == []
    assert ended(range(20), foretelling=False) != []


def test_a_promised_place_that_is_no_longer_recorded_is_left_free() -> None:
    """Two pods may be anywhere after the restart, and the next one would take what one of them needs."""
    assert Restarting(406547, foretelling=True).tell(40)["placed"] > 3


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_thousands_of_restarts(part: int) -> None:
    seeds = range(10_000 * (part + 1), 10_000 * (part + 1) + 300)
    assert restarted(seeds, foretelling=True)["restarts"] > 400
    assert ended(seeds, foretelling=True) == []
