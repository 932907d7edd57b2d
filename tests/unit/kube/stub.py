"""A small API server on the loopback, for tests: lists in pages, watches with bookmarks and 410, writes with versions.

It keeps documents as they come and judges nothing. `faults` is asked before every answer and every event, so that a
test can make the server fail in all the ways servers and networks do."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from numalign.kube.clock import Clock
from numalign.kube.transport import auth
from numalign.kube.transport.auth import Access, Identity, Login
from numalign.kube.transport.dial import Server
from numalign.kube.transport.tls import Certificate, Contexts, Trust
from tests.unit.kube import certificates, stubhttp
from tests.unit.kube.clocks import FastClock
from tests.unit.kube.stubhttp import Asked, Doc, Reply, status

INITIAL_END = {"k8s.io/initial-events-end": "true"}


Fault = Reply | str | None
"""An answer in place of the right one, or what happens to it: reset, cut, stall, end, twice, again."""


def once(*faults: Fault) -> Callable[[Asked], Fault]:
    """These, one after the other, and none after them."""
    left = iter(faults)
    return lambda asked: next(left, None)


class Hangup(Exception):
    """The connection ends here and now."""


@dataclass
class Stub:
    offers_initial: bool = False
    faults: Callable[[Asked], Fault] = lambda asked: None
    event_faults: Callable[[Asked], Fault] = lambda asked: None
    objects: dict[str, dict[tuple[str, str], Doc]] = field(default_factory=dict)
    history: list[tuple[int, str, str, Doc]] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    version: int = 100
    oldest: int = 0
    connections: int = 0
    port: int = 0

    def __post_init__(self) -> None:
        self._news = asyncio.Condition()
        self._ended = False

    # What a test does to the cluster.

    def put(self, plural: str, document: Doc) -> Doc:
        """Create it, or change it if its name is taken."""
        kept = self.objects.setdefault(plural, {})
        meta = document["metadata"]
        key = (meta.get("namespace", ""), meta["name"])
        kind = "MODIFIED" if key in kept else "ADDED"
        self.version += 1
        uid = kept[key]["metadata"]["uid"] if key in kept else f"uid-{self.version}"
        kept[key] = document | {"metadata": {"uid": uid} | meta | {"resourceVersion": str(self.version)}}
        self._happened(kind, plural, kept[key])
        return kept[key]

    def delete(self, plural: str, name: str, namespace: str = "") -> None:
        gone = self.objects[plural].pop((namespace, name))
        self.version += 1
        final = gone | {"metadata": gone["metadata"] | {"resourceVersion": str(self.version)}}
        self._happened("DELETED", plural, final)

    def forget_history(self) -> None:
        """As after a compaction: who is not up to date has to look at everything again."""
        self.version += 1
        self.oldest = self.version

    def versions(self, plural: str) -> dict[tuple[str, str], str]:
        return {key: doc["metadata"]["resourceVersion"] for key, doc in self.objects.get(plural, {}).items()}

    def _happened(self, kind: str, plural: str, document: Doc) -> None:
        self.history.append((self.version, plural, kind, document))
        self._wake()

    def _wake(self) -> None:
        async def wake() -> None:
            async with self._news:
                self._news.notify_all()

        self._waker = asyncio.ensure_future(wake())

    # How it answers.

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while await self._one(reader, writer):
                pass
        except (Hangup, ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        asked = await stubhttp.request(reader, writer)
        self.asked.append(asked)
        fault = self.faults(asked)
        if fault == "reset":
            raise Hangup
        if fault == "stall":
            await self._until_the_end()
        if asked.is_watch and not isinstance(fault, Reply):
            return await self._watch(asked, writer)
        reply = fault if isinstance(fault, Reply) else self._answered(asked)
        await stubhttp.write(
            writer, stubhttp.head(reply) + (reply.body[: len(reply.body) // 2] if fault == "cut" else reply.body)
        )
        if fault == "cut":
            raise Hangup
        return True

    async def _until_the_end(self) -> None:
        async with self._news:
            await self._news.wait_for(lambda: self._ended)
        raise Hangup

    def end(self) -> None:
        self._ended = True
        self._wake()

    def _answered(self, asked: Asked) -> Reply:
        steps = asked.path.strip("/").split("/")
        steps = steps[2:] if steps[0] == "api" else steps[3:]
        namespace = steps[1] if steps[0] == "namespaces" and len(steps) > 2 else ""
        plural, *rest = steps[2:] if namespace else steps
        if not rest:
            return self._created(plural, asked) if asked.method == "POST" else self._listed(plural, asked)
        found = self.objects.get(plural, {}).get((namespace, rest[0]))
        if found is None:
            return status(404, "NotFound", f'{plural} "{rest[0]}" not found', name=rest[0], kind=plural)
        return self._about(plural, found, "".join(rest[1:]), asked)

    def _about(self, plural: str, found: Doc, part: str, asked: Asked) -> Reply:
        meta = found["metadata"]
        if part == "binding":
            if found.get("spec", {}).get("nodeName"):
                return status(409, "Conflict", f"pod {meta['name']} is already assigned to node")
            target = asked.document["target"]["name"]
            self.put(plural, found | {"spec": found.get("spec", {}) | {"nodeName": target}})
            return status(201, "")
        if part == "eviction" or asked.method == "DELETE":
            self.delete(plural, meta["name"], meta.get("namespace", ""))
            return status(201 if part else 200, "")
        if asked.method == "PUT":
            wanted = asked.document
            if wanted["metadata"].get("resourceVersion") not in (None, meta["resourceVersion"]):
                return status(409, "Conflict", "the object has been modified")
            return Reply(200, self.put(plural, wanted))
        if asked.method == "PATCH" and isinstance(asked.document, dict):
            return Reply(200, self.put(plural, merged(found, asked.document)))
        return Reply(200, found)

    def _created(self, plural: str, asked: Asked) -> Reply:
        document = asked.document
        key = (document["metadata"].get("namespace", ""), document["metadata"]["name"])
        if key in self.objects.get(plural, {}):
            return status(409, "AlreadyExists", f'{plural} "{key[1]}" already exists')
        return Reply(201, self.put(plural, document))

    def _listed(self, plural: str, asked: Asked) -> Reply:
        """A token carries the snapshot it goes on in; it dies with the history."""
        token, limit = asked.query.get("continue", ""), int(asked.query.get("limit", "0")) or 10**9
        version, first = map(int, token.split(":")) if token else (self.version, 0)
        if version < self.oldest:
            return status(410, "Expired", "the provided continue parameter is too old")
        everything = self._at(plural, version)
        rest = f"{version}:{first + limit}" if first + limit < len(everything) else ""
        meta = {"resourceVersion": str(version), "continue": rest}
        return Reply(200, {"kind": "List", "metadata": meta, "items": everything[first : first + limit]})

    def _at(self, plural: str, version: int) -> list[Doc]:
        found: dict[tuple[str, str], Doc] = {}
        for happened, which, kind, document in self.history:
            key = (document["metadata"].get("namespace", ""), document["metadata"]["name"])
            if which == plural and happened <= version:
                found.pop(key, None)
                if kind != "DELETED":
                    found[key] = document
        return [found[key] for key in sorted(found)]

    async def _watch(self, asked: Asked, writer: asyncio.StreamWriter) -> bool:
        plural, initial = asked.path.rsplit("/", 1)[1], "sendInitialEvents" in asked.query
        if initial and not self.offers_initial:
            await stubhttp.answer(writer, status(422, "Invalid", "sendInitialEvents is forbidden"))
            return True
        since = int(asked.query.get("resourceVersion") or self.version)
        await stubhttp.write(writer, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        if since < self.oldest:
            await self._line(asked, writer, "ERROR", status(410, "Expired", "too old resource version").document)
            return await stubhttp.last_chunk(writer)
        if initial:
            for document in self._at(plural, self.version):
                await self._line(asked, writer, "ADDED", document)
            await self._bookmark(asked, writer, INITIAL_END)
            since = self.version
        return await self._follow(asked, writer, plural, since)

    async def _follow(self, asked: Asked, writer: asyncio.StreamWriter, plural: str, since: int) -> bool:
        place = next((n for n, item in enumerate(self.history) if item[0] > since), len(self.history))
        while not self._ended:
            for _, which, kind, document in self.history[place:]:
                place += 1
                if which == plural:
                    await self._line(asked, writer, kind, document)
            if self.event_faults(asked) == "bookmark":
                await self._bookmark(asked, writer, {})
            await self._until_longer_than(place)
        return await stubhttp.last_chunk(writer)

    async def _until_longer_than(self, place: int) -> None:
        async with self._news:
            await self._news.wait_for(lambda: self._ended or len(self.history) > place)

    async def _bookmark(self, asked: Asked, writer: asyncio.StreamWriter, annotations: Doc) -> None:
        meta = {"resourceVersion": str(self.version), "annotations": annotations}
        await self._line(asked, writer, "BOOKMARK", {"kind": "Pod", "metadata": meta, "spec": {"containers": None}})

    def _past(self, asked: Asked, document: Doc) -> bytes:
        """Everything that led here, once more; nothing of what is still to come."""
        plural, now = asked.path.rsplit("/", 1)[1], int(document["metadata"]["resourceVersion"])
        again = [(kind, each) for when, which, kind, each in self.history if which == plural and when <= now]
        return b"".join(json.dumps({"type": kind, "object": each}).encode() + b"\n" for kind, each in again)

    async def _line(self, asked: Asked, writer: asyncio.StreamWriter, kind: str, document: Doc) -> None:
        line = json.dumps({"type": kind, "object": document}).encode() + b"\n"
        match self.event_faults(asked):
            case "reset":
                raise Hangup
            case "stall":
                await self._until_the_end()
            case "cut":
                await stubhttp.write(writer, stubhttp.chunk(line[: len(line) // 2]))
                raise Hangup
            case "end":
                await stubhttp.last_chunk(writer)
                raise Hangup
            case "twice":
                line += line
            case "again":
                line += self._past(asked, document)
        await stubhttp.write(writer, stubhttp.chunk(line))


def merged(document: Doc, changes: Doc) -> Doc:
    """A JSON merge patch applied."""
    result = dict(document)
    for name, value in changes.items():
        if value is None:
            result.pop(name, None)
        else:
            inner = result.get(name)
            result[name] = merged(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
    return result


@asynccontextmanager
async def serving(stub: Stub, context: ssl.SSLContext | None = None) -> AsyncIterator[Stub]:
    server = await asyncio.start_server(stub.serve, "127.0.0.1", 0, ssl=context)
    stub.port = server.sockets[0].getsockname()[1]
    try:
        yield stub
    finally:
        stub.end()
        server.close()
        await asyncio.sleep(0)


def access(stub: Stub, identity: Identity | None = None, clock: Clock | None = None) -> Access:
    login = Login(auth.unchanging(identity or Identity()), clock or FastClock())
    return Access(Server("127.0.0.1", stub.port, secure=False), login)


def secure_access(
    stub: Stub, trust: Trust | None = None, certificate: Certificate | None = None, name: str = ""
) -> Access:
    trusted = trust or Trust(data=certificates.AUTHORITY.encode())
    login = Login(auth.unchanging(Identity((), certificate)), FastClock())
    return Access(Server("127.0.0.1", stub.port, tls_name=name), login, Contexts(trusted, "test"))
