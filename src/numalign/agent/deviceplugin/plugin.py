"""The device plugin of one resource: its answers to the kubelet's calls (device plugin API v1beta1).

`server` serves it on a socket. The kubelet asks for options, keeps one ListAndWatch stream open, which carries every
change of the offer, and asks for preferences and allocations. Devices are made up: nothing is opened or reset. A
request for devices that are not offered is refused, so that the pod's status shows it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from typing import Final

from numalign.agent.deviceplugin.offer import Offer, preferred
from numalign.api.decode import protobuf
from numalign.api.decode.protobuf import TEXTS, BadProtobuf, Message, MessageField, Tree
from numalign.kubelet.device import Preference
from numalign.kubelet.machine.machine import Device
from numalign.process import log, rpc

VERSION: Final = "v1beta1"
REGISTRATION: Final = "v1beta1.Registration"
PLUGIN: Final = "v1beta1.DevicePlugin"
HEALTHY: Final = "Healthy"
UNHEALTHY: Final = "Unhealthy"

OPTIONS: Final[Message] = {1: MessageField("pre_start", "bool"), 2: MessageField("preferred_allocation", "bool")}
REGISTER: Final[Message] = {
    1: MessageField("version", "string"),
    2: MessageField("endpoint", "string"),
    3: MessageField("resource", "string"),
    4: MessageField("options", OPTIONS),
}

ZONE: Final[Message] = {1: MessageField("id", "int")}
ZONES: Final[Message] = {1: MessageField("nodes", ZONE, many=True)}
DEVICE: Final[Message] = {
    1: MessageField("id", "string"),
    2: MessageField("health", "string"),
    3: MessageField("topology", ZONES),
}
DEVICES: Final[Message] = {1: MessageField("devices", DEVICE, many=True)}

IDS: Final[Message] = {1: MessageField("ids", "string", many=True)}
"""Also the request of PreStartContainer."""
PREFERENCE: Final[Message] = {
    1: MessageField("available", "string", many=True),
    2: MessageField("must_include", "string", many=True),
    3: MessageField("size", "int"),
}
PREFERENCES: Final[Message] = {1: MessageField("containers", PREFERENCE, many=True)}
PREFERRED: Final[Message] = {1: MessageField("containers", IDS, many=True)}

ALLOCATE: Final[Message] = {1: MessageField("containers", IDS, many=True)}
MOUNT: Final[Message] = {
    1: MessageField("container", "string"),
    2: MessageField("host", "string"),
    3: MessageField("read_only", "bool"),
}
DEVICE_FILE: Final[Message] = {
    1: MessageField("container", "string"),
    2: MessageField("host", "string"),
    3: MessageField("permissions", "string"),
}
CDI: Final[Message] = {1: MessageField("name", "string")}
CONTAINER: Final[Message] = {
    1: MessageField("env", TEXTS, many=True),
    2: MessageField("mounts", MOUNT, many=True),
    3: MessageField("files", DEVICE_FILE, many=True),
    4: MessageField("annotations", TEXTS, many=True),
    5: MessageField("cdi", CDI, many=True),
}
ALLOCATED: Final[Message] = {1: MessageField("containers", CONTAINER, many=True)}


LOG: Final = logging.getLogger(__name__)


class Plugin:
    def __init__(self, resource: str, offer: Offer) -> None:
        self.resource = resource
        self.offer = offer
        self.streams = 0
        self.left = False
        """The kubelet closed its ListAndWatch stream, so the plugin must register again."""
        self._changed = asyncio.Event()

    def change(self, offer: Offer) -> None:
        """Sends the new offer over the open ListAndWatch stream."""
        self.offer = offer
        self._changed.set()
        self._changed = asyncio.Event()

    def service(self) -> rpc.Service:
        calls: dict[str, rpc.Answering] = {
            "GetDevicePluginOptions": self._options,
            "GetPreferredAllocation": self._preferred,
            "Allocate": self._allocate,
            "PreStartContainer": self._pre_start,
        }
        return rpc.Service(PLUGIN, calls, {"ListAndWatch": self._list_and_watch})

    async def _options(self, request: bytes) -> bytes:
        return protobuf.encode_message(self.offer.options, OPTIONS)

    async def _list_and_watch(self, request: bytes) -> AsyncIterator[bytes]:
        self.streams += 1
        self.left = False
        try:
            while True:
                changed = self._changed
                devices = [_message(device) for device in self.offer.plugin.devices]
                yield protobuf.encode_message({"devices": devices}, DEVICES)
                await changed.wait()
        finally:
            self.streams -= 1
            self.left = self.streams == 0

    async def _preferred(self, request: bytes) -> bytes:
        asked = _read(request, PREFERENCES).get("containers", [])
        answers = [{"ids": sorted(self._choice(each))} for each in asked]
        return protobuf.encode_message({"containers": answers}, PREFERRED)

    def _choice(self, asked: Tree) -> frozenset[str]:
        available, needed = frozenset(asked.get("available", ())), frozenset(asked.get("must_include", ()))
        preference = Preference(self.resource, available, needed, asked.get("size", 0))
        zones = {device.id: device.zones for device in self.offer.plugin.devices}
        return preferred(self.offer.prefer, preference, zones)

    async def _allocate(self, request: bytes) -> bytes:
        asked = [sorted(each.get("ids", ())) for each in _read(request, ALLOCATE).get("containers", [])]
        for ids in asked:
            self._check(ids)
            LOG.info("Allocated", extra=log.about(resource=self.resource, devices=",".join(ids)))
        return protobuf.encode_message({"containers": [self.offer.gift.to(ids) for ids in asked]}, ALLOCATED)

    async def _pre_start(self, request: bytes) -> bytes:
        ids = sorted(_read(request, IDS).get("ids", ()))
        self._check(ids)
        LOG.info("PreStartContainer", extra=log.about(resource=self.resource, devices=",".join(ids)))
        return b""

    def _check(self, ids: Sequence[str]) -> None:
        unknown = sorted(set(ids) - {device.id for device in self.offer.plugin.devices})
        if unknown:
            why = f"{self.resource} has no device {', '.join(unknown)} any more"
            raise rpc.CallFailed("INVALID_ARGUMENT", why)


def _message(device: Device) -> Tree:
    health = HEALTHY if device.healthy else UNHEALTHY
    # The kubelet distinguishes a missing topology from one without zones (exporter spec 2.4).
    where = {} if device.zones is None else {"topology": {"nodes": [{"id": zone} for zone in device.zones]}}
    return {"id": device.id, "health": health, **where}


def _read(request: bytes, message: Message) -> Tree:
    try:
        return protobuf.decode_message(request, message)
    except BadProtobuf as problem:
        raise rpc.CallFailed("INVALID_ARGUMENT", str(problem)) from None
