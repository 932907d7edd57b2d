"""The least client that there can be: prepared requests over kept connections, and streams whose lines are counted.

The limit that a scheduler is held against is made of this, and so is everything that fills and empties a server. It
checks that answers are successes, and reads nothing else of them unless it is asked to."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import httptools
import msgspec

HOST = "127.0.0.1"
AT_ONCE = 64


class Endpoint(msgspec.Struct, frozen=True):
    port: int
    authority: str
    """File of the certificate that the server is trusted by."""
    token: str = ""

    def context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.authority)

    def request(self, verb: str, path: str, body: object = None, media: str = "application/json") -> bytes:
        data = body if isinstance(body, bytes) else b"" if body is None else msgspec.json.encode(body)
        login = f"Authorization: Bearer {self.token}\r\n" if self.token else ""
        head = f"{verb} {path} HTTP/1.1\r\nHost: {HOST}:{self.port}\r\n{login}Accept: application/json\r\n"
        kind = f"Content-Type: {media}\r\n" if data else ""
        return f"{head}{kind}Content-Length: {len(data)}\r\n\r\n".encode() + data

    @property
    def url(self) -> str:
        return f"https://{HOST}:{self.port}"


class Refused(Exception):
    """An answer that is no success."""


class Caller(asyncio.Protocol):
    """One request at a time, the next one as soon as the answer is there."""

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._body: list[bytes] = []
        self._answered: asyncio.Future[bytes] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answered is not None and not self._answered.done():
            self._answered.set_exception(Refused(f"the connection was closed: {exc}"))

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        body, self._body = b"".join(self._body), []
        status = self._parser.get_status_code()
        assert self._answered is not None
        if status < 300:
            self._answered.set_result(body)
        else:
            self._answered.set_exception(Refused(f"{status}: {body[:500].decode()}"))

    def sent(self, request: bytes) -> asyncio.Future[bytes]:
        self._answered = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return self._answered


class Stream(asyncio.Protocol):
    """A watch; `take` gets every line, or nobody does and they are only counted."""

    def __init__(self, take: Callable[[bytes], None] | None) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._take = take
        self._begun = b""
        self.lines = 0
        self.over = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()

    def on_headers_complete(self) -> None:
        assert self._parser.get_status_code() == 200, self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        self.lines += body.count(b"\n")
        if self._take is None:
            return
        *whole, self._begun = (self._begun + body).split(b"\n")
        for line in whole:
            self._take(line)

    def on_message_complete(self) -> None:
        self._end()

    def _end(self) -> None:
        if not self.over.done():
            self.over.set_result(None)


class Follower:
    """Keeps a watch open: a server that is short of time ends those that it finds too slow."""

    def __init__(self, endpoint: Endpoint, path: str, take: Callable[[bytes], None] | None) -> None:
        self._endpoint, self._path, self._take = endpoint, path, take
        self._streams: list[Stream] = []

    @property
    def lines(self) -> int:
        return sum(stream.lines for stream in self._streams)

    async def run(self) -> None:
        context = self._endpoint.context()
        while True:
            stream: Stream = await connected(self._endpoint, lambda: Stream(self._take), context)
            self._streams.append(stream)
            try:
                stream.transport.write(self._endpoint.request("GET", self._path))
                await stream.over
            finally:
                stream.transport.abort()


async def connected(endpoint: Endpoint, kind: Callable[[], Any], context: ssl.SSLContext) -> Any:
    return (await asyncio.get_running_loop().create_connection(kind, HOST, endpoint.port, ssl=context))[1]


@asynccontextmanager
async def following(
    endpoint: Endpoint, paths: Iterable[str], take: Callable[[bytes], None] | None = None
) -> AsyncIterator[list[Follower]]:
    followers = [Follower(endpoint, path, take) for path in paths]
    running = [asyncio.create_task(each.run()) for each in followers]
    try:
        yield followers
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def one(endpoint: Endpoint, request: bytes) -> bytes:
    """Its answer."""
    caller: Caller = await connected(endpoint, Caller, endpoint.context())
    try:
        return await caller.sent(request)
    finally:
        caller.transport.abort()


async def every(endpoint: Endpoint, tasks: Iterable[tuple[bytes, ...]], at_once: int = AT_ONCE) -> None:
    """A task's requests go one after the other, tasks side by side."""
    context, waiting = endpoint.context(), iter(tasks)
    callers: list[Caller] = [await connected(endpoint, Caller, context) for _ in range(at_once)]
    try:
        await asyncio.gather(*(_work(caller, waiting) for caller in callers))
    finally:
        for caller in callers:
            caller.transport.abort()


async def _work(caller: Caller, tasks: Iterator[tuple[bytes, ...]]) -> None:
    for requests in tasks:
        for request in requests:
            await caller.sent(request)


def kubeconfig(endpoint: Endpoint, folder: Path) -> Path:
    """As every scheduler takes it, written into the folder."""
    file = folder / "kubeconfig"
    named = {"name": "it", "cluster": {"server": endpoint.url, "certificate-authority": endpoint.authority}}
    file.write_bytes(
        msgspec.json.encode(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [named],
                "users": [{"name": "it", "user": {"token": endpoint.token}}],
                "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
                "current-context": "it",
            }
        )
    )
    return file
