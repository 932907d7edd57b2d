"""How the extender's server meets kube-scheduler, which uses a connection for each Binding that is under way."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from numalign.kube.clock import SystemClock
from numalign.process.http import listen
from numalign.process.http.connection import Served
from numalign.scheduler.extender.extender import Extender
from numalign.scheduler.extender.protocol import BindingAnswer, BindingArgs, ExtenderArgs, FilterResult
from numalign.scheduler.http import extenderserver
from numalign.scheduler.http.extenderserver import BIND, CHOOSE, ExtenderServer
from numalign.scheduler.metrics import Metrics

BINDINGS = 300
BINDING = b'{"PodName":"p","PodNamespace":"d","PodUID":"u","Node":"n"}'
QUESTION = b'{"Pod":{},"NodeNames":["n"]}'


class Slow:
    """An extender whose Bindings all wait for the API server."""

    def __init__(self) -> None:
        self.waiting = 0
        self.all_wait, self.answered = asyncio.Event(), asyncio.Event()

    async def bind(self, _: BindingArgs) -> BindingAnswer:
        self.waiting += 1
        if self.waiting == BINDINGS:
            self.all_wait.set()
        await self.answered.wait()
        return BindingAnswer()

    def choose(self, asked: ExtenderArgs) -> FilterResult:
        return FilterResult(node_names=asked.names)


class Client:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    def send(self, path: str, body: bytes) -> None:
        self._writer.write(f"POST {path} HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)

    async def status(self) -> str:
        head = await self._reader.readuntil(b"\r\n\r\n")
        size = int(head.lower().partition(b"content-length:")[2].split()[0])
        await self._reader.readexactly(size)
        return head.split()[1].decode()

    def close(self) -> None:
        self._writer.close()


async def story() -> tuple[list[str], set[str]]:
    """The answers to questions while all Bindings wait, over an old connection and a new one; those of the Bindings."""
    extender, unused = Slow(), cast(Any, None)
    server = ExtenderServer(cast(Extender, extender), Metrics(), SystemClock(), unused, is_synced=lambda: True)
    async with listen.listening(Served(server, extenderserver.LIMITS), ("127.0.0.1", 0)) as port:

        async def connected() -> Client:
            return Client(*await asyncio.open_connection("127.0.0.1", port))

        old = await connected()
        old.send(CHOOSE, QUESTION)
        await old.status()
        binding = [await connected() for _ in range(BINDINGS)]
        for each in binding:
            each.send(BIND, BINDING)
        await extender.all_wait.wait()
        asking, found = (old, await connected()), []
        for each in asking:
            each.send(CHOOSE, QUESTION)
            found.append(await each.status())
        extender.answered.set()
        bound = {await each.status() for each in binding}
        for each in (*asking, *binding):
            each.close()
    return found, bound


def test_questions_are_answered_and_no_connection_is_lost_while_hundreds_of_bindings_wait() -> None:
    assert asyncio.run(asyncio.wait_for(story(), 120)) == (["200", "200"], {"200"})
