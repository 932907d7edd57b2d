"""Devices that go without a file that changes: the kubelet is asked every few seconds what it offers.

It stands between the looks and the kubelet, so that it knows what the last look was told, and `main` runs `follow`
beside the agent. When a device plugin dies, the kubelet notes in its memory alone that the devices are gone; until a
report says so, pods are sent for them and turned away. A plugin that registers changes a checkpoint, so that where
there are no devices there is nothing to ask for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from numalign.agent.inventory.readings import PodResourcesSource
from numalign.agent.sources.podresources import Allocatable, DeviceEntry, PodResources, PodResourcesError
from numalign.kube.clock import Clock

REASON: Final = "devices"
EVERY: Final = 3.0


class DeviceWatch:
    def __init__(self, kubelet: PodResourcesSource) -> None:
        self._kubelet = kubelet
        self._told: tuple[DeviceEntry, ...] = ()

    async def list(self) -> tuple[PodResources, ...]:
        return await self._kubelet.list()

    async def allocatable(self) -> Allocatable | None:
        found = await self._kubelet.allocatable()
        self._told = _devices(found)
        return found

    async def follow(self, changed: Callable[[], None], clock: Clock) -> None:
        """Until cancelled. A kubelet that does not answer is for others to tell."""
        while True:
            await clock.sleep(EVERY)
            if self._told and await self._has_changed():
                changed()

    async def _has_changed(self) -> bool:
        try:
            return _devices(await self._kubelet.allocatable()) != self._told
        except PodResourcesError:
            return False


def _devices(found: Allocatable | None) -> tuple[DeviceEntry, ...]:
    return found.devices if found is not None else ()
