"""Machine files: reads and writes a short description of a machine, with its devices.

The command line parses YAML or JSON and calls `read`; `write` returns the mapping that reads back as the same machine.
docs/use/machines.md describes the format. Everything is checked here, so that the model never gets a machine that
cannot exist. The order of keys has no meaning: devices come by ascending zones, then those without topology, then
listed ones. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from msgspec import structs

from numalign.api import errors
from numalign.api.decode import fields, quantity
from numalign.api.decode.fields import Field
from numalign.api.objects import resourcenames
from numalign.kubelet.machine import presets, zonecores
from numalign.kubelet.machine.machine import Device, DevicePlugin, HugePages, Machine, Zone

NO_TOPOLOGY, EACH = "noTopology", "each"
DEVICE_KEYS = (NO_TOPOLOGY, EACH, "unhealthy", "preferredAllocation")
MAX_ZONE = 63

Zones = tuple[int, ...] | None


def read_devices(resource: str, plugin: Field, known_zones: Sequence[int], room: int) -> DevicePlugin:
    """The devices of one plugin; `room` is how many the machine may still have."""
    if not resourcenames.is_extended(resource):
        raise plugin.bad('not a name that a device plugin can register; write one like "example.com/nic"')
    placed: dict[str, Zones] = {}
    for site, identity, zones in _device_list(resource, plugin, room):
        if identity in placed:
            raise site.bad(f"device {errors.echo(identity)} is named twice; give each its own id")
        _check_zones(site, zones, known_zones)
        placed[identity] = zones
    sick = _unhealthy(plugin.at("unhealthy"), placed)
    preferred = plugin.at("preferredAllocation")
    devices = tuple(Device(identity, zones, identity not in sick) for identity, zones in placed.items())
    return DevicePlugin(devices, preferred.given and fields.boolean(preferred))


def write_devices(resource: str, plugin: DevicePlugin) -> dict[str, object]:
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


def _device_list(resource: str, plugin: Field, room: int) -> Iterator[tuple[Field, str, Zones]]:
    """Every device with the field that names it; ids made from counts are numbered on through the whole resource."""
    sections: list[tuple[Zones, Field]] = [
        (_zones_named(key, listed), listed) for key, listed in fields.entries(plugin) if key not in DEVICE_KEYS
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
        raise listed.bad(f'the key names no zone like 0 or "0,1"; {fields.suggestion(key, DEVICE_KEYS)}')
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


KIND = "Machine"
KEYS = ("name", "extends", "zones", "devices")
ZONE_KEYS = ("id", *zonecores.KEYS, "memory", "hugepages", "distances")

MAX_ZONE_ID = 63
MAX_NAME = 253
# 64 zones of this size still add up within int64.
MAX_MEMORY = 1 << 56
MAX_DISTANCE = 255
MAX_DEVICES = 65_536

NOTHING = Machine("", ())


def read(obj: object, source: str) -> Machine:
    """The machine that the parsed file describes; `source` is what errors call the file."""
    file = fields.root(obj, KIND, source)
    fields.only(file, KEYS)
    base = _base(file.at("extends"))
    zones = _zones(file, base)
    ids = tuple(zone.id for zone in zones)
    return Machine(_name(file.at("name"), base.name or source), zones, _devices(file, base, ids))


def _base(extends: Field) -> Machine:
    if not extends.given:
        return NOTHING
    name = fields.text(extends)
    if name not in presets.names():
        raise extends.bad(f"no preset {errors.echo(name)}; {fields.suggestion(name, presets.names())}")
    return presets.machine(name)


def _name(field: Field, default: str) -> str:
    name = fields.text(field) if field.given else default
    if not 0 < len(name) <= MAX_NAME:
        raise field.bad(f"a machine's name has 1 to {MAX_NAME} characters")
    return name


def _zones(file: Field, base: Machine) -> tuple[Zone, ...]:
    sites: dict[int, Field] = {}
    for index, entry in enumerate(fields.items(file.at("zones"))):
        fields.only(entry, ZONE_KEYS)
        sites[_new_id(entry.at("id"), sites, index)] = entry
    before = {zone.id: zone for zone in base.zones}
    zones = [zone for zone in base.zones if zone.id not in sites]
    taken = zonecores.mask([core for zone in zones for core in zone.cores])
    for zone_id, entry in sites.items():
        zone = _zone(entry, before.get(zone_id, Zone(zone_id)), taken)
        taken |= zonecores.mask(zone.cores)
        zones.append(zone)
    return _checked(file, zones, sites)


def _new_id(field: Field, sites: Mapping[int, Field], index: int) -> int:
    zone_id = fields.integer(field if field.given else structs.replace(field, value=index), 0, MAX_ZONE_ID)
    if zone_id in sites:
        raise field.bad(f"another zone has the id {zone_id}; give each zone its own")
    return zone_id


def _zone(entry: Field, before: Zone, taken: int) -> Zone:
    """A zone of the file, over that of the preset, if any."""
    cores = zonecores.read(entry, before.id, before.cores, taken)
    memory = _memory(entry.at("memory")) if entry.at("memory").given else before.memory
    hugepages = _hugepages(entry.at("hugepages")) if entry.at("hugepages").given else before.hugepages
    if sum(pages.total_bytes for pages in hugepages) > memory:
        raise entry.at("hugepages").bad(f"more than the zone's memory of {_bytes_text(memory)}")
    distances = _distances(entry.at("distances")) if entry.at("distances").given else before.distances
    return Zone(before.id, cores, memory, hugepages, distances)


def _memory(field: Field) -> int:
    size = fields.whole_bytes(field)
    if size > MAX_MEMORY:
        raise field.bad(f"{errors.echo(field.value)} is more than {_bytes_text(MAX_MEMORY)}, which no zone has")
    return size


def _hugepages(field: Field) -> tuple[HugePages, ...]:
    by_size: dict[int, HugePages] = {}
    for key, count in fields.entries(field):
        size_kib = _page_size(count, key)
        if size_kib in by_size:
            raise count.bad("this page size is given twice")
        by_size[size_kib] = HugePages(size_kib, _pages(count, size_kib << 10))
    return tuple(by_size.values())


def _page_size(field: Field, key: str) -> int:
    try:
        size = quantity.parse(key)
    except quantity.QuantityError:
        size = quantity.ZERO
    if not size.is_whole or size.value < 1024 or size.value > MAX_MEMORY or size.value & (size.value - 1):
        raise field.bad("the key is not a page size like 2Mi or 1Gi")
    return size.value >> 10


def _pages(field: Field, page: int) -> int:
    """A bare number counts pages, a quantity gives their size together."""
    if isinstance(field.value, int):
        return fields.integer(field, 0, MAX_MEMORY // page)
    size = fields.whole_bytes(field)
    if size % page:
        pages = f"pages of {_bytes_text(page)}"
        raise field.bad(f"{errors.echo(field.value)} is not whole {pages}; write a bare number to count them")
    return size // page


def _distances(field: Field) -> tuple[int, ...]:
    return tuple(fields.integer(distance, 1, MAX_DISTANCE) for distance in fields.items(field))


def _checked(file: Field, zones: list[Zone], sites: Mapping[int, Field]) -> tuple[Zone, ...]:
    """The zones by ascending id, once every row of distances has the right length."""
    if not zones:
        raise file.at("zones").bad("a machine has one zone or more; list them, or name a preset in extends")
    ordered = tuple(sorted(zones, key=lambda zone: zone.id))
    length = ordered[-1].id + 1
    for zone in ordered:
        if zone.distances and len(zone.distances) != length:
            row = sites[zone.id].at("distances") if zone.id in sites else file.at("zones")
            # The kubelet looks distances up by zone id, so that ids left out need a place too (kubelet spec 3.3).
            wrong = f"zone {zone.id} has {len(zone.distances)} distances"
            raise row.bad(f"{wrong}, not {length}: one for each id from 0 to the highest")
    return ordered


def _devices(file: Field, base: Machine, zone_ids: tuple[int, ...]) -> Mapping[str, DevicePlugin]:
    """The preset's resources, each replaced by the file's section of that name; null takes one away."""
    plugins = dict(base.devices)
    for resource, section in fields.entries(file.at("devices")):
        plugins.pop(resource, None)
        if section.given:
            room = MAX_DEVICES - sum(len(plugin.devices) for plugin in plugins.values())
            plugins[resource] = read_devices(resource, section, zone_ids, room)
    return plugins


def _bytes_text(size: int) -> str:
    return str(quantity.of(size, quantity.Format.BINARY_SI))
