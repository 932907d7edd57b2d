"""Steps performed while the API server may be away, and programs that come back."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from numalign.kube import errors
from numalign.kube.client import Client
from numalign.kube.resources import Status
from numalign.lab.campaign.actions import Actions
from numalign.lab.campaign.history import History
from numalign.lab.campaign.script import Create, Delete, Fault
from numalign.lab.campaign.watch import Observer
from numalign.lab.lab import Lab

AWAY = errors.Unreachable("get", "pods", "away")


class Server:
    """Answers with what is next; an error is raised."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def __getattr__(self, verb: str) -> Any:
        async def call(*_: object) -> object:
            self.asked.append(verb)
            answer = self.answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return call


class Program:
    """A part of a lab that only notes what is done to it."""

    def __init__(self, title: str) -> None:
        self.program = SimpleNamespace(title=title, log=Path("log"))
        self.done: list[str] = []

    def stop(self, how: signal.Signals) -> None:
        self.done.append(how.name)

    def __getattr__(self, deed: str) -> Any:
        return lambda: self.done.append(deed)


def acting(server: Server, *parts: Program) -> tuple[Actions, History]:
    history = History()

    async def relisted() -> None:
        history.write("level")

    watching = SimpleNamespace(history=history, relisted=relisted)
    lab = SimpleNamespace(every_part=lambda: iter(parts))
    return Actions(cast(Lab, lab), cast(Client, server), cast(Observer, watching)), history


MADE = SimpleNamespace(metadata=SimpleNamespace(uid="u-1"))


def test_a_pod_is_made_once_the_server_is_back() -> None:
    server = Server(AWAY, MADE, MADE)
    actor, _ = acting(server)
    asyncio.run(actor.perform(Create(0.0, "a", {})))
    assert server.asked == ["create", "create", "get"]
    assert actor.uids == {"a": "u-1"}


def test_requests_wait_for_the_server_beside_the_next_steps_and_those_of_one_pod_in_turn() -> None:
    server = Server(AWAY, MADE, MADE, MADE, [])
    actor, history = acting(server)

    async def requests() -> None:
        actor.begin_request(Create(0.0, "a", {}))
        actor.begin_request(Delete(0.0, "a", False))
        assert server.asked == []
        await actor.all_back()

    asyncio.run(requests())
    assert server.asked == ["create", "create", "get", "delete", "every"]
    assert [line.uid for line in history.lines] == ["u-1"]


def test_who_asked_for_a_deletion_is_written_down_even_if_the_pod_is_gone() -> None:
    actor, history = acting(Server(errors.NotFound("delete", "pods", 404, Status())))
    actor.uids["a"] = "u-1"
    asyncio.run(actor.perform(Delete(0.0, "a", True)))
    assert [(line.what, line.uid) for line in history.lines] == [("deletion-requested", "u-1")]


def test_what_is_killed_is_started_again_and_what_hangs_goes_on() -> None:
    kubelet, agent = Program("n/kubelet"), Program("n/agent")
    actor, history = acting(Server([]), kubelet, agent)

    async def faults() -> None:
        actor.take_away(Fault(0.0, "n/kubelet", "kill", 0.0))
        actor.take_away(Fault(0.0, "n/agent", "hang", 0.0))
        await actor.all_back()

    asyncio.run(faults())
    assert (kubelet.done, agent.done) == (["SIGKILL", "start"], ["pause", "resume"])
    assert sorted(line.what for line in history.lines) == ["down", "down", "up", "up"]


def test_what_is_away_already_is_left_in_peace() -> None:
    kubelet = Program("n/kubelet")
    actor, _ = acting(Server([]), kubelet)

    async def faults() -> None:
        actor.take_away(Fault(0.0, "n/kubelet", "kill", 0.0))
        actor.take_away(Fault(0.0, "n/kubelet", "end", 0.0))
        await actor.all_back()

    asyncio.run(faults())
    assert kubelet.done == ["SIGKILL", "start"]


def test_what_is_away_when_the_campaign_ends_does_not_come_back() -> None:
    kubelet = Program("n/kubelet")
    actor, _ = acting(Server([]), kubelet)

    async def faults() -> None:
        actor.take_away(Fault(0.0, "n/kubelet", "kill", 0.01))
        while not kubelet.done:
            await asyncio.sleep(0)
        actor.let_go()
        await asyncio.sleep(0.05)

    asyncio.run(faults())
    assert kubelet.done == ["SIGKILL"]


def test_a_server_is_back_once_it_answers_and_everything_is_looked_at_again() -> None:
    server, part = Server(AWAY, [], []), Program("kube-apiserver")
    actor, history = acting(server, part)

    async def faults() -> None:
        actor.take_away(Fault(0.0, "kube-apiserver", "end", 0.0))
        await actor.all_back()

    asyncio.run(faults())
    assert part.done == ["SIGTERM", "start"]
    assert [line.what for line in history.lines] == ["down", "up", "level"]
