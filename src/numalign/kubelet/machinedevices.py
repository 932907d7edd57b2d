"""The `devices` of a machine file, read and written: per resource how many devices, or which, sit in which zone.

`machinefile` calls `read` for each resource, and `write` for the shortest form that reads back the same. The order of
keys in the file means nothing: devices come by ascending zones, then those without topology, then the listed ones.
Which of them are handed out to whom is none of this module's business."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from numalign.api import errors
from numalign.api.decode import fields
from numalign.api.decode.fields import Field
from numalign.api.objects import resourcenames
from numalign.kubelet.machine import Device, DevicePlugin

NO_TOPOLOGY, EACH = "noTopology", "each"
KEYS = (NO_TOPOLOGY, EACH, "unhealthy", "preferredAllocation")
MAX_ZONE = 63

Zones = tuple[int, ...] | None


def read(resource: str, plugin: Field, known_zones: Sequence[int], room: int) -> DevicePlugin:
    """The devices of one plugin; `room` is how many the machine may still have."""
    if not resourcenames.is_extended(resource):
        raise plugin.bad('not a name that a device plugin can register; write one like "example.com/nic"')
    placed: dict[str, Zones] = {}
    for site, identity, zones in _devices(resource, plugin, room):
        if identity in placed:
            raise site.bad(f"device {errors.echo(identity)} is named twice; give each its own id")
        _check_zones(site, zones, known_zones)
        placed[identity] = zones
    sick = _unhealthy(plugin.at("unhealthy"), placed)
    preferred = plugin.at("preferredAllocation")
    devices = tuple(Device(identity, zones, identity not in sick) for identity, zones in placed.items())
    return DevicePlugin(devices, preferred.given and fields.boolean(preferred))


def write(resource: str, plugin: DevicePlugin) -> dict[str, object]:
    groups = [(zones, [device.id for device in group]) for zones, group in groupby(plugin.devices, _zones_of)]
    order = [(zones is None, zones or ()) for zones, _ in groups]
    section: dict[str, object] = {}
    if order != sorted(set(order)) or (False, ()) in order:
        section[EACH] = [_each_text(device) for device in plugin.devices]
    else:
        start = 0
        for zones, ids in groups:
            section[_zone_key(zones)] = len(ids) if ids == _generated(resource, start, len(ids)) else ids
            start += len(ids)
    sick = [device.id for device in plugin.devices if not device.healthy]
    preferred = {"preferredAllocation": True} if plugin.preferred_allocation else {}
    return section | ({"unhealthy": sick} if sick else {}) | preferred


def _devices(resource: str, plugin: Field, room: int) -> Iterator[tuple[Field, str, Zones]]:
    """Every device with the field that names it; ids made from counts are numbered on through the whole resource."""
    sections: list[tuple[Zones, Field]] = [
        (_zones_named(key, listed), listed) for key, listed in fields.entries(plugin) if key not in KEYS
    ]
    sections.sort(key=lambda section: section[0] or ())
    start = 0
    for zones, listed in [*sections, (None, plugin.at(NO_TOPOLOGY))]:
        for identity in _ids(resource, listed, start, room):
            yield listed, identity, zones
            start += 1
    for entry in fields.items(plugin.at(EACH)):
        fields.only(entry, ("id", "zones"))
        yield entry, _id(entry.at("id")), _zones_listed(entry.at("zones"))


def _ids(resource: str, listed: Field, start: int, room: int) -> Sequence[str]:
    if isinstance(listed.value, int):
        return _generated(resource, start, fields.integer(listed, 0, max(0, room - start)))
    return [_id(entry) for entry in fields.items(listed)]


def _id(entry: Field) -> str:
    identity = fields.text(entry)
    if not identity:
        raise entry.bad("a device needs an id that is not empty")
    return identity


def _generated(resource: str, start: int, count: int) -> list[str]:
    stem = resource.rpartition("/")[2]
    return [f"{stem}-{number}" for number in range(start, start + count)]


def _zones_named(key: str, listed: Field) -> tuple[int, ...]:
    parts = key.split(",")
    if not all(part.isascii() and part.isdigit() and len(part) <= 2 for part in parts):
        raise listed.bad(f'the key names no zone like 0 or "0,1"; {fields.suggestion(key, KEYS)}')
    return tuple(map(int, parts))


def _zones_listed(field: Field) -> Zones:
    if isinstance(field.value, int):
        return (fields.integer(field, 0, MAX_ZONE),)
    return tuple(fields.integer(zone, 0, MAX_ZONE) for zone in fields.items(field)) if field.given else None


def _check_zones(field: Field, zones: Zones, known: Sequence[int]) -> None:
    for zone in zones or ():
        if zone not in known:
            raise field.bad(f"the machine has no zone {zone}; its zones are {', '.join(map(str, known))}")
    if zones and len(set(zones)) < len(zones):
        raise field.bad("a zone is named twice")


def _unhealthy(field: Field, placed: dict[str, Zones]) -> frozenset[str]:
    for entry in fields.items(field):
        if fields.text(entry) not in placed:
            raise entry.bad(f"no device has the id {errors.echo(entry.value)}")
    return frozenset(fields.text(entry) for entry in fields.items(field))


def _zones_of(device: Device) -> Zones:
    return device.zones


def _zone_key(zones: Zones) -> str:
    return NO_TOPOLOGY if zones is None else ",".join(map(str, zones))


def _each_text(device: Device) -> dict[str, object]:
    return {"id": device.id} | ({} if device.zones is None else {"zones": list(device.zones)})
