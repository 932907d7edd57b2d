"""Cached placements equal those that are computed again."""

from __future__ import annotations

from msgspec import structs

from numalign.agent.inventory import inventory
from numalign.agent.inventory.inventory import PlacementCache
from numalign.kubelet import admission
from numalign.kubelet.report import report
from tests.campaigns import holds_for
from tests.strategies.lives import Life
from tests.strategies.reports import reported_lives
from tests.unit.agent import kubelet_looks as looks


@holds_for(reported_lives(), examples=30)
def test_a_look_that_remembers_the_last_one_finds_what_one_without_memory_finds(life: Life) -> None:
    placing = PlacementCache()
    for moment in life.moments():
        kubelet, state = life.kubelet, moment.state
        look, machine = looks.at(kubelet, state), structs.replace(kubelet.machine, devices={})
        remembering = inventory.of(look, machine, looks.told(state), placing)
        assert remembering.report("n") == inventory.of(look, machine, looks.told(state)).report("n")


@holds_for(reported_lives(), examples=10)
def test_what_did_not_change_is_not_worked_out_again(life: Life) -> None:
    placing, state = PlacementCache(), admission.collect(life.kubelet, life.end)
    kubelet = placing.started(life.kubelet.machine, life.kubelet.settings)
    first, second = placing.pods(kubelet, state), placing.pods(kubelet, state)
    assert all(one is other for one, other in zip(first.every, second.every, strict=True))
    assert report.of_collected("n", kubelet, state, second) == report.of("n", kubelet, state)
