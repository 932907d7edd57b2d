"""Devices that were offered and are not any more: what is written down of them is old.

`readings` asks after every look. When a device plugin dies, or a kubelet starts again and its plugins have not yet,
the kubelet offers no devices and leaves its checkpoint as it was. Taken by itself, that looks as if there were devices
whose topology names no zone, which are kept out of what is offered too (exporter spec 2.4)."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from numalign.agent.sources.checkpoints import DeviceCheckpoint
from numalign.agent.sources.podresources import Allocatable

Ids = dict[str, frozenset[str]]
"""By resource."""


class Vanished:
    """For one node, look after look."""

    def __init__(self) -> None:
        self._seen: Ids = {}

    def left_out(self, written: DeviceCheckpoint | None, offered: Allocatable | None) -> DeviceCheckpoint | None:
        """The checkpoint without devices that are known to be gone."""
        if written is None or offered is None:
            return written
        now = _ids(offered)
        there = {name: ids - self._gone(name, now) for name, ids in written.registered.items()}
        self._seen = {name: self._seen.get(name, frozenset()) | now.get(name, frozenset()) for name in self._seen | now}
        return written if there == written.registered else structs.replace(written, registered=there)

    def _gone(self, resource: str, now: Mapping[str, frozenset[str]]) -> frozenset[str]:
        return self._seen.get(resource, frozenset()) - now.get(resource, frozenset())


def _ids(offered: Allocatable) -> Ids:
    found: Ids = {}
    for entry in offered.devices:
        found[entry.resource] = found.get(entry.resource, frozenset()).union(entry.ids)
    return found
