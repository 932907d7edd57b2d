"""Our agent beside a real kubelet: what the cluster is told is what the kubelet wrote down."""

from __future__ import annotations

import pytest

from numalign.api.nrt import normalise
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.kube import errors
from numalign.kube.resources import TOPOLOGIES
from numalign.kubelet.report import report
from tests.lab import books
from tests.lab import live as lives
from tests.lab.fleet import TOLD as NODE
from tests.lab.live import Live


def told(live: Live) -> NodeTopology:
    return normalise.normalise(live.run(live.client.get(TOPOLOGIES.at(NODE))))


def held(topology: NodeTopology) -> dict[tuple[str, str], int]:
    placements = topology.facts.placements or ()
    return {(pod.uid, each.container): each.cpus for pod in placements for each in pod.holdings if each.cpus}


def until_told(live: Live, count: int) -> NodeTopology:
    async def found() -> NodeTopology | None:
        topology = normalise.normalise(await live.client.get(TOPOLOGIES.at(NODE)))
        return topology if len(held(topology)) == count else None

    return live.awaited(found, f"the report does not tell of {count} containers")


def test_an_empty_node_is_told_as_the_model_tells_it(single: Live) -> None:
    modelled = single.node(NODE).spec.modelled
    assert until_told(single, 0) == report.of(NODE, modelled, modelled.initial())


def test_pods_hold_in_the_report_what_they_hold_in_the_kubelets_books(single: Live) -> None:
    for number in range(2):
        single.create(lives.guaranteed(f"web-{number}", 3, nodeName=NODE))
        single.settled(f"web-{number}")
    assert held(until_told(single, 2)) == books.cpus(single.node(NODE))
    single.clear()
    until_told(single, 0)


def test_while_a_kubelet_starts_again_nothing_that_pods_hold_is_called_free(single: Live) -> None:
    single.create(lives.guaranteed("kept", 5, nodeName=NODE))
    single.settled("kept")
    before = until_told(single, 1)
    single.node(NODE).kubelet.restart()
    seen = [free(told(single)) for _ in range(100)]
    single.create(lives.guaranteed("after", 2, nodeName=NODE))
    single.settled("after")
    assert set(seen) == {free(before)}
    assert len(held(until_told(single, 2))) == 2


def free(topology: NodeTopology) -> tuple[int, ...]:
    return tuple(zone.resources["cpu"].available for zone in topology.zones)


def test_a_report_that_somebody_deleted_comes_back_with_the_next_change(single: Live) -> None:
    single.run(single.client.delete(TOPOLOGIES.at(NODE)))
    with pytest.raises(errors.NotFound):
        told(single)
    single.create(lives.guaranteed("web", 1, nodeName=NODE))
    single.settled("web")

    async def back() -> bool:
        try:
            return bool(await single.client.get(TOPOLOGIES.at(NODE)))
        except errors.NotFound:
            return False

    assert single.awaited(back, "no report")
