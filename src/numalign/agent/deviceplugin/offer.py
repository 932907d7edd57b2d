"""What a device plugin offers under one resource name, and what a container that gets some of it receives.

`devicepluginconfig` reads offers from files, `deviceplugin` serves them. In what a container receives `{id}` stands
for a device, the entry then comes once for each, and `{ids}` for all of them, joined by commas. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, structs

from numalign.agent.deviceplugin.preference import Policy
from numalign.api.decode import protomessages
from numalign.api.decode.protomessages import Tree
from numalign.kubelet.machine import DevicePlugin

EACH: Final = "{id}"
ALL: Final = "{ids}"


class Mount(Struct, frozen=True):
    container: str
    host: str
    read_only: bool = False


class DeviceFile(Struct, frozen=True):
    container: str
    host: str
    permissions: str = "rw"


class CdiDevice(Struct, frozen=True):
    name: str


class Gift(Struct, frozen=True):
    """What Allocate answers."""

    env: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    mounts: tuple[Mount, ...] = ()
    files: tuple[DeviceFile, ...] = ()
    cdi: tuple[CdiDevice, ...] = ()

    def to(self, ids: Sequence[str]) -> Tree:
        """For a container with these devices, in the names of `devicepluginmessages`."""
        return {
            "env": protomessages.entries(_filled(self.env, ids)),
            "annotations": protomessages.entries(_filled(self.annotations, ids)),
            "mounts": _repeated(self.mounts, ids),
            "files": _repeated(self.files, ids),
            "cdi": _repeated(self.cdi, ids),
        }


class Offer(Struct, frozen=True):
    plugin: DevicePlugin
    prefer: Policy = "none"
    pre_start: bool = False
    gift: Gift = Gift()

    @property
    def options(self) -> Tree:
        """What the kubelet asks about once, when the plugin registers."""
        return {"pre_start": self.pre_start, "preferred_allocation": self.prefer != "none"}


def _filled(texts: Mapping[str, str], ids: Sequence[str]) -> dict[str, str]:
    return {key: text.replace(ALL, ",".join(ids)) for key, text in texts.items()}


def _repeated(entries: Sequence[Struct], ids: Sequence[str]) -> list[Tree]:
    return [filled for entry in entries for filled in _each(structs.asdict(entry), ids)]


def _each(entry: Tree, ids: Sequence[str]) -> list[Tree]:
    if not any(isinstance(value, str) and EACH in value for value in entry.values()):
        return [entry]
    return [{key: _named(value, each) for key, value in entry.items()} for each in ids]


def _named(value: Any, each: str) -> Any:
    return value.replace(EACH, each) if isinstance(value, str) else value
