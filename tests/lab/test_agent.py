"""Our agent beside a real kubelet: what the cluster is told is what the kubelet wrote down."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from numalign.api import nrt
from numalign.api.nodetopology import NodeTopology
from numalign.kube import errors
from numalign.kube.resources import TOPOLOGIES
from numalign.kubelet import presets, report
from numalign.lab import spec
from numalign.lab.spec import LabSpec
from tests.lab import books
from tests.lab import live as lives
from tests.lab.live import Live

NODE = "told"


@pytest.fixture(scope="module")
def telling(able: None) -> Iterator[Live]:
    one = spec.node(NODE, presets.machine("2x16"))
    with Live.up(LabSpec(name=f"agent-{os.getpid()}", nodes=(one,), controllers=False, agent=True)) as found:
        yield found


@pytest.fixture
def cluster(telling: Live) -> Iterator[Live]:
    yield telling
    telling.clear()


def told(live: Live) -> NodeTopology:
    return nrt.normalise(live.run(live.client.get(TOPOLOGIES.at(NODE))))


def held(topology: NodeTopology) -> dict[tuple[str, str], int]:
    placements = topology.facts.placements or ()
    return {(pod.uid, each.container): each.cpus for pod in placements for each in pod.holdings if each.cpus}


def until_told(live: Live, count: int) -> NodeTopology:
    async def found() -> NodeTopology | None:
        topology = nrt.normalise(await live.client.get(TOPOLOGIES.at(NODE)))
        return topology if len(held(topology)) == count else None

    return live.awaited(found, f"the report does not tell of {count} containers")


def test_an_empty_node_is_told_as_the_model_tells_it(cluster: Live) -> None:
    modelled = cluster.node(NODE).spec.modelled
    assert until_told(cluster, 0) == report.of(NODE, modelled, modelled.initial())


def test_pods_hold_in_the_report_what_they_hold_in_the_kubelets_books(cluster: Live) -> None:
    for number in range(2):
        cluster.create(lives.guaranteed(f"web-{number}", 3, nodeName=NODE))
        cluster.settled(f"web-{number}")
    assert held(until_told(cluster, 2)) == books.cpus(cluster.node(NODE))
    cluster.clear()
    until_told(cluster, 0)


def test_while_a_kubelet_starts_again_nothing_that_pods_hold_is_called_free(cluster: Live) -> None:
    cluster.create(lives.guaranteed("kept", 5, nodeName=NODE))
    cluster.settled("kept")
    before = until_told(cluster, 1)
    cluster.node(NODE).kubelet.restart()
    seen = [free(told(cluster)) for _ in range(100)]
    cluster.create(lives.guaranteed("after", 2, nodeName=NODE))
    cluster.settled("after")
    assert set(seen) == {free(before)}
    assert len(held(until_told(cluster, 2))) == 2


def free(topology: NodeTopology) -> tuple[int, ...]:
    return tuple(zone.resources["cpu"].available for zone in topology.zones)


def test_a_report_that_somebody_deleted_comes_back_with_the_next_change(cluster: Live) -> None:
    cluster.run(cluster.client.delete(TOPOLOGIES.at(NODE)))
    with pytest.raises(errors.NotFound):
        told(cluster)
    cluster.create(lives.guaranteed("web", 1, nodeName=NODE))
    cluster.settled("web")

    async def back() -> bool:
        try:
            return bool(await cluster.client.get(TOPOLOGIES.at(NODE)))
        except errors.NotFound:
            return False

    assert cluster.awaited(back, "no report")
