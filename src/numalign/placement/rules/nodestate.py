"""Host ports in use, and container images, by node.

`ClusterState` keeps both; NodePorts and ImageLocality read them. The address 0.0.0.0, or none, means every address
of the node (kube-scheduler spec 1.7). The size of an image is the one that the node reported which brought its name
first, as in kube-scheduler's cache."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Final, NamedTuple

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from numalign.api.caches import StampedCache
from numalign.api.objects.node import ContainerImage
from numalign.api.objects.pod import Container, Pod

EVERY_ADDRESS: Final = "0.0.0.0"


class HostPort(NamedTuple):
    address: str
    protocol: str
    port: int


def wanted(pod: Pod) -> tuple[HostPort, ...]:
    """The host ports of sidecars and containers. Other init containers end before their ports can conflict."""
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
        """Rows on which the port is in use; a row may be listed twice."""
        addresses = self._uses.get((wish.protocol, wish.port), {})
        every = wish.address == EVERY_ADDRESS
        held = [rows for address, rows in addresses.items() if every or address in (wish.address, EVERY_ADDRESS)]
        return np.array([row for rows in held for row in rows], np.intp)


MOST_SCORES: Final = 256


class ImageState(Struct):
    size: int
    rows: set[int] = field(default_factory=set)
    _listed: NDArray[np.intp] | None = None

    def listed(self) -> NDArray[np.intp]:
        """The rows as an array, cached until one is added or removed."""
        if self._listed is None:
            self._listed = np.fromiter(self.rows, np.intp, len(self.rows))
        return self._listed

    def add(self, row: int) -> None:
        self.rows.add(row)
        self._listed = None

    def discard(self, row: int) -> None:
        self.rows.discard(row)
        self._listed = None


class Images:
    def __init__(self) -> None:
        self.by_name: dict[str, ImageState] = {}
        self.generation = 0
        """Raised whenever a node has other images."""
        self.scores: StampedCache[Hashable, NDArray[np.int64]] = StampedCache(MOST_SCORES)
        """What the rule makes of them, by the images that a pod asks for."""
        self._of_row: dict[int, tuple[ContainerImage, ...]] = {}

    def put(self, row: int, images: tuple[ContainerImage, ...]) -> None:
        if self._of_row.get(row, ()) == images:
            return
        self.generation += 1
        for name, _ in _names(self._of_row.pop(row, ())):
            self._forget(name, row)
        for name, size in _names(images):
            self.by_name.setdefault(name, ImageState(size)).add(row)
        if images:
            self._of_row[row] = images

    def _forget(self, name: str, row: int) -> None:
        state = self.by_name.get(name)
        if state is None:
            return
        state.discard(row)
        if not state.rows:
            del self.by_name[name]


def _names(images: Iterable[ContainerImage]) -> Iterable[tuple[str, int]]:
    return ((name, image.size_bytes) for image in images for name in image.names)
