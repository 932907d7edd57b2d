"""Inputs on which RTE and NFD panic. The agent answers them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from numalign.api.objects import resourcenames
from numalign.oracle.publishers import publisherstates

Row = Mapping[str, Any]


def _beyond(row: Row) -> bool:
    """A device in a zone that the machine does not have (D-01)."""
    zones = range(len(publisherstates.machine(row).zones))
    offered = publisherstates.allocatable(row).devices
    return any(zone not in zones for entry in offered for zone in entry.zones or ())


def _by_place(row: Row) -> bool:
    """Zone ids that differ from their places in the list (D-02)."""
    return not publisherstates.in_a_row(row)


def _left_out_and_held(row: Row) -> bool:
    """A CPU or device that a pod holds, of an excluded kind (D-25)."""
    left_out = publisherstates.excluded(row) - {resourcenames.MEMORY}
    held = [container for pod in publisherstates.pods(row) for container in pod.containers]
    cpus = {cpu for container in held for cpu in container.cpus} & {*publisherstates.allocatable(row).cpus}
    devices = {entry.resource for container in held for entry in container.devices if entry.ids}
    return bool(left_out & (devices | ({resourcenames.CPU} if cpus else set())))


CRASHES: Final[Mapping[str, tuple[Callable[[Row], bool], ...]]] = {
    "exporter.scan": (_beyond, _by_place),
    "updater.aggregate": (_left_out_and_held,),
}


def expected(suite: str, row: Row) -> bool:
    return any(crashes(row) for crashes in CRASHES.get(suite, ()))
