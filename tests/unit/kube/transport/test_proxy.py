"""Ways through proxies: HTTP, HTTPS and SOCKS, to a server over TLS that they cannot look into."""

import asyncio
import ssl
from abc import ABC, abstractmethod
from pathlib import Path

import pytest

from numalign.kube import errors
from numalign.kube.client import Client
from numalign.kube.resources import NODES
from numalign.kube.transport.dial import Proxy, Server
from tests.unit.kube import certificates
from tests.unit.kube.clocks import HandClock, run
from tests.unit.kube.stub import Stub, secure_access, serving

YES = b"HTTP/1.1 200 Connection established\r\n\r\n"
LOGIN = "me:pw"
ADDRESS = bytes((127, 0, 0, 1))


class ProxyServer(ABC):
    """Passes bytes on to whatever address it was asked for, and keeps what it was told before."""

    def __init__(self) -> None:
        self.told: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = await self.asked_for(reader, writer)
        if port is None:
            return writer.close()
        there, onward = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(self._pass(reader, onward), self._pass(there, writer))

    @abstractmethod
    async def asked_for(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int | None:
        """The port of the server that it was asked for, or None where it said no."""

    async def _pass(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65536):
                sink.write(data)
        except OSError:
            pass
        finally:
            sink.close()


class ConnectProxy(ProxyServer):
    def __init__(self, reply: bytes = YES) -> None:
        super().__init__()
        self._reply = reply

    async def asked_for(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int | None:
        self.told.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(self._reply)
        return None if self._reply != YES else int(self.told[-1].split()[1].split(b":")[1])


class SocksProxy(ProxyServer):
    """Answers each question with the next of its replies; the last question names the server."""

    def __init__(self, *replies: bytes) -> None:
        super().__init__()
        self._replies = replies

    async def asked_for(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int | None:
        for reply in self._replies:
            self.told.append(await reader.read(1024))
            writer.write(reply)
        return None if self._replies[-1] not in OPENED.values() else int.from_bytes(self.told[-1][-2:], "big")


OPENED = {
    "IPv4": b"\5\0\0\1" + bytes(6),
    "IPv6": b"\5\0\0\4" + bytes(18),
    "a name": b"\5\0\0\3\5proxy\0\0",
}
NO_LOGIN, WITH_LOGIN = b"\5\0", b"\5\2"


def server_context(folder: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    for name in ("SERVER", "SERVER_KEY"):
        (folder / name).write_text(getattr(certificates, name))
    context.load_cert_chain(folder / "SERVER", folder / "SERVER_KEY")
    return context


def through(proxy: ProxyServer, folder: Path, scheme: str = "http", login: str = LOGIN) -> str:
    """The name of the node that a client gets to see through the proxy."""
    context = server_context(folder)

    async def check() -> str:
        secured = context if scheme == "https" else None
        listening = await asyncio.start_server(proxy.serve, "127.0.0.1", 0, ssl=secured)
        port = listening.sockets[0].getsockname()[1]
        stub = Stub()
        stub.put("nodes", {"metadata": {"name": "n1"}})
        async with serving(stub, context), listening:
            way = secure_access(stub)
            way.server = Server("127.0.0.1", stub.port, proxy=Proxy("127.0.0.1", port, scheme, login))
            async with Client(way, clock=HandClock()) as client:
                return (await client.get(NODES.at("n1"))).metadata.name

    return run(check())


def test_a_proxy_is_asked_for_the_way_and_sees_nothing_else(tmp_path: Path) -> None:
    proxy = ConnectProxy()
    assert through(proxy, tmp_path) == "n1"
    (head,) = proxy.told
    assert head.startswith(b"CONNECT 127.0.0.1:")
    assert b"Proxy-Authorization: Basic bWU6cHc=" in head
    assert b"nodes" not in head


def test_a_proxy_may_be_reached_over_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ca").write_text(certificates.AUTHORITY)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca"))
    assert through(ConnectProxy(), tmp_path, "https") == "n1"


def test_a_proxy_over_tls_that_the_system_does_not_trust_is_left(tmp_path: Path) -> None:
    with pytest.raises(errors.Unreachable, match="is not trusted"):
        through(ConnectProxy(), tmp_path, "https")


@pytest.mark.parametrize("reply", [b"HTTP/1.1 407 Who are you\r\n\r\n", b"what?\r\n\r\n"], ids=["407", "no HTTP"])
def test_a_proxy_that_refuses_is_named(reply: bytes, tmp_path: Path) -> None:
    with pytest.raises(errors.Unreachable, match=r"the proxy 127.0.0.1:\d+ refused a tunnel to"):
        through(ConnectProxy(reply), tmp_path)


@pytest.mark.parametrize("opened", OPENED.values(), ids=OPENED)
def test_a_socks_proxy_opens_the_way(opened: bytes, tmp_path: Path) -> None:
    proxy = SocksProxy(NO_LOGIN, opened)
    assert through(proxy, tmp_path, "socks5", login="") == "n1"
    assert proxy.told[0] == b"\5\1\0"
    assert proxy.told[1][:-2] == b"\5\1\0\1" + ADDRESS


def test_a_socks_proxy_gets_the_login_that_it_requests(tmp_path: Path) -> None:
    proxy = SocksProxy(WITH_LOGIN, b"\1\0", OPENED["IPv4"])
    assert through(proxy, tmp_path, "socks5h") == "n1"
    assert proxy.told[:2] == [b"\5\2\0\2", b"\1\2me\2pw"]


SOCKS_REFUSALS = {
    "no way to log in": ((b"\5\xff",), "it accepts none of our authentication methods"),
    "a wrong login": ((WITH_LOGIN, b"\1\1"), "authentication failed"),
    "its rules": ((NO_LOGIN, b"\5\2\0\1" + bytes(6)), "not allowed by its rules"),
    "a reply nobody knows": ((NO_LOGIN, b"\5\x63\0\1" + bytes(6)), "reply 99"),
    "another protocol": ((b"HT",), "does not speak SOCKS5"),
}


@pytest.mark.parametrize("replies, words", SOCKS_REFUSALS.values(), ids=SOCKS_REFUSALS)
def test_a_socks_proxy_that_refuses_is_named(replies: tuple[bytes, ...], words: str, tmp_path: Path) -> None:
    with pytest.raises(errors.Unreachable, match=rf"refused a tunnel to .*{words}"):
        through(SocksProxy(*replies), tmp_path, "socks5")
