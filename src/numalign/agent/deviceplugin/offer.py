"""What a device plugin offers under one resource name, what a container receives, and which devices it prefers.

`config` reads offers from files, `plugin` serves them and answers GetPreferredAllocation. In what a container receives,
`{id}` stands for a device and repeats the entry for each; `{ids}` stands for all of them, joined by commas. The
preference `lowest` is what the kubelet model assumes. Equal choices go to the lower zone and the lower id. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct, structs

from numalign.api.decode import protobuf
from numalign.api.decode.protobuf import Tree
from numalign.kubelet import device
from numalign.kubelet.device import Ids, Preference
from numalign.kubelet.machine.machine import DevicePlugin

Policy = Literal["none", "lowest", "packed", "spread"]
POLICIES: Final[tuple[Policy, ...]] = ("none", "lowest", "packed", "spread")
NOWHERE: Final = 1 << 16
"""The zone of devices without one; sorts after all others."""

Zones = Mapping[str, tuple[int, ...] | None]


def preferred(policy: Policy, asked: Preference, zones: Zones) -> Ids:
    """As many devices as requested, with those that must be included first; fewer where there are not enough."""
    if policy == "packed":
        return _packed(asked, zones)
    return _spread(asked, zones) if policy == "spread" else device.lowest_ids(asked)


def _packed(asked: Preference, zones: Zones) -> Ids:
    """As few zones as possible: those already in use, then the fullest that has enough, then the emptiest."""
    chosen, free = set(asked.must_include), set(asked.available - asked.must_include)
    while free and (missing := asked.size - len(chosen)) > 0:
        zone = _tightest(missing, set(_zones_of(chosen, zones)), Counter(_zones_of(free, zones)))
        taken = sorted(each for each in free if zone in _places(each, zones))[:missing]
        chosen.update(taken)
        free.difference_update(taken)
    return frozenset(chosen)


def _tightest(missing: int, used: Container[int], left: Counter[int]) -> int:
    def rank(zone: int) -> tuple[int, ...]:
        enough = left[zone] >= missing
        return zone == NOWHERE, zone not in used, not enough, left[zone] if enough else -left[zone], zone

    return min(left, key=rank)


def _spread(asked: Preference, zones: Zones) -> Ids:
    """One by one, from the zone that gave the fewest, and of these the one with the most left."""
    chosen, free = set(asked.must_include), set(asked.available - asked.must_include)
    while free and len(chosen) < asked.size:
        given, left = Counter(_zones_of(chosen, zones)), Counter(_zones_of(free, zones))
        zone = min(left, key=lambda zone: (given[zone], -left[zone], zone))
        taken = min(each for each in free if zone in _places(each, zones))
        chosen.add(taken)
        free.remove(taken)
    return frozenset(chosen)


def _zones_of(ids: Iterable[str], zones: Zones) -> Iterable[int]:
    return (zone for each in ids for zone in _places(each, zones))


def _places(each: str, zones: Zones) -> tuple[int, ...]:
    return zones.get(each) or (NOWHERE,)


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
    """The response to Allocate."""

    env: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    mounts: tuple[Mount, ...] = ()
    files: tuple[DeviceFile, ...] = ()
    cdi: tuple[CdiDevice, ...] = ()

    def to(self, ids: Sequence[str]) -> Tree:
        """The response for a container with these devices."""
        return {
            "env": protobuf.entries(_filled(self.env, ids)),
            "annotations": protobuf.entries(_filled(self.annotations, ids)),
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
        """The plugin's options, which the kubelet reads at registration."""
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
