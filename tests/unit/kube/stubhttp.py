"""HTTP as a server sees it, just enough for tests: requests into values, replies and streams into bytes."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

Doc = dict[str, Any]


@dataclass
class Asked:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    peer: Any = None

    @property
    def is_watch(self) -> bool:
        return "watch" in self.query

    @property
    def document(self) -> Doc:
        found: Doc = json.loads(self.body)
        return found


@dataclass
class Reply:
    code: int
    document: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None

    @property
    def body(self) -> bytes:
        return json.dumps(self.document).encode() if self.raw is None else self.raw


def status(code: int, reason: str, message: str = "", **details: Any) -> Reply:
    success = "Success" if code < 300 else "Failure"
    document = {"kind": "Status", "status": success, "reason": reason, "message": message, "code": code}
    return Reply(code, document | ({"details": details} if details else {}))


async def request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    start, *lines = head.rstrip("\r\n").split("\r\n")
    method, target, _ = start.split(" ")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    url = urlsplit(target)
    secured = writer.get_extra_info("ssl_object")
    return Asked(method, url.path, dict(parse_qsl(url.query)), headers, body, secured and secured.getpeercert())


def head(reply: Reply) -> bytes:
    headers = {"Content-Type": "application/json", "Content-Length": str(len(reply.body))} | reply.headers
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {reply.code} Whatever\r\n{lines}\r\n".encode()


async def answer(writer: asyncio.StreamWriter, reply: Reply) -> None:
    await write(writer, head(reply) + reply.body)


async def write(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    await writer.drain()


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


async def last_chunk(writer: asyncio.StreamWriter) -> bool:
    await write(writer, b"0\r\n\r\n")
    return True
