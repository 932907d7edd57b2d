"""Opens connections to an API server: TCP with keepalive, through a proxy if there is one, then TLS.

`transport` calls `dial` when no idle connection is left. `access` makes a `Server` from a kubeconfig or a pod's
environment; proxy variables apply where the kubeconfig names no proxy, as in kubectl. HTTP and HTTPS proxies get a
CONNECT request, SOCKS proxies version 5 with the server's name, which the proxy resolves. A proxy only learns the
server's address and its own credentials. The caller's time limit bounds every step."""

import asyncio
import ipaddress
import os
import socket
import ssl
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from msgspec import Struct

from numalign.kube.transport.connection import Connection

PORTS: Final = {"https": 443, "http": 80, "socks5": 1080, "socks5h": 1080}
SERVERS: Final = ("https", "http")
OURSELVES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
LONGEST_PART: Final = 255
"""Bytes of a SOCKS5 user name or password: its length is one byte."""


class Proxy(Struct, frozen=True):
    host: str
    port: int
    scheme: str = "http"
    login: str = ""
    """user:password"""

    def __repr__(self) -> str:
        return f"Proxy({self.host}:{self.port})"


class Server(Struct, frozen=True):
    host: str
    port: int
    secure: bool = True
    prefix: str = ""
    """Prefix of every path, for servers behind a gateway."""
    tls_name: str = ""
    """The server name to verify, where it differs from `host`."""
    proxy: Proxy | None = None

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_server(url: str, tls_name: str = "", proxy: Proxy | None = None) -> Server:
    """From a URL; ValueError says what is wrong with it."""
    parts = _parts(url)
    if parts.scheme not in SERVERS:
        raise ValueError("is not a URL that begins with https:// or http://")
    host, port = _place(parts)
    return Server(host, port, parts.scheme == "https", parts.path.rstrip("/"), tls_name, proxy)


def parse_proxy(url: str) -> Proxy:
    """From a URL; ValueError says what is wrong with it and never quotes its password."""
    parts = _parts(url)
    if parts.scheme not in PORTS:
        raise ValueError("is not a URL that begins with http://, https:// or socks5://")
    login = f"{unquote(parts.username)}:{unquote(parts.password or '')}" if parts.username else ""
    if parts.scheme.startswith("socks") and any(len(part.encode()) > LONGEST_PART for part in login.split(":", 1)):
        raise ValueError(f"has a user name or a password of more than {LONGEST_PART} bytes, which SOCKS5 cannot carry")
    return Proxy(*_place(parts), parts.scheme, login)


def proxy_from_environment(environment: Mapping[str, str], url: str) -> Proxy | None:
    """The proxy that HTTPS_PROXY, HTTP_PROXY and NO_PROXY select for this server, if any."""
    parts = _parts(url)
    name = f"{parts.scheme}_proxy"
    chosen = environment.get(name.upper()) or environment.get(name) or ""
    passed_by = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    host = parts.hostname or ""
    if not chosen or host in OURSELVES or any(_covers(rule.strip(), host) for rule in passed_by.split(",")):
        return None
    return parse_proxy(chosen if "://" in chosen else f"http://{chosen}")


def _covers(rule: str, host: str) -> bool:
    if rule in ("", "*"):
        return rule == "*"
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(rule, strict=False)
    except ValueError:
        bare = rule.removeprefix("*").lstrip(".").lower()
        return host.lower() == bare or host.lower().endswith(f".{bare}")


def _parts(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:
        raise ValueError("is not a URL") from None


def _place(parts: SplitResult) -> tuple[str, int]:
    try:
        host, port = parts.hostname, parts.port or PORTS[parts.scheme]
    except ValueError:
        raise ValueError("has no port between 1 and 65535") from None
    if not host:
        raise ValueError("names no host")
    return host, port


LONGEST_REPLY: Final = 16 << 10

SOCKS5: Final = 5
NO_LOGIN, PASSWORD, NO_WAY_TO_LOG_IN = 0x00, 0x02, 0xFF
LOGIN_VERSION: Final = 1
CONNECT: Final = 1
IPV4, NAME, IPV6 = 1, 3, 4
ADDRESS_BYTES: Final = {IPV4: 4, IPV6: 16}
SOCKS_REFUSALS: Final = {
    1: "general failure",
    2: "not allowed by its rules",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "time to live expired",
    7: "command not supported",
    8: "address type not supported",
}


class ProxyRefused(ConnectionError):
    """The proxy refused; the text is its reason."""


class ProxyReplies(asyncio.Protocol):
    """Reads the proxy's replies."""

    def __init__(self) -> None:
        self._received = b""
        self._ended = ""
        self._news = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self._received += data
        self._news.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended = "the proxy closed the connection"
        self._news.set()

    async def exactly(self, count: int) -> bytes:
        while len(self._received) < count:
            await self._more()
        taken, self._received = self._received[:count], self._received[count:]
        return taken

    async def until(self, end: bytes) -> bytes:
        while (at := self._received.find(end)) < 0:
            if len(self._received) > LONGEST_REPLY:
                raise ConnectionError("the proxy's reply is too long")
            await self._more()
        return await self.exactly(at + len(end))

    async def _more(self) -> None:
        if self._ended:
            raise ConnectionError(self._ended)
        self._news.clear()
        await self._news.wait()


async def open_tunnel(proxy: Proxy, server: Server, transport: asyncio.Transport, dialogue: ProxyReplies) -> None:
    """Returns when the proxy has opened the tunnel; ProxyRefused if it does not."""
    ask = _by_socks if proxy.scheme.startswith("socks") else _by_connect
    try:
        await ask(proxy, server, transport, dialogue)
    except BaseException:
        transport.abort()
        raise


async def _by_connect(proxy: Proxy, server: Server, transport: asyncio.Transport, dialogue: ProxyReplies) -> None:
    authority = server.authority
    login = f"Proxy-Authorization: Basic {b64encode(proxy.login.encode()).decode()}\r\n" if proxy.login else ""
    transport.write(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{login}\r\n".encode())
    words = (await dialogue.until(b"\r\n\r\n")).split(b"\r\n", 1)[0].split()
    status = words[1].decode("latin-1") if len(words) > 1 else "the reply is not HTTP"
    if status != "200":
        raise ProxyRefused(status)


async def _by_socks(proxy: Proxy, server: Server, transport: asyncio.Transport, dialogue: ProxyReplies) -> None:
    ways = (NO_LOGIN, PASSWORD) if proxy.login else (NO_LOGIN,)
    transport.write(bytes((SOCKS5, len(ways), *ways)))
    version, chosen = await dialogue.exactly(2)
    if version != SOCKS5:
        raise ProxyRefused("it does not speak SOCKS5")
    if chosen == PASSWORD and proxy.login:
        await _log_in(proxy.login, transport, dialogue)
    elif chosen != NO_LOGIN:
        raise ProxyRefused(
            "it accepts none of our authentication methods" if chosen == NO_WAY_TO_LOG_IN else f"wants login {chosen}"
        )
    transport.write(bytes((SOCKS5, CONNECT, 0)) + _address(server.host) + server.port.to_bytes(2, "big"))
    _, reply, _, kind = await dialogue.exactly(4)
    if reply:
        raise ProxyRefused(SOCKS_REFUSALS.get(reply, f"reply {reply}"))
    # The proxy's bound address is not needed, but must be read.
    await dialogue.exactly((ADDRESS_BYTES.get(kind) or (await dialogue.exactly(1))[0]) + 2)


async def _log_in(login: str, transport: asyncio.Transport, dialogue: ProxyReplies) -> None:
    user, _, password = (part.encode() for part in login.partition(":"))
    transport.write(bytes((LOGIN_VERSION, len(user))) + user + bytes((len(password),)) + password)
    _, status = await dialogue.exactly(2)
    if status:
        raise ProxyRefused("authentication failed")


def _address(host: str) -> bytes:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        name = host.encode("idna")[:255]
        return bytes((NAME, len(name))) + name
    return bytes((IPV4 if address.version == 4 else IPV6,)) + address.packed


# Keepalive detects a half-open connection after about a minute (kube-scheduler spec 7.3).
KEEPALIVE: Final = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))


Dial = Callable[[Server, ssl.SSLContext | None, float], Awaitable[Connection]]
"""Connects to the server, with TLS or without, within a number of seconds."""


NO_TLS: Final = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST")
"""What OpenSSL says of a server that answers without TLS."""


class CannotConnect(Exception):
    """Nothing was sent to the server; the text names the step that failed."""


async def dial(server: Server, context: ssl.SSLContext | None, seconds: float) -> Connection:
    try:
        async with asyncio.timeout(seconds):
            return await _dialled(server, context)
    except TimeoutError:
        raise CannotConnect(f"no connection to {server.authority} within {seconds:g} s") from None
    except ssl.SSLCertVerificationError as problem:
        raise CannotConnect(f"{server.authority} is not trusted: {problem.verify_message}") from None
    except ssl.SSLError as problem:
        # Its number is not one of the system's errors.
        why = problem.reason or type(problem).__name__
        hint = "; does the server speak TLS?" if why in NO_TLS else ""
        raise CannotConnect(f"no TLS connection to {server.authority}: {why}{hint}") from None
    except OSError as problem:
        raise CannotConnect(f"no connection to {server.authority}: {_why(problem)}") from None


async def _dialled(server: Server, context: ssl.SSLContext | None) -> Connection:
    loop = asyncio.get_running_loop()
    name = (server.tls_name or server.host) if context else None
    if server.proxy is None:
        transport, connection = await loop.create_connection(
            Connection, server.host, server.port, ssl=context, server_hostname=name
        )
    else:
        transport = await _through(server.proxy, server)
        connection = Connection()
        transport.set_protocol(connection)
        connection.connection_made(transport)
        if context is not None:
            await _secure(transport, connection, context, name)
    _keep_alive(transport)
    return connection


async def _secure(
    transport: asyncio.Transport, connection: Connection, context: ssl.SSLContext, name: str | None
) -> None:
    """Starts TLS on an open connection; asyncio leaves cleaning up and the protocol's callback to the caller."""
    try:
        secured = await asyncio.get_running_loop().start_tls(transport, connection, context, server_hostname=name)
    except BaseException:
        transport.abort()
        raise
    assert secured is not None
    connection.connection_made(secured)


async def _through(proxy: Proxy, server: Server) -> asyncio.Transport:
    # A proxy is verified with the system's trust store: the cluster's authority is for the cluster alone.
    context = ssl.create_default_context() if proxy.scheme == "https" else None
    loop = asyncio.get_running_loop()
    transport, dialogue = await loop.create_connection(ProxyReplies, proxy.host, proxy.port, ssl=context)
    try:
        await open_tunnel(proxy, server, transport, dialogue)
    except ProxyRefused as refused:
        place = f"{proxy.host}:{proxy.port}"
        raise CannotConnect(f"the proxy {place} refused a tunnel to {server.authority}: {refused}") from None
    return transport


def _keep_alive(transport: asyncio.BaseTransport) -> None:
    end = transport.get_extra_info("socket")
    if end is None:
        return
    end.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE:
        # Not every system has these options; then its defaults apply.
        if hasattr(socket, name):
            end.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _why(problem: OSError) -> str:
    # asyncio repeats the address in its message; names that do not resolve have error codes of their own.
    if problem.errno and not isinstance(problem, socket.gaierror):
        return os.strerror(problem.errno)
    return problem.strerror or str(problem) or type(problem).__name__
