"""Ports of nodes that pods take for themselves: which pod asks for which, and which rows have them in use.

`world` keeps `PortsInUse`, the NodePorts rule reads it. An address of all zeros, or none, means every address of the
node (kube-scheduler spec 1.7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from numalign.api.objects.pod import Container, Pod

EVERY_ADDRESS: Final = "0.0.0.0"


class HostPort(NamedTuple):
    address: str
    protocol: str
    port: int


def wanted(pod: Pod) -> tuple[HostPort, ...]:
    """Of sidecars and containers; plain init containers are over before anybody could be in the way."""
    if not pod.spec.init_containers and not _has_any(pod.spec.containers):
        return ()
    sidecars = filter(lambda container: container.is_sidecar, pod.spec.init_containers)
    return tuple(
        HostPort(port.host_ip or EVERY_ADDRESS, port.protocol or "TCP", port.host_port)
        for container in (*sidecars, *pod.spec.containers)
        for port in container.ports
        if port.host_port > 0
    )


def _has_any(containers: Iterable[Container]) -> bool:
    for container in containers:
        for port in container.ports:
            if port.host_port > 0:
                return True
    return False


def conflict(wish: HostPort, used: HostPort) -> bool:
    return (wish.protocol, wish.port) == (used.protocol, used.port) and (
        EVERY_ADDRESS in (wish.address, used.address) or wish.address == used.address
    )


class PortsInUse:
    """Counts by port, address and row: pods put there by hand can use the same port of a node twice."""

    def __init__(self) -> None:
        self._uses: dict[tuple[str, int], dict[str, Counter[int]]] = {}

    def add(self, row: int, ports: Iterable[HostPort]) -> None:
        for port in ports:
            addresses = self._uses.setdefault((port.protocol, port.port), {})
            addresses.setdefault(port.address, Counter())[row] += 1

    def remove(self, row: int, ports: Iterable[HostPort]) -> None:
        for port in ports:
            addresses = self._uses[port.protocol, port.port]
            rows = addresses[port.address]
            rows[row] -= 1
            if not rows[row]:
                del rows[row]
            if not rows:
                del addresses[port.address]
            if not addresses:
                del self._uses[port.protocol, port.port]

    def rows(self, wish: HostPort) -> NDArray[np.intp]:
        """Where the wish cannot be had; a row may be named twice."""
        addresses = self._uses.get((wish.protocol, wish.port), {})
        every = wish.address == EVERY_ADDRESS
        held = [rows for address, rows in addresses.items() if every or address in (wish.address, EVERY_ADDRESS)]
        return np.array([row for rows in held for row in rows], np.intp)
