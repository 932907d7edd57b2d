"""Where an API server is, and the way to it: address, name in its certificate, proxy.

`kubeconfig` and `incluster` make a `Server`, `dialing` connects to it. The environment's proxy settings count where
the kubeconfig has none, as they do for kubectl."""

import ipaddress
from collections.abc import Mapping
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from msgspec import Struct

PORTS: Final = {"https": 443, "http": 80, "socks5": 1080, "socks5h": 1080}
SERVERS: Final = ("https", "http")
OURSELVES: Final = frozenset({"localhost", "127.0.0.1", "::1"})


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


def server(url: str, tls_name: str = "", proxy: Proxy | None = None) -> Server:
    """From a URL; ValueError says what is wrong with it."""
    parts = _parts(url)
    if parts.scheme not in SERVERS:
        raise ValueError("is not a URL that begins with https:// or http://")
    host, port = _place(parts)
    return Server(host, port, parts.scheme == "https", parts.path.rstrip("/"), tls_name, proxy)


def proxy(url: str) -> Proxy:
    """From a URL; ValueError says what is wrong with it and never quotes its password."""
    parts = _parts(url)
    if parts.scheme not in PORTS:
        raise ValueError("is not a URL that begins with http://, https:// or socks5://")
    login = f"{unquote(parts.username)}:{unquote(parts.password or '')}" if parts.username else ""
    return Proxy(*_place(parts), parts.scheme, login)


def proxy_from(environment: Mapping[str, str], url: str) -> Proxy | None:
    """The proxy that HTTPS_PROXY, HTTP_PROXY and NO_PROXY select for this server, if any."""
    parts = _parts(url)
    name = f"{parts.scheme}_proxy"
    chosen = environment.get(name.upper()) or environment.get(name) or ""
    passed_by = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    host = parts.hostname or ""
    if not chosen or host in OURSELVES or any(_covers(rule.strip(), host) for rule in passed_by.split(",")):
        return None
    return proxy(chosen if "://" in chosen else f"http://{chosen}")


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
