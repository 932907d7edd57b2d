"""Serves device plugins on their sockets and registers them with the kubelet, through restarts and changed offers.

`numalign device-plugin run` runs `Plugins.run`. A kubelet that starts removes all sockets of its plugin folder and
creates its own; both are checked several times a second. An offer file that cannot be read changes nothing: the
previous offer stays."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from numalign.agent.deviceplugin.config import Offers
from numalign.agent.deviceplugin.offer import Offer
from numalign.agent.deviceplugin.plugin import REGISTER, REGISTRATION, VERSION, Plugin
from numalign.api.decode import protobuf
from numalign.api.errors import BadObject
from numalign.process import log, rpc

LOG: Final = logging.getLogger(__name__)
FOLDER: Final = "device-plugins"
"""Below the kubelet's root folder."""
KUBELET: Final = "kubelet.sock"
PATIENCE: Final = 15.0
"""Seconds; the kubelet connects back before it answers, within 10 seconds."""
INTERVAL: Final = 0.25
"""Seconds between checks; until the plugin registers, the kubelet rejects pods that request its devices."""


class Registered:
    """One plugin, its socket, and its registration with the kubelet."""

    def __init__(self, folder: Path, plugin: Plugin) -> None:
        self.plugin = plugin
        self._kubelet = folder / KUBELET
        self._socket = folder / f"numalign-{plugin.resource.replace('/', '_')}.sock"
        self._server: rpc.Server | None = None
        self._served: rpc.Identity | None = None
        self._known_to: rpc.Identity | None = None
        self._trouble = ""

    async def keep(self) -> None:
        """Serves and registers the plugin if needed; the next call retries what fails."""
        kubelet = _seen(self._kubelet)
        if kubelet is None:
            return self._log_failure(
                f"there is no socket {self._kubelet}; the kubelet is not running yet, or uses another folder"
            )
        lost = self._served is None or _seen(self._socket) != self._served
        if lost or self._known_to != kubelet or self.plugin.left:
            try:
                await self._serve(again=lost)
                await self._register()
            except rpc.CallFailed as problem:
                self._log_failure("the kubelet does not answer" if problem.code == "UNAVAILABLE" else problem.text)
            except (OSError, RuntimeError) as problem:
                self._log_failure(f"{self._socket} cannot be served: {problem}")
            else:
                self._known_to, self._trouble = kubelet, ""

    async def _serve(self, *, again: bool) -> None:
        if again:
            await self.stop()
            self._server = rpc.Server(self._socket, self.plugin.service())
            await self._server.start()
            self._served = _seen(self._socket)

    async def _register(self) -> None:
        request = {
            "version": VERSION,
            "endpoint": self._socket.name,
            "resource": self.plugin.resource,
            "options": self.plugin.offer.options,
        }
        channel = rpc.Channel(self._kubelet)
        try:
            body = protobuf.encode_message(request, REGISTER)
            await channel.call(f"/{REGISTRATION}/Register", body, PATIENCE)
        finally:
            await channel.close()
        LOG.info("Registered device plugin with kubelet", extra=_about(self.plugin.resource, self.plugin.offer))

    def _log_failure(self, trouble: str) -> None:
        # Logged once, although it is retried.
        if trouble != self._trouble:
            LOG.warning(
                "Failed to register device plugin, retrying: %s",
                trouble,
                extra=log.about(resource=self.plugin.resource),
            )
        self._trouble = trouble

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop()
        self._server = self._served = self._known_to = None


class Plugins:
    """All plugins of a process. `read` returns the current offers, and is called again when `file` changes."""

    def __init__(self, folder: Path, read: Callable[[], Offers], file: Path | None = None) -> None:
        self.again = asyncio.Event()
        """Set to reload the offers at once, for example on SIGHUP."""
        self._folder = folder
        self._read = read
        self._file = file
        self._version: rpc.Identity | None = None
        self._plugins: dict[str, Registered] = {}

    async def run(self, interval: float = INTERVAL) -> None:
        """Runs until cancelled. BadObject if the first offer is invalid."""
        self._version = self._file_version()
        await self._offer(self._read())
        try:
            while True:
                await self._keep_all()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.again.wait(), interval)
                await self._look_again()
        finally:
            await asyncio.shield(self._stop_all())

    async def _keep_all(self) -> None:
        await asyncio.gather(*(each.keep() for each in self._plugins.values()))

    async def _stop_all(self) -> None:
        await asyncio.gather(*(each.stop() for each in self._plugins.values()))

    async def _look_again(self) -> None:
        version = self._file_version()
        if version == self._version and not self.again.is_set():
            return
        self._version = version
        self.again.clear()
        try:
            offers = self._read()
        except BadObject as problem:
            LOG.error("Keeping the previous offer: %s", problem)
        else:
            await self._offer(offers)

    async def _offer(self, offers: Offers) -> None:
        for resource in self._plugins.keys() - offers.keys():
            await self._plugins.pop(resource).stop()
        for resource, offer in offers.items():
            await self._offer_one(resource, offer)

    async def _offer_one(self, resource: str, offer: Offer) -> None:
        present = self._plugins.get(resource)
        if present is not None and present.plugin.offer.options == offer.options:
            if present.plugin.offer != offer:
                LOG.info("Offer changed", extra=_about(resource, offer))
                present.plugin.change(offer)
            return
        # The kubelet reads options only at registration.
        if present is not None:
            await present.stop()
        self._plugins[resource] = Registered(self._folder, Plugin(resource, offer))

    def _file_version(self) -> rpc.Identity | None:
        return None if self._file is None else _seen(self._file)


def _about(resource: str, offer: Offer) -> dict[str, Any]:
    devices = offer.plugin.devices
    return log.about(resource=resource, devices=len(devices), healthy=sum(device.healthy for device in devices))


def _seen(path: Path) -> rpc.Identity | None:
    try:
        return rpc.identity_of(path)
    except rpc.CallFailed:
        return None
