"""ttrpc over NRI's multiplexed socket: unary calls in both directions on one connection.

`session` makes a `Trunk` for each connection to the container runtime. NRI splits the connection into two by a header
of eight bytes per frame: the runtime calls the plugin on the one, the plugin calls the runtime on the other. A ttrpc
message has a header of ten bytes. Requests are answered in the order in which they arrive, by a function that does not
wait. Malformed bytes end the connection; a request that cannot be answered gets an error status and costs nothing
else."""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Callable
from enum import IntEnum
from typing import Final, cast

from numalign.api.decode import protobuf
from numalign.api.decode.protobuf import BadProtobuf, Message, MessageField
from numalign.process.rpc import CallFailed

LOG: Final = logging.getLogger(__name__)

FRAME: Final = struct.Struct(">II")
"""Connection id and length of the payload."""
HEADER: Final = struct.Struct(">IIBB")
"""Length, stream id, type and flags of a message."""
LARGEST: Final = 4 << 20
"""Bytes of a ttrpc message, a limit of the protocol."""
PIECE: Final = 4096
"""Bytes of a frame that is sent: the runtime reads a frame into a buffer of this size."""
NO_MORE_DATA: Final = 1
"""The flag of a unary request."""


class Kind(IntEnum):
    REQUEST = 1
    RESPONSE = 2


STATUS: Final[Message] = {1: MessageField("code", "int"), 2: MessageField("message", "string")}
REQUEST: Final[Message] = {
    1: MessageField("service", "string"),
    2: MessageField("method", "string"),
    3: MessageField("payload", "bytes"),
    4: MessageField("nanoseconds", "int"),
}
RESPONSE: Final[Message] = {1: MessageField("status", STATUS), 2: MessageField("payload", "bytes")}

# gRPC's status codes by number.
CODES: Final = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
]

Answer = Callable[[str, bytes], bytes]
"""From the method, as in `Service/Method`, and the request to the response; CallFailed answers with a status."""


class Trunk(asyncio.Protocol):
    """One end of a connection, from `connection_made` to `close`."""

    def __init__(self, *, serves: int, calls: int, answer: Answer) -> None:
        """`serves` and `calls`: the ids of the connections on which requests arrive and on which they are made."""
        self._serves, self._calls, self._answer = serves, calls, answer
        self._transport: asyncio.Transport | None = None
        self._unread = bytearray()
        self._streams = {serves: bytearray(), calls: bytearray()}
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._next = 1
        self._flowing = asyncio.Event()
        self._flowing.set()
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Why the connection ended."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, problem: Exception | None) -> None:
        self._end(str(problem) if problem is not None else "the connection was closed")

    def pause_writing(self) -> None:
        self._flowing.clear()

    def resume_writing(self) -> None:
        self._flowing.set()

    def data_received(self, data: bytes) -> None:
        self._unread += data
        try:
            self._read_frames()
        except BadProtobuf as problem:
            LOG.warning("Closing the connection to the container runtime: %s", problem)
            self._end(str(problem))
            self.close()

    async def call(self, service: str, method: str, request: bytes, seconds: float) -> bytes:
        """The response. CallFailed where the other end refuses, does not answer in time, or goes away."""
        number, self._next = self._next, self._next + 2
        tree = {
            "service": service,
            "method": method,
            "payload": request,
            "nanoseconds": int(seconds * 1e9),
        }
        message = protobuf.encode_message(tree, REQUEST)
        if len(message) > LARGEST:
            raise CallFailed("RESOURCE_EXHAUSTED", f"{method}: the request has {len(message)} bytes")
        answered: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(seconds):
                await self._flowing.wait()
                if self.lost.done():
                    raise CallFailed("UNAVAILABLE", self.lost.result())
                self._waiting[number] = answered
                self._send(self._calls, number, Kind.REQUEST, message, NO_MORE_DATA)
                return await answered
        except TimeoutError:
            raise CallFailed("DEADLINE_EXCEEDED", f"{method}: no answer within {seconds:.0f} s") from None
        finally:
            self._waiting.pop(number, None)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _end(self, why: str) -> None:
        self._flowing.set()
        if not self.lost.done():
            self.lost.set_result(why)
        for each in self._waiting.values():
            if not each.done():
                each.set_exception(CallFailed("UNAVAILABLE", why))

    def _read_frames(self) -> None:
        at = 0
        while len(self._unread) - at >= FRAME.size:
            connection, size = FRAME.unpack_from(self._unread, at)
            if size > LARGEST + HEADER.size:
                raise BadProtobuf(f"a frame of {size} bytes; at most {LARGEST + HEADER.size} are read")
            if len(self._unread) - at < FRAME.size + size:
                break
            payload = bytes(self._unread[at + FRAME.size : at + FRAME.size + size])
            at += FRAME.size + size
            # Later releases of the runtime may open more connections.
            if connection in self._streams:
                self._read_messages(connection, payload)
        del self._unread[:at]

    def _read_messages(self, connection: int, payload: bytes) -> None:
        unread = self._streams[connection]
        unread += payload
        at = 0
        while len(unread) - at >= HEADER.size:
            size, stream, kind, _ = HEADER.unpack_from(unread, at)
            if size > LARGEST:
                raise BadProtobuf(f"a message of {size} bytes; at most {LARGEST} are read")
            if len(unread) - at < HEADER.size + size:
                break
            message = bytes(unread[at + HEADER.size : at + HEADER.size + size])
            at += HEADER.size + size
            if kind == Kind.REQUEST and connection == self._serves:
                self._serve(stream, message)
            elif kind == Kind.RESPONSE and connection == self._calls:
                self._answered(stream, message)
        del unread[:at]

    def _serve(self, stream: int, message: bytes) -> None:
        try:
            request = protobuf.decode_message(message, REQUEST)
            method = f"{request.get('service', '')}/{request.get('method', '')}"
            payload = self._answer(method, request.get("payload", b""))
            if len(payload) > LARGEST - PIECE:
                raise CallFailed("RESOURCE_EXHAUSTED", f"{method}: the response has {len(payload)} bytes")
            response: protobuf.Tree = {"payload": payload}
        except CallFailed as refusal:
            response = _failure(refusal.code, refusal.text)
        except BadProtobuf as problem:
            response = _failure("INVALID_ARGUMENT", str(problem))
        except Exception as problem:
            # One request that cannot be answered must not cost the connection, and with it all other containers.
            LOG.exception("Failed to answer a request of the container runtime")
            response = _failure("INTERNAL", f"{type(problem).__name__}: {problem}")
        self._send(self._serves, stream, Kind.RESPONSE, protobuf.encode_message(response, RESPONSE))

    def _answered(self, stream: int, message: bytes) -> None:
        waiting = self._waiting.get(stream)
        if waiting is None or waiting.done():
            return
        response = protobuf.decode_message(message, RESPONSE)
        status = response.get("status", {})
        code = status.get("code", 0)
        if code:
            name = CODES[code] if 0 < code < len(CODES) else "UNKNOWN"
            waiting.set_exception(CallFailed(name, status.get("message", "")))
        else:
            waiting.set_result(response.get("payload", b""))

    def _send(self, connection: int, stream: int, kind: Kind, message: bytes, flags: int = 0) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        data = HEADER.pack(len(message), stream, kind, flags) + message
        for at in range(0, len(data), PIECE):
            piece = data[at : at + PIECE]
            self._transport.write(FRAME.pack(connection, len(piece)) + piece)


def _failure(code: str, text: str) -> protobuf.Tree:
    return {"status": {"code": CODES.index(code) if code in CODES else CODES.index("UNKNOWN"), "message": text}}


async def connected(path: str, made: Callable[[], Trunk]) -> Trunk:
    """A trunk on this unix socket. OSError where it cannot be connected to."""
    _, trunk = await asyncio.get_running_loop().create_unix_connection(made, path)
    return trunk
