"""What happens to real kubelets, API servers and agents: the report is right again by itself, and wrong at no time."""

from __future__ import annotations

import signal

from numalign.api.nrt import normalise
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.kube.resources import NODES, TOPOLOGIES
from numalign.lab.processes import Part
from tests.lab import agents, books, metrics
from tests.lab import live as lives
from tests.lab import test_devices as devices
from tests.lab.fleet import GPU, OFFERING
from tests.lab.fleet import TOLD as NODE
from tests.lab.live import Live
from tests.lab.test_agent import free, held, told, until_told

UNANSWERED = "numalign_agent_podresources_errors_total"
IN_ZONES = tuple({f"gpu-{number}" for number in range(first, first + 4)} for first in (0, 4))


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


def test_a_socket_that_is_replaced_during_a_call_frees_nothing(single: Live, hasty: Part) -> None:
    kubelet = single.node(NODE).kubelet
    place(single, "kept", 5)
    before = until_told(single, 1)
    with agents.seen(single, NODE) as versions:
        for _ in range(3):
            kubelet.pause()
            until_looking(single, hasty)
            kubelet.restart(signal.SIGKILL)
        place(single, "after", 2)
        after = until_told(single, 2)
    assert sum(metrics.told_by(hasty, UNANSWERED).values()) > 0
    assert {free(version) for version in versions} == {free(before), free(after)}
    assert held(after) == books.cpus(single.node(NODE))


def until_looking(live: Live, agent: Part) -> None:
    """One more look has begun; where the kubelet does not answer, that is as far as it comes."""
    before = sum(metrics.told_by(agent, agents.LOOKS).values())

    async def begun() -> bool:
        return sum(metrics.told_by(agent, agents.LOOKS).values()) > before

    live.awaited(begun, "the agent does not look")


def test_devices_that_fall_sick_and_recover_are_followed_and_those_that_a_pod_has_are_never_free(single: Live) -> None:
    node = single.node(OFFERING)
    devices.until_healthy(single, GPU, 8)
    with agents.instead(single, OFFERING):
        assert devices.settled(single, "train", gpu="2").status.phase == "Running"
        held = {identity for entry in devices.listed(single)["train"].containers[0].devices for identity in entry.ids}
        until_offered(single, set(), held)
        mine, other = min(held), min(IN_ZONES[0] | IN_ZONES[1], key=lambda identity: (identity in held, identity))
        with agents.seen(single, OFFERING) as versions:
            for sick in ({other}, set[str](), {mine}, set[str](), {mine, other}, set[str]()):
                devices.offer(node, sick)
                until_offered(single, sick, held)
    most = [len(zone - held) for zone in IN_ZONES]
    assert len(versions) >= 6
    assert all(free <= top for version in versions for (_, free), top in zip(gpus(version), most, strict=True))


def until_offered(live: Live, sick: set[str], held: set[str]) -> None:
    """Of GPUs, zone by zone: the healthy ones can be allocated, and those that no pod has are free."""
    wanted = tuple((len(zone - sick), len(zone - sick - held)) for zone in IN_ZONES)

    async def is_told() -> bool:
        return gpus(normalise.normalise(await live.client.get(TOPOLOGIES.at(OFFERING)))) == wanted

    live.awaited(is_told, f"the report does not have GPUs as {wanted}")


def gpus(topology: NodeTopology) -> tuple[tuple[int, int], ...]:
    """Zone by zone, those that can be allocated and those that are free."""
    found = (zone.resources[GPU] for zone in topology.zones)
    return tuple((each.allocatable, each.available) for each in found)
