"""What happens to real kubelets, API servers and agents: the report is right again by itself, and wrong at no time."""

from __future__ import annotations

import signal

from numalign.kube.resources import NODES
from tests.lab import books
from tests.lab import live as lives
from tests.lab.fleet import TOLD as NODE
from tests.lab.live import Live
from tests.lab.test_agent import free, held, told, until_told


def place(live: Live, name: str, cpus: int) -> None:
    live.create(lives.guaranteed(name, cpus, nodeName=NODE))
    live.settled(name)


def test_an_agent_that_was_killed_tells_what_happened_meanwhile(single: Live) -> None:
    agent = single.node(NODE).parts["agent"]
    place(single, "before", 3)
    until_told(single, 1)
    agent.stop(signal.SIGKILL)
    place(single, "meanwhile", 2)
    assert len(held(told(single))) == 1
    agent.start()
    assert held(until_told(single, 2)) == books.cpus(single.node(NODE))


def test_a_server_that_was_away_is_told_of_what_it_missed(single: Live) -> None:
    server = single.lab.parts["kube-apiserver"]
    place(single, "before", 3)
    before = until_told(single, 1)
    server.restart(signal.SIGKILL)
    single.awaited(lambda: _reached(single), "the server is not back")
    assert free(told(single)) == free(before)
    place(single, "after", 2)
    assert held(until_told(single, 2)) == books.cpus(single.node(NODE))


async def _reached(live: Live) -> bool:
    return bool(await live.client.every(NODES.everywhere()))


def test_a_torn_checkpoint_frees_nothing_and_the_next_whole_one_counts(single: Live) -> None:
    place(single, "before", 3)
    before = until_told(single, 1)
    state = single.node(NODE).cpu_state
    state.write_bytes(state.read_bytes()[:40])
    seen = {free(told(single)) for _ in range(50)}
    place(single, "after", 2)
    assert seen == {free(before)}
    assert held(until_told(single, 2)) == books.cpus(single.node(NODE))


def test_a_kubelet_that_was_killed_and_stayed_away_frees_nothing(single: Live) -> None:
    kubelet = single.node(NODE).kubelet
    place(single, "kept", 5)
    before = until_told(single, 1)
    kubelet.stop(signal.SIGKILL)
    seen = {free(told(single)) for _ in range(50)}
    kubelet.start()
    seen |= {free(told(single)) for _ in range(100)}
    place(single, "after", 2)
    assert seen == {free(before)}
    assert held(until_told(single, 2)) == books.cpus(single.node(NODE))
