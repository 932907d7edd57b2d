"""What happens to real kubelets, API servers and agents: the report is right again by itself, and wrong at no time."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from numalign.kube.resources import NODES
from numalign.kubelet import presets
from numalign.lab import spec
from numalign.lab.spec import LabSpec
from tests.lab import books
from tests.lab import live as lives
from tests.lab.live import Live
from tests.lab.test_agent import NODE, free, held, told, until_told


@pytest.fixture(scope="module")
def telling(able: None) -> Iterator[Live]:
    one = spec.node(NODE, presets.machine("2x16"))
    with Live.up(LabSpec(name=f"faults-{os.getpid()}", nodes=(one,), controllers=False, agent=True)) as found:
        yield found


@pytest.fixture
def cluster(telling: Live) -> Iterator[Live]:
    yield telling
    telling.clear()


def place(live: Live, name: str, cpus: int) -> None:
    live.create(lives.guaranteed(name, cpus, nodeName=NODE))
    live.settled(name)


def test_an_agent_that_was_killed_tells_what_happened_meanwhile(cluster: Live) -> None:
    agent = cluster.node(NODE).parts["agent"]
    place(cluster, "before", 3)
    until_told(cluster, 1)
    agent.stop(signal.SIGKILL)
    place(cluster, "meanwhile", 2)
    assert len(held(told(cluster))) == 1
    agent.start()
    assert held(until_told(cluster, 2)) == books.cpus(cluster.node(NODE))


def test_a_server_that_was_away_is_told_of_what_it_missed(cluster: Live) -> None:
    server = cluster.lab.parts["kube-apiserver"]
    place(cluster, "before", 3)
    before = until_told(cluster, 1)
    server.restart(signal.SIGKILL)
    cluster.awaited(lambda: _reached(cluster), "the server is not back")
    assert free(told(cluster)) == free(before)
    place(cluster, "after", 2)
    assert held(until_told(cluster, 2)) == books.cpus(cluster.node(NODE))


async def _reached(live: Live) -> bool:
    return bool(await live.client.every(NODES.everywhere()))


def test_a_torn_checkpoint_frees_nothing_and_the_next_whole_one_counts(cluster: Live) -> None:
    place(cluster, "before", 3)
    before = until_told(cluster, 1)
    state = cluster.node(NODE).cpu_state
    state.write_bytes(state.read_bytes()[:40])
    seen = {free(told(cluster)) for _ in range(50)}
    place(cluster, "after", 2)
    assert seen == {free(before)}
    assert held(until_told(cluster, 2)) == books.cpus(cluster.node(NODE))


def test_a_kubelet_that_was_killed_and_stayed_away_frees_nothing(cluster: Live) -> None:
    kubelet = cluster.node(NODE).kubelet
    place(cluster, "kept", 5)
    before = until_told(cluster, 1)
    kubelet.stop(signal.SIGKILL)
    seen = {free(told(cluster)) for _ in range(50)}
    kubelet.start()
    seen |= {free(told(cluster)) for _ in range(100)}
    place(cluster, "after", 2)
    assert seen == {free(before)}
    assert held(until_told(cluster, 2)) == books.cpus(cluster.node(NODE))
