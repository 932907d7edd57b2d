"""Two API servers that are asked the same: the embedded one and a real one, and what may differ between their answers.

`Side` is one of them over HTTP, with calls and watches; `Twins.call` asks both and holds the answers together: code,
reason, message and object. Left out of the comparison is what every server makes up for itself: uids, versions,
times, who manages which field."""

from __future__ import annotations

import asyncio
import http.client
import json
import random
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import urlencode

from numalign.simulator import clock, cluster
from numalign.simulator.apiserver import admission
from numalign.simulator.apiserver.http import server
from numalign.simulator.apiserver.http.server import Address
from numalign.simulator.apiserver.storage.resources import CUSTOMRESOURCEDEFINITIONS
from numalign.simulator.apiserver.verbs.api import Api
from tests.embedded import definitions
from tests.unit.simulator.apiserver.overhttp import connected

Tree = dict[str, Any]
JSON = "application/json"
LEFT_OUT = {"managedFields", "selfLink"}
# Of these only the presence counts.
DIFFERING = {"uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "lastTransitionTime", "time"}
CHANGING = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b[0-9]+\b")
# Fields that say nothing: one server writes them, the other does not.
NOTHING: tuple[tuple[str, Any], ...] = (("taints", []), ("continue", ""), ("unschedulable", False))
# Put on new nodes by a plugin that the embedded server leaves out.
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


class Said(NamedTuple):
    code: int
    tree: Tree

    @property
    def version(self) -> str:
        """That was written, where there is one."""
        found: str = self.tree.get("metadata", {}).get("resourceVersion", "") if self.code < 300 else ""
        return found


class Seen(NamedTuple):
    kind: str
    tree: Tree

    @property
    def name(self) -> str:
        return str(self.tree["metadata"]["name"])

    @property
    def version(self) -> str:
        return str(self.tree["metadata"]["resourceVersion"])

    def alike(self) -> tuple[str, Any]:
        return self.kind, steady(self.tree)


class Side:
    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._token = token
        self._connection = connected(url)

    def call(self, verb: str, path: str, body: Any = None, media: str = JSON) -> Said:
        self._connection.request(verb, path, None if body is None else json.dumps(body), self._headers(media))
        answer = self._connection.getresponse()
        return Said(answer.status, json.loads(answer.read()))

    def watch(self, path: str, query: dict[str, str]) -> Watcher:
        connection = connected(self._url)
        connection.request("GET", f"{path}?{urlencode({'watch': '1', **query})}", headers=self._headers(JSON))
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        return Watcher(connection, answer)

    def close(self) -> None:
        self._connection.close()

    def _headers(self, media: str) -> dict[str, str]:
        login = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        return {**login, "Content-Type": media, "Accept": JSON}


@dataclass
class Watcher:
    """Read only at the end, up to an event that everybody sees: nothing is waited for, and nothing may be left over."""

    connection: http.client.HTTPConnection
    answer: http.client.HTTPResponse
    events: list[Seen] = field(default_factory=list)

    def until(self, name: str) -> list[Seen]:
        while not (self.events and self.events[-1].name == name):
            line = self.answer.readline()
            assert line, f"the watch ended before {name}, after {len(self.events)} events"
            event = json.loads(line)
            self.events.append(Seen(event["type"], event["object"]))
        return self.events

    def close(self) -> None:
        self.answer.close()
        self.connection.close()


@dataclass
class Twins:
    ours: Side
    theirs: Side
    disagreed: bool = False

    def __iter__(self) -> Iterator[Side]:
        return iter((self.ours, self.theirs))

    def call(self, verb: str, path: str, bodies: Any = None, media: str = JSON) -> tuple[Said, Said]:
        """`bodies`: one for both, or a pair where each is about what its server said before."""
        one, other = bodies if isinstance(bodies, tuple) else (bodies, bodies)
        answers = self.ours.call(verb, path, one, media), self.theirs.call(verb, path, other, media)
        mine, real = (alike(answer) for answer in answers)
        self.disagreed = self.disagreed or mine != real
        assert mine == real, f"{verb} {path} {one}:\n ours   {mine}\n theirs {real}"
        return answers


def alike(said: Said) -> Any:
    """As much of an answer as has to be the same."""
    if said.tree.get("kind") == "Status":
        # What follows the first line of a message shows two pods as Go sees them.
        message = CHANGING.sub("...", said.tree.get("message", "").partition("\n")[0])
        return said.code, said.tree.get("reason", ""), message
    return said.code, steady(said.tree)


def steady(thing: Any) -> Any:
    if isinstance(thing, list):
        return [steady(each) for each in thing if each != NOT_READY]
    if not isinstance(thing, dict):
        return thing
    # Times that nobody set are null in the one and absent in the other.
    kept = {name: each for name, each in thing.items() if name not in LEFT_OUT and each is not None}
    shown = {name: "..." if name in DIFFERING else steady(each) for name, each in kept.items()}
    return {name: each for name, each in shown.items() if (name, each) not in NOTHING}


@contextmanager
def embedded() -> Iterator[Address]:
    """Our server with admission and the definitions of the tests, and nobody else at work, in a thread of its own."""
    loop, ready, stop = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    found: list[Address] = []

    async def main() -> None:
        chance = random.Random(1)
        api = Api(clock.real(chance), chance, admission=admission)
        for resource, tree in cluster.first_objects():
            if resource != CUSTOMRESOURCEDEFINITIONS:
                api.create(resource, tree)
        api.create(CUSTOMRESOURCEDEFINITIONS, definitions.REPORTS)
        async with server.serve(api) as address:
            found.append(address)
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(main(),))
    thread.start()
    assert ready.wait(20)
    try:
        yield found[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()
