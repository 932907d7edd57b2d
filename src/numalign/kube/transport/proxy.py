"""The way through a proxy: what is said to it until the bytes that follow belong to the server.

`dialing` opens the connection to the proxy and calls `opened` on it. HTTP and HTTPS proxies are asked by CONNECT, SOCKS
proxies in version 5, with the server's name left for the proxy to resolve. Nothing but the server's address and the
login for the proxy itself is told to it."""

import asyncio
import ipaddress
from base64 import b64encode
from typing import Final

from numalign.kube.transport.server import Proxy, Server

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


class Refused(ConnectionError):
    """The proxy refused; the text is its reason."""


class Dialogue(asyncio.Protocol):
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


async def opened(proxy: Proxy, server: Server, transport: asyncio.Transport, dialogue: Dialogue) -> None:
    """Returns when the proxy has opened the tunnel; Refused if it does not."""
    ask = _by_socks if proxy.scheme.startswith("socks") else _by_connect
    try:
        await ask(proxy, server, transport, dialogue)
    except BaseException:
        transport.abort()
        raise


async def _by_connect(proxy: Proxy, server: Server, transport: asyncio.Transport, dialogue: Dialogue) -> None:
    authority = server.authority
    login = f"Proxy-Authorization: Basic {b64encode(proxy.login.encode()).decode()}\r\n" if proxy.login else ""
    transport.write(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{login}\r\n".encode())
    words = (await dialogue.until(b"\r\n\r\n")).split(b"\r\n", 1)[0].split()
    status = words[1].decode("latin-1") if len(words) > 1 else "the reply is not HTTP"
    if status != "200":
        raise Refused(status)


async def _by_socks(proxy: Proxy, server: Server, transport: asyncio.Transport, dialogue: Dialogue) -> None:
    ways = (NO_LOGIN, PASSWORD) if proxy.login else (NO_LOGIN,)
    transport.write(bytes((SOCKS5, len(ways), *ways)))
    version, chosen = await dialogue.exactly(2)
    if version != SOCKS5:
        raise Refused("it does not speak SOCKS5")
    if chosen == PASSWORD and proxy.login:
        await _log_in(proxy.login, transport, dialogue)
    elif chosen != NO_LOGIN:
        raise Refused(
            "it accepts none of our authentication methods" if chosen == NO_WAY_TO_LOG_IN else f"wants login {chosen}"
        )
    transport.write(bytes((SOCKS5, CONNECT, 0)) + _address(server.host) + server.port.to_bytes(2, "big"))
    _, reply, _, kind = await dialogue.exactly(4)
    if reply:
        raise Refused(SOCKS_REFUSALS.get(reply, f"reply {reply}"))
    # The proxy's bound address is not needed, but must be read.
    await dialogue.exactly((ADDRESS_BYTES.get(kind) or (await dialogue.exactly(1))[0]) + 2)


async def _log_in(login: str, transport: asyncio.Transport, dialogue: Dialogue) -> None:
    user, _, password = (part.encode()[:255] for part in login.partition(":"))
    transport.write(bytes((LOGIN_VERSION, len(user))) + user + bytes((len(password),)) + password)
    _, status = await dialogue.exactly(2)
    if status:
        raise Refused("authentication failed")


def _address(host: str) -> bytes:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        name = host.encode("idna")[:255]
        return bytes((NAME, len(name))) + name
    return bytes((IPV4 if address.version == 4 else IPV6,)) + address.packed
