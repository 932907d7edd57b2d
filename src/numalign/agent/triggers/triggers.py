"""Waits for the next reason to read the node: the kubelet's files, a notification file, lost devices, and time.

`cycle` waits here between two snapshots. `schedule` decides when, `filewatch` reports changed files. When a device
plugin or the kubelet itself ends, no file changes, and until a report says so, pods are bound to the node and rejected.
So `ConnectionWatch` keeps a connection to each of these programs, which breaks when the program ends, and
`KubeletWatch` then asks the kubelet which devices it offers. It also asks every second: a connection does not show a
device that fails, nor a kubelet that hangs."""

from __future__ import annotations

import asyncio
import os
import stat
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from numalign.agent.deviceplugin.server import KUBELET
from numalign.agent.inventory.readings import PodResourcesSource
from numalign.agent.sources import checkpoints, podresources
from numalign.agent.sources.filewatch import Watch
from numalign.agent.sources.podresources import Allocatable, DeviceEntry, PodResources, PodResourcesError
from numalign.agent.triggers.schedule import Due, Pace
from numalign.api import errors
from numalign.kube.clock import Clock, SystemClock
from numalign.process import rpc

STATE: Final = "kubelet-state"
SOCKET: Final = "podresources"
NOTIFIED: Final = "notified"
ASKED: Final = "asked"
LOOK: Final = 1.0
"""Seconds between two polls of files that inotify does not cover."""


def notification(text: str) -> Path | None:
    """The notification file; None for empty text. BadObject for a folder, which RTE refuses, too."""
    path = Path(text)
    if text and path.is_dir():
        why = f"{text} is a folder; name a file in it that other programs touch"
        raise errors.BadObject("Agent", "settings", "notify file", why)
    return path if text else None


def of_kubelet(
    root: Path, device_plugins: Path, notification: Path | None = None, socket: Path | None = None
) -> dict[Path, str]:
    """The files of a kubelet with these folders, and the notification file (exporter spec 4.8)."""
    files = (root / checkpoints.CPU, root / checkpoints.MEMORY, device_plugins / checkpoints.DEVICES)
    state = dict.fromkeys(files, STATE)
    # Writing through a link touches another file.
    asked = dict.fromkeys((notification, notification.resolve()), NOTIFIED) if notification else {}
    return state | {socket or root / podresources.SOCKET: SOCKET} | asked


class Triggers:
    """Use with `async with`; one task waits, any task may request a snapshot."""

    def __init__(self, files: Mapping[Path, str], pace: Pace | None = None, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._due = Due(pace or Pace())
        self._watch = Watch(files, self.ask)
        self._woken = asyncio.Event()
        self._began = (self._clock.now(), time.process_time())
        """The last snapshot, in clock time and CPU time."""

    async def __aenter__(self) -> Triggers:
        self._watch.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._watch.close()

    def ask(self, reason: str = ASKED, *, urgent: bool = False) -> None:
        """Requests a snapshot soon, or at once."""
        self._due.request(reason, self._clock.now(), urgent=urgent)
        self._woken.set()

    def ask_again(self, after: float, reason: str = ASKED) -> None:
        """Requests a snapshot after a delay: the kubelet frees a pod's resources some time after it ended."""
        self._due.request_at(reason, self._clock.now() + after)
        self._woken.set()

    async def wait(self) -> frozenset[str]:
        """Waits for the next snapshot and returns its reasons. The first is due at once."""
        look = time.process_time() - self._began[1]
        while (pause := self._due.at() - self._clock.now()) > 0:
            self._woken.clear()
            await self._woken_within(pause if self._watch.covered else min(pause, LOOK))
            self._watch.look()
        now, used = self._clock.now(), time.process_time()
        # Under constant requests, all CPU time of the process counts for snapshots.
        busy = now - self._began[0] <= self._due.pace.longest_gap
        self._due.spent(used - self._began[1] if busy else look)
        self._began = now, used
        return self._due.take(now, self._clock.chance())

    async def _woken_within(self, seconds: float) -> None:
        try:
            async with self._clock.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            pass


REASON: Final = "devices"
EVERY: Final = 1.0
AFTER_BREAK: Final = (0.05, 0.25)
"""Seconds from a broken connection to the first poll, and from that to the second: the kubelet's own connection to the
plugin breaks at the same time, and its devices are withdrawn a moment later."""


class KubeletWatch:
    def __init__(self, kubelet: PodResourcesSource) -> None:
        self._kubelet = kubelet
        self._offered: tuple[DeviceEntry, ...] = ()
        self._is_away = self._has_answered = False
        """The latter: a snapshot, since the last poll."""

    async def list(self) -> tuple[PodResources, ...]:
        found = await self._kubelet.list()
        self._has_answered = True
        return found

    async def allocatable(self) -> Allocatable | None:
        found = await self._kubelet.allocatable()
        self._offered = _devices(found)
        return found

    async def follow(self, changed: Callable[[], None], clock: Clock) -> None:
        """Runs until cancelled. Failures of the kubelet are only noticed here; snapshots report them."""
        while True:
            await clock.sleep(EVERY)
            # On a busy node every other poll is left out: the snapshots cost enough.
            if not self._has_answered and await self._has_changed():
                changed()
            self._has_answered = False

    async def check(self, changed: Callable[[], None], clock: Clock) -> None:
        """Polls soon: the kubelet or a device plugin has ended."""
        for seconds in AFTER_BREAK:
            await clock.sleep(seconds)
            if await self._has_changed():
                return changed()

    async def _has_changed(self) -> bool:
        """Whether other devices are offered than the last snapshot saw, or the kubelet is away or back."""
        was_away = self._is_away
        try:
            offered = _devices(await self._kubelet.allocatable())
        except PodResourcesError as failure:
            self._is_away = failure.kind == "unavailable"
            return self._is_away and not was_away
        self._is_away = False
        return was_away or offered != self._offered


def _devices(found: Allocatable | None) -> tuple[DeviceEntry, ...]:
    return found.devices if found is not None else ()


MOST_CONNECTIONS: Final = 64
RETRY: Final = 10.0
"""Seconds until the next attempt at a socket that does not answer, such as that of a plugin that was killed."""

Served = tuple[Path, rpc.Identity]
"""A socket of one process: each makes a new file."""


class ConnectionWatch:
    """Connections on which nothing is requested, to the kubelet and to every device plugin."""

    def __init__(self, kubelet: Path, plugins: Path) -> None:
        self._kubelet = kubelet
        self._plugins = plugins
        self._kept: set[Served] = set()

    async def follow(self, broken: Callable[[], Awaitable[None]], clock: Clock) -> None:
        """Runs until cancelled; awaits `broken` after every connection that breaks."""
        async with asyncio.TaskGroup() as connections:
            while True:
                for served in self._sockets():
                    if served not in self._kept and len(self._kept) < MOST_CONNECTIONS:
                        self._kept.add(served)
                        connections.create_task(self._keep(served, broken, clock))
                await clock.sleep(EVERY)

    def _sockets(self) -> Iterator[Served]:
        for path in (self._kubelet, *_sockets_in(self._plugins)):
            try:
                yield path, rpc.identity_of(path)
            except rpc.CallFailed:
                continue

    async def _keep(self, served: Served, broken: Callable[[], Awaitable[None]], clock: Clock) -> None:
        try:
            if await _breaks(served[0]):
                await broken()
            else:
                await clock.sleep(RETRY)
        finally:
            self._kept.discard(served)


async def _breaks(socket: Path) -> bool:
    """Waits for the end of a connection; False: there is none."""
    try:
        channel = rpc.Channel(socket)
    except rpc.CallFailed:
        return False
    try:
        return await channel.broken()
    finally:
        await channel.close()


def _sockets_in(folder: Path) -> list[Path]:
    """Without links, and without the kubelet's own socket: the kubelet has another one, which is watched."""
    try:
        with os.scandir(folder) as entries:
            found = [Path(each.path) for each in entries if stat.S_ISSOCK(each.stat(follow_symlinks=False).st_mode)]
    except OSError:
        return []
    return sorted(path for path in found if path.name != KUBELET)
