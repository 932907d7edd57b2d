"""gRPC over unix sockets, as the kubelet speaks it, and on a port: bytes in, bytes out, no generated code.

The agent's sources call through it and the device plugin serves through it; `api.decode.protobuf` encodes the messages.
A failed call raises `CallFailed` with gRPC's name of the code. A call is repeated only if the socket's owner restarted
while it was in flight. grpcio is imported with the first channel or server, so that other commands start quickly."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

LARGEST_MESSAGE: Final = 16 << 20
"""The limit of both known publishers; gRPC's default of 4 MiB is too small for large nodes (exporter spec 2.1)."""
DEADLINE: Final = 10.0
AT_ONCE: Final = 16
"""Calls that a server on the network answers at the same time; others are refused as RESOURCE_EXHAUSTED."""
CONNECTIONS: Final = 64
"""Connections to a server on the network; others are closed."""
HANDSHAKE, IDLE = 5_000, 60_000
"""Milliseconds for the handshake of a connection, and for which it may have no call; clients connect anew."""
LONGEST_PATH: Final = 107
"""Bytes of a unix socket's path, a limit of the operating system."""
OPTIONS: Final = (
    ("grpc.max_receive_message_length", LARGEST_MESSAGE),
    ("grpc.max_send_message_length", LARGEST_MESSAGE),
)
CHANNEL_OPTIONS: Final = (
    *OPTIONS,
    # A channel made after a restart must not reuse the connection of an earlier one.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_http_proxy", 0),
    ("grpc.default_authority", "localhost"),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
)

# gRPC reports every connection that its other end closes on standard error, in a form of its own.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

Identity = tuple[int, int, int]
Answering = Callable[[bytes], Awaitable[bytes]]
Streaming = Callable[[bytes], AsyncIterator[bytes]]


@dataclass(eq=False)
class CallFailed(Exception):
    """`code` is gRPC's name, such as UNAVAILABLE; `text` what the other side said."""

    code: str
    text: str

    def __str__(self) -> str:
        return f"{self.code}: {self.text}"


class Service(Struct, frozen=True):
    """The handlers of one gRPC service; a handler that raises `CallFailed` answers with its code and text."""

    name: str
    calls: Mapping[str, Answering]
    streams: Mapping[str, Streaming] = {}


class Channel:
    """A gRPC channel to one socket; made inside a running event loop. It connects with the first call, and
    reconnects."""

    def __init__(self, socket: Path) -> None:
        from grpc import aio

        if len(bytes(socket)) > LONGEST_PATH:
            raise CallFailed("INVALID_ARGUMENT", f"the path {socket} is longer than a unix socket's may be")
        self._socket = socket
        self._channel = aio.insecure_channel(f"unix:{socket}", options=CHANNEL_OPTIONS)

    async def call(self, method: str, request: bytes, deadline: float = DEADLINE) -> bytes:
        from grpc import aio

        try:
            answer: bytes = await self._channel.unary_unary(method)(request, timeout=deadline)
        except aio.AioRpcError as failure:
            raise self._failed(failure) from None
        return answer

    async def stream(self, method: str, request: bytes) -> AsyncIterator[bytes]:
        """Messages until the server ends the stream; no deadline."""
        from grpc import aio

        call = self._channel.unary_stream(method)(request)
        try:
            async for answer in call:
                yield answer
        except aio.AioRpcError as failure:
            raise self._failed(failure) from None
        finally:
            call.cancel()

    async def broken(self) -> bool:
        """Connects without a call, and returns when the other end closes the connection. False: it cannot connect."""
        from grpc import ChannelConnectivity

        state = self._channel.get_state(try_to_connect=True)
        while state in (ChannelConnectivity.IDLE, ChannelConnectivity.CONNECTING):
            await self._channel.wait_for_state_change(state)
            state = self._channel.get_state(try_to_connect=True)
        if state is not ChannelConnectivity.READY:
            return False
        await self._channel.wait_for_state_change(state)
        return True

    async def close(self, grace: float | None = None) -> None:
        """Calls that are still in flight after `grace` seconds are cancelled, with the tasks that await them."""
        await self._channel.close(grace)

    def _failed(self, failure: Any) -> CallFailed:
        code, text = failure.code().name, failure.details() or ""
        if code == "UNAVAILABLE" and "ermission denied" in text:
            # gRPC reports every connection failure as UNAVAILABLE; a denied permission will not succeed later either.
            return CallFailed("PERMISSION_DENIED", f"{self._socket} cannot be connected to: permission denied")
        return CallFailed(code, text)


class Link:
    """A channel to a socket that its owner replaces on restart: a new file gets a new channel."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._channel: Channel | None = None
        self._identity: Identity | None = None
        self._leaving: set[asyncio.Task[None]] = set()

    async def call(self, method: str, request: bytes, deadline: float = DEADLINE) -> bytes:
        channel, identity = self._current()
        try:
            return await channel.call(method, request, deadline)
        except CallFailed as failure:
            if failure.code != "UNAVAILABLE" or identity == identity_of(self._socket):
                raise
        # The socket was replaced while the call was in flight: the new owner has not received it.
        return await self._current()[0].call(method, request, deadline)

    def current(self) -> Channel:
        """The channel for calls that are not repeated, such as streams."""
        return self._current()[0]

    def _current(self) -> tuple[Channel, Identity]:
        identity = identity_of(self._socket)
        if self._channel is None or identity != self._identity:
            self._leave()
            self._channel, self._identity = Channel(self._socket), identity
        return self._channel, identity

    def _leave(self) -> None:
        # Other calls may still be in flight on the old channel; closing it now would cancel their tasks.
        if self._channel is not None:
            task = asyncio.get_running_loop().create_task(self._channel.close(grace=DEADLINE))
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)

    async def close(self) -> None:
        for task in (*self._leaving,):
            task.cancel()
        if self._channel is not None:
            await self._channel.close()
            self._channel = None


def identity_of(socket: Path) -> Identity:
    """Identifies the file: inode numbers are reused, so the change time counts, too."""
    try:
        found = socket.stat()
    except FileNotFoundError:
        raise CallFailed(
            "UNAVAILABLE", f"there is no socket {socket}; its owner has not started, or the folder is not mounted here"
        ) from None
    except OSError as problem:
        code = "PERMISSION_DENIED" if isinstance(problem, PermissionError) else "UNAVAILABLE"
        raise CallFailed(code, f"{socket} cannot be read: {problem.strerror}") from None
    return found.st_dev, found.st_ino, found.st_ctime_ns


class Server:
    """A gRPC server on one socket, from `start` to `stop`."""

    def __init__(self, socket: Path, *services: Service) -> None:
        from grpc import aio

        self.socket = socket
        self._server = aio.server(options=OPTIONS)
        self._server.add_generic_rpc_handlers(tuple(map(_handlers, services)))
        if len(bytes(socket)) > LONGEST_PATH:
            raise OSError(f"the path {socket} is longer than a unix socket's may be")
        self._server.add_insecure_port(f"unix:{socket}")

    async def start(self) -> None:
        await self._server.start()

    async def stop(self, grace: float | None = None) -> None:
        await self._server.stop(grace)


class NetworkServer:
    """A gRPC server on a TCP port, from `start` to `stop`; clients are not authenticated."""

    def __init__(
        self,
        address: tuple[str, int],
        certificate: tuple[bytes, bytes] | None,
        *services: Service,
        largest: int = LARGEST_MESSAGE,
        at_once: int = AT_ONCE,
    ) -> None:
        """`certificate`: chain and key in PEM; None: without TLS. `largest`: bytes of a message. `at_once`: calls; more
        of them are refused. OSError where the port is taken."""
        import grpc
        from grpc import aio

        options = (
            ("grpc.max_receive_message_length", largest),
            ("grpc.max_send_message_length", largest),
            ("grpc.so_reuseport", 0),
            ("grpc.max_allowed_incoming_connections", CONNECTIONS),
            ("grpc.server_handshake_timeout_ms", HANDSHAKE),
            ("grpc.max_connection_idle_ms", IDLE),
        )
        self._server = aio.server(options=options, maximum_concurrent_rpcs=at_once)
        self._server.add_generic_rpc_handlers(tuple(map(_handlers, services)))
        host, port = address
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            if certificate is None:
                self.port = self._server.add_insecure_port(place)
            else:
                chain, key = certificate
                self.port = self._server.add_secure_port(place, grpc.ssl_server_credentials([(key, chain)]))
        except RuntimeError as problem:
            raise OSError(f"{place} cannot be listened on: {problem}") from None

    async def start(self) -> None:
        await self._server.start()

    async def stop(self, grace: float | None = None) -> None:
        await self._server.stop(grace)


def _handlers(service: Service) -> Any:
    import grpc

    calls = {name: grpc.unary_unary_rpc_method_handler(_answered(call)) for name, call in service.calls.items()}
    streams = {name: grpc.unary_stream_rpc_method_handler(_streamed(each)) for name, each in service.streams.items()}
    return grpc.method_handlers_generic_handler(service.name, calls | streams)


def _answered(call: Answering) -> Callable[[bytes, Any], Awaitable[bytes]]:
    async def answered(request: bytes, context: Any) -> bytes:
        try:
            return await call(request)
        except CallFailed as refusal:
            return await _refuse(context, refusal)

    return answered


def _streamed(stream: Streaming) -> Callable[[bytes, Any], AsyncIterator[bytes]]:
    async def streamed(request: bytes, context: Any) -> AsyncIterator[bytes]:
        try:
            async for answer in stream(request):
                yield answer
        except CallFailed as refusal:
            await _refuse(context, refusal)

    return streamed


async def _refuse(context: Any, refusal: CallFailed) -> bytes:
    import grpc

    await context.abort(grpc.StatusCode[refusal.code], refusal.text)
    return b""
