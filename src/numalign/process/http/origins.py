"""Which pages of a browser may call a server that asks for no credentials.

A web page can send requests to a loopback address, and by DNS rebinding read the responses under a name of its own.
Browsers name the page's host in Origin and in Sec-Fetch-Site, and the server's in Host, so `Hosts` refuses foreign
ones. An IP address is never foreign, because no DNS record leads to it. A client that sends none of the headers is no
browser. `connection` asks for every request, unless the application authenticates its clients."""

import ipaddress
import socket
from collections.abc import Iterable, Mapping
from typing import Final

HEADERS: Final = ("host", "origin", "sec-fetch-site")
OWN_SITE: Final = ("", "none", "same-origin")
MISDIRECTED: Final = 421
FORBIDDEN: Final = 403
LOCAL: Final = "localhost"
CLUSTER: Final = (".svc", ".svc.cluster.local")
"""Names of services, which no public DNS server can answer for."""
MOST_KNOWN: Final = 64


class Hosts:
    def __init__(self, names: Iterable[str] = ()) -> None:
        """`names`: hosts to accept besides localhost and IP addresses; one that begins with a dot is a suffix."""
        every = {LOCAL, *(name.lower() for name in names if name)}
        self._names = frozenset(name for name in every if not name.startswith("."))
        self._suffixes = tuple(name for name in every if name.startswith("."))
        self._known: set[str] = set()
        """Host headers that were accepted."""

    def refusal(self, headers: Mapping[str, str]) -> tuple[int, str] | None:
        """The status code and the reason for which the request is not answered."""
        host = headers.get("host")
        if host is not None and host not in self._known:
            if not self._accepts(host):
                return MISDIRECTED, f"Host {host[:100]!r} is not a name of this server; use its IP address or {LOCAL}"
            if len(self._known) < MOST_KNOWN:
                self._known.add(host)
        if "origin" in headers or "sec-fetch-site" in headers:
            return foreign(host or "", headers.get("origin"), headers.get("sec-fetch-site", ""))
        return None

    def _accepts(self, host: str) -> bool:
        name = _without_port(host).lower().removesuffix(".")
        return name in self._names or name.endswith(self._suffixes) or _is_address(name)


def of_machine(address: str) -> Hosts:
    """For a server that is bound to this address: the names of the machine and of services in the cluster."""
    return Hosts((address, socket.gethostname(), *CLUSTER))


def foreign(host: str, origin: str | None, site: str) -> tuple[int, str] | None:
    """Why a request of a browser is not answered: a page of another site sent it."""
    if site.lower() not in OWN_SITE:
        return FORBIDDEN, "the request comes from a page of another site"
    if origin is not None and origin.lower().partition("://")[2] != host.lower():
        return FORBIDDEN, f"the request comes from a page of another origin, {origin[:100]!r}"
    return None


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    name, _, port = host.rpartition(":")
    return name if name and port.isdecimal() else host


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
