"""What tests of the client under faults share: a server with traffic, and ears that judge what a handler is told.

`Traffic` writes to the API by chance and remembers every state that ever was. `Ears` is an informer's handler that
accepts only a sequence that can be true: each object added, updated and deleted in turn, never back in time, never
twice, and never in a state that the server did not have."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from numalign.api.objects.pod import Pod
from numalign.kube.request import Selection
from numalign.kube.transport import auth
from numalign.kube.transport.auth import Access, Identity, Login
from numalign.kube.transport.dial import Dial, Server
from numalign.kube.watch.store import Change
from numalign.process.http.connection import Connection
from numalign.simulator import pipes
from numalign.simulator.apiserver.http import application
from numalign.simulator.apiserver.http.routes import Router
from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import NAMESPACES, PODS
from numalign.simulator.apiserver.verbs import api as door
from numalign.simulator.apiserver.verbs.api import Api, Patch
from numalign.simulator.clock import Clock

HERE = Server("embedded", 80, secure=False)
NAMES = tuple(f"pod-{number}" for number in range(8))
PLACES = ("default", "other")
APPS = ("red", "blue")
NODES = ("node-1", "node-2")

Key = tuple[str, str]


def served(clock: Clock, chance: Random, watch_cache_size: int) -> Api:
    api = Api(clock, chance, watch_cache_size=watch_cache_size)
    furnish(api)
    return api


def furnish(api: Api) -> None:
    there = {tree["metadata"]["name"] for tree in api.list(NAMESPACES).items}
    for place in sorted({*PLACES} - there):
        api.create(NAMESPACES, {"metadata": {"name": place}})


def inside(api: Api) -> Dial:
    """Connections to the server without a socket."""
    served = application.served(Router(api.state))
    return pipes.dial(lambda: lambda: Connection(served))


def access(server: Server, dial: Dial, clock: Clock) -> Access:
    return Access(server, Login(auth.unchanging(Identity()), clock), dial=dial)


@contextmanager
def ended(*works: Coroutine[Any, Any, None]) -> Iterator[None]:
    """They run beside the block and end with it."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()


def pod(place: str, name: str, app: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": place, "labels": {"app": app}}
    return {"metadata": metadata, "spec": {"containers": [{"name": "main", "image": "web"}]}}


class Traffic:
    """Writes until it is cancelled; bursts and quiet times take turns."""

    def __init__(self, api: Api, chance: Random) -> None:
        self.states: dict[tuple[str, str], tuple[str, str]] = {}
        """Node and app by uid and version, of every state there ever was."""
        self._api = api
        self._chance = chance
        api.subscribe(PODS, self._note)

    async def run(self, pause: float) -> None:
        while True:
            for _ in range(self._chance.randrange(1, 12)):
                self.write()
            await asyncio.sleep(self._chance.expovariate(1 / pause))

    def write(self) -> None:
        chance = self._chance
        what = chance.choice((self._create, self._create, self._label, self._bind, self._delete, self._make_again))
        try:
            what(chance.choice(PLACES), chance.choice(NAMES))
        except StatusError as refused:
            if refused.code not in (404, 409):
                raise

    def there(self, selection: Selection) -> dict[Key, str]:
        found = self._api.list(PODS, labels=selection.labels, fields=selection.fields).items
        metas = [tree["metadata"] for tree in found]
        return {(meta["namespace"], meta["name"]): meta["resourceVersion"] for meta in metas}

    def _create(self, place: str, name: str) -> None:
        self._api.create(PODS, pod(place, name, self._chance.choice(APPS)))

    def _label(self, place: str, name: str) -> None:
        body = {"metadata": {"labels": {"app": self._chance.choice(APPS)}}}
        self._api.patch(PODS, name, place, Patch("merge", body))

    def _bind(self, place: str, name: str) -> None:
        self._api.bind(name, place, self._chance.choice(NODES))

    def _delete(self, place: str, name: str) -> None:
        self._api.delete(PODS, name, place, grace=0)

    def _make_again(self, place: str, name: str) -> None:
        self._delete(place, name)
        self._create(place, name)

    def _note(self, change: door.Change) -> None:
        meta = change.tree["metadata"]
        state = change.tree["spec"].get("nodeName", ""), meta["labels"]["app"]
        self.states[meta["uid"], meta["resourceVersion"]] = state


@dataclass
class Ears:
    states: dict[tuple[str, str], tuple[str, str]]
    known: dict[Key, Pod] = field(default_factory=dict)
    latest: dict[Key, int] = field(default_factory=dict)
    """The newest version that was ever told of a name."""
    told: int = 0

    def __call__(self, change: Change[Pod]) -> None:
        self.told += 1
        thing = change.new or change.old
        assert thing is not None
        key = (thing.metadata.namespace, thing.metadata.name)
        assert self.known.pop(key, None) is change.old, f"{key} was told in another state before"
        if change.new is not None:
            self._hear(key, change.old, change.new)

    def _hear(self, key: Key, old: Pod | None, new: Pod) -> None:
        meta = new.metadata
        assert old is None or old.metadata.uid == meta.uid, f"{key} is another one, and told as the same"
        assert int(meta.resource_version) > self.latest.get(key, 0), f"{key} was told before, or is told back in time"
        state = new.spec.node_name, meta.labels["app"]
        assert self.states[meta.uid, meta.resource_version] == state, f"{key} never was {state}"
        self.known[key] = new
        self.latest[key] = int(meta.resource_version)

    def versions(self) -> dict[Key, str]:
        return {key: each.metadata.resource_version for key, each in self.known.items()}
