"""Machine files: a short form for people to describe a machine in, read and written.

The command line parses YAML or JSON and hands the result to `read`; `write` gives the mapping that reads back as the
same machine. docs/use/machines.md describes the form. Whatever a file says is checked here, so that the model never
meets a machine that cannot exist. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from numalign.api import errors
from numalign.api.decode import fields, quantity
from numalign.api.decode.fields import Field
from numalign.kubelet import machinecores, machinedevices, presets
from numalign.kubelet.machine import DevicePlugin, HugePages, Machine, Zone

KIND = "Machine"
KEYS = ("name", "extends", "zones", "devices")
ZONE_KEYS = ("id", *machinecores.KEYS, "memory", "hugepages", "distances")

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


def write(machine: Machine) -> dict[str, object]:
    """A mapping of plain values for a YAML or JSON file; `read` makes the same machine of it."""
    written: dict[str, object] = {"name": machine.name, "zones": [_zone_text(zone) for zone in machine.zones]}
    if machine.devices:
        sections = {name: machinedevices.write(name, plugin) for name, plugin in machine.devices.items()}
        written["devices"] = sections
    return written


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
    taken = machinecores.mask([core for zone in zones for core in zone.cores])
    for zone_id, entry in sites.items():
        zone = _zone(entry, before.get(zone_id, Zone(zone_id)), taken)
        taken |= machinecores.mask(zone.cores)
        zones.append(zone)
    return _checked(file, zones, sites)


def _new_id(field: Field, sites: Mapping[int, Field], index: int) -> int:
    zone_id = fields.integer(field if field.given else structs.replace(field, value=index), 0, MAX_ZONE_ID)
    if zone_id in sites:
        raise field.bad(f"another zone has the id {zone_id}; give each zone its own")
    return zone_id


def _zone(entry: Field, before: Zone, taken: int) -> Zone:
    """What the file says of a zone, over what it was before: nothing, or the preset's."""
    cores = machinecores.read(entry, before.id, before.cores, taken)
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
            plugins[resource] = machinedevices.read(resource, section, zone_ids, room)
    return plugins


def _zone_text(zone: Zone) -> dict[str, object]:
    written: dict[str, object] = {"id": zone.id, **machinecores.write(zone.cores)}
    if zone.memory:
        written["memory"] = _bytes_text(zone.memory)
    if zone.hugepages:
        written["hugepages"] = {_bytes_text(pages.size_kib << 10): pages.pages for pages in zone.hugepages}
    if zone.distances:
        written["distances"] = list(zone.distances)
    return written


def _bytes_text(size: int) -> str:
    return str(quantity.of(size, quantity.Format.BINARY_SI))
