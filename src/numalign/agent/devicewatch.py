"""Devices that go without a file that changes: the kubelet is asked every few seconds what it offers.

`main` runs `follow` beside the agent. When a device plugin dies, the kubelet notes in its memory alone that the devices
are gone; until a report says so, pods are sent for them and turned away. A plugin that registers changes a checkpoint,
so that where there are no devices there is nothing to ask for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from numalign.agent.podresources import Allocatable, DeviceEntry, PodResourcesError
from numalign.kube.clock import Clock

REASON: Final = "devices"
EVERY: Final = 2.0
WITHOUT: Final = 30.0
"""Seconds between two questions, and where there are no devices."""


class Offers(Protocol):
    """What is needed of `podresources.PodResourcesClient`."""

    async def allocatable(self) -> Allocatable | None: ...


async def follow(kubelet: Offers, changed: Callable[[], None], clock: Clock) -> None:
    """Until cancelled. A kubelet that does not answer is for others to tell."""
    last: tuple[DeviceEntry, ...] | None = None
    while True:
        await clock.sleep(WITHOUT if last == () else EVERY)
        try:
            found = await kubelet.allocatable()
        except PodResourcesError:
            continue
        devices = found.devices if found is not None else ()
        if last is not None and devices != last:
            changed()
        last = devices
