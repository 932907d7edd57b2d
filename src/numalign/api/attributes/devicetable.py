"""The devices of a node that can be handed out in parts or together: GPUs, NICs with virtual functions, FPGAs.

`attributes` calls the codec: the table is an attribute of the report of a node in direct mode. `of_object` makes one of
Koordinator's Device object, and an agent may make one of what it finds in sysfs. docs/concepts/attributes.md describes
the grammar."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal

import msgspec
from msgspec import Struct

from numalign.api import errors
from numalign.api.attributes import grammar
from numalign.api.decode import quantity
from numalign.api.decode.structs import decoded
from numalign.api.errors import BadObject
from numalign.api.objects import koordinatordevice
from numalign.api.objects.koordinatordevice import DeviceInfo, DeviceObject, PartitionEntry

Kind = Literal["gpu", "rdma", "fpga"]
KINDS: Final[tuple[Kind, ...]] = ("gpu", "rdma", "fpga")

WHOLE: Final = 100
"""A device has a hundred parts."""
NO_ZONE: Final = -1
MOST: Final = 1024
"""Devices of one node that are read."""
LONGEST: Final = 1 << 18

PREFIX: Final = "koordinator.sh/"
GPU: Final = "koordinator.sh/gpu"
CORE: Final = "koordinator.sh/gpu-core"
MEMORY: Final = "koordinator.sh/gpu-memory"
RATIO: Final = "koordinator.sh/gpu-memory-ratio"
SHARED: Final = "koordinator.sh/gpu.shared"
PARTS: Final[Mapping[Kind, str]] = {"gpu": CORE, "rdma": "koordinator.sh/rdma", "fpga": "koordinator.sh/fpga"}
"""By kind, the resource that counts its parts."""

Labels = tuple[tuple[str, str], ...]


class Function(Struct, frozen=True):
    """A virtual function by its address on the bus."""

    bus: str
    labels: Labels = ()


class Device(Struct, frozen=True, kw_only=True):
    type: Kind
    minor: int
    id: str = ""
    zone: int = NO_ZONE
    """-1: unknown."""
    pcie: str = ""
    """The PCIe root, or the switch where it is known; empty: unknown."""
    parts: int = WHOLE
    """0: the device is not healthy."""
    memory: int = 0
    """Bytes; 0: unknown."""
    labels: Labels = ()
    functions: tuple[Function, ...] = ()
    """By address."""


class Partition(Struct, frozen=True):
    """GPUs that are linked with each other."""

    minors: tuple[int, ...]
    score: int = 0
    """Higher is better."""
    bandwidth: int = 0


class DeviceTable(Struct, frozen=True, kw_only=True):
    devices: tuple[Device, ...] = ()
    """By type and minor."""
    partitions: tuple[Partition, ...] = ()
    only_partitions: bool = False
    """Whether whole GPUs are handed out in partitions only."""


ONLY_PARTITIONS: Final = "only-partitions"
PARTITION: Final = "partition"


def encode(table: DeviceTable) -> str:
    """gpu/0|0|pci0000%3A16|100|80Gi|GPU-5f|model=a100|;rdma/0|1|pci0000%3A80|100|0|||0000%3A81%3A00.2"""
    entries = [*map(_device_text, table.devices), *map(_partition_text, table.partitions)]
    return ";".join([*entries, ONLY_PARTITIONS] if table.only_partitions else entries)


def _device_text(device: Device) -> str:
    zone = str(device.zone) if device.zone != NO_ZONE else ""
    functions = ",".join(
        _word(each.bus) + (f":{_labels_text(each.labels)}" if each.labels else "") for each in device.functions
    )
    fields = [f"{device.type}/{device.minor}", zone, _word(device.pcie), str(device.parts), grammar.size(device.memory)]
    return "|".join([*fields, _word(device.id), _labels_text(device.labels), functions])


def _partition_text(partition: Partition) -> str:
    minors = "+".join(map(str, partition.minors))
    return "|".join([PARTITION, minors, str(max(0, partition.score)), grammar.size(partition.bandwidth)])


def _word(text: str) -> str:
    return grammar.word(text) if text else ""


def _labels_text(labels: Labels) -> str:
    return "+".join(f"{grammar.word(key)}={_word(value)}" for key, value in labels)


def decode(body: str) -> DeviceTable:
    if len(body) > LONGEST:
        raise grammar.AttributeTextError(f"{len(body)} characters; at most {LONGEST} are read")
    devices, partitions, only_partitions = list[Device](), list[Partition](), False
    for text in grammar.split(body, ";"):
        name, *fields = text.split("|")
        if name == ONLY_PARTITIONS and not fields:
            only_partitions = True
        elif name == PARTITION and len(fields) == 3:
            minors = tuple(map(grammar.number, grammar.split(fields[0], "+")))
            partitions.append(Partition(minors, grammar.number(fields[1]), grammar.from_size(fields[2])))
        elif len(fields) == 7:
            devices.append(_read_device(name, fields))
        else:
            raise grammar.AttributeTextError(f"{errors.echo(text)} is neither a device nor a partition")
    table = _ordered(devices, partitions, only_partitions=only_partitions)
    wrong = next(_wrong(table), None)
    if wrong is not None:
        raise grammar.AttributeTextError(wrong)
    return table


def _read_device(name: str, fields: list[str]) -> Device:
    written, _, minor = name.partition("/")
    kind = next((each for each in KINDS if each == written), None)
    if kind is None:
        raise grammar.AttributeTextError(f"{errors.echo(name)} is not one of {', '.join(KINDS)} with a minor number")
    zone, pcie, parts, memory, identity, labels, functions = fields
    return Device(
        type=kind,
        minor=grammar.number(minor),
        id=_from_word(identity),
        zone=grammar.zone(zone) if zone else NO_ZONE,
        pcie=_from_word(pcie),
        parts=grammar.number(parts),
        memory=grammar.from_size(memory),
        labels=_read_labels(labels),
        functions=tuple(map(_read_function, grammar.split(functions, ","))),
    )


def _read_function(text: str) -> Function:
    bus, _, labels = text.partition(":")
    return Function(grammar.from_word(bus), _read_labels(labels))


def _from_word(text: str) -> str:
    return grammar.from_word(text) if text else ""


def _read_labels(text: str) -> Labels:
    found = []
    for each in grammar.split(text, "+"):
        key, equals, value = each.partition("=")
        if not equals:
            raise grammar.AttributeTextError(f"{errors.echo(each)} is not a label as key=value")
        found.append((grammar.from_word(key), _from_word(value)))
    return tuple(found)


def _wrong(table: DeviceTable) -> Iterator[str]:
    if len(table.devices) > MOST:
        yield f"{len(table.devices)} devices; at most {MOST} are read"
    numbers = Counter((each.type, each.minor) for each in table.devices)
    for each in table.devices:
        if not 0 <= each.minor < MOST or not 0 <= each.parts <= WHOLE or each.memory < 0:
            yield f"{each.type} {each.minor}: minor, parts or memory is out of range"
        if numbers[each.type, each.minor] > 1:
            yield f"{each.type} {each.minor} is listed twice"


def _ordered(devices: Iterable[Device], partitions: Iterable[Partition], *, only_partitions: bool) -> DeviceTable:
    return DeviceTable(
        devices=tuple(sorted(devices, key=lambda each: (KINDS.index(each.type), each.minor))),
        partitions=tuple(partitions),
        only_partitions=only_partitions,
    )


def offered(table: DeviceTable) -> dict[str, int]:
    """What the Node offers of them in all, as extended resources."""
    gpus = [each for each in table.devices if each.type == "gpu"]
    found = {PARTS[kind]: sum(each.parts for each in table.devices if each.type == kind) for kind in KINDS}
    found |= dict.fromkeys((GPU, RATIO, SHARED), found[CORE])
    found[MEMORY] = sum(each.memory for each in gpus)
    return {name: amount for name, amount in found.items() if amount}


# Koordinator's Device object

LINKED_MODELS: Final = ("H100", "H800", "H20")
"""Models whose eight GPUs are linked in pairs, fours and all together, whatever the object says."""
LINKED_GROUPS: Final = tuple(tuple(range(start, start + size)) for size in (1, 2, 4, 8) for start in range(0, 8, size))


def of_object(device: DeviceObject, model: str = "") -> DeviceTable:
    """The table of a Device object; `model`: the label of the GPUs' model on the Node. Devices of other types and
    without a minor number are left out. BadObject if the partitions cannot be read."""
    devices = [_device(each) for each in device.spec.devices if each.type in KINDS and each.minor is not None]
    partitions = _partitions(device)
    if not partitions and (model or device.metadata.labels.get(koordinatordevice.MODEL, "")) in LINKED_MODELS:
        partitions = [Partition(minors, 1) for minors in LINKED_GROUPS]
    table = _ordered(
        devices,
        partitions,
        only_partitions=device.metadata.labels.get(koordinatordevice.PARTITION_POLICY) == koordinatordevice.HONOR,
    )
    wrong = next(_wrong(table), None)
    if wrong is not None:
        raise BadObject("Device", device.metadata.name, "spec.devices", wrong)
    return table


def _device(info: DeviceInfo) -> Device:
    assert info.minor is not None
    kind = next(kind for kind in KINDS if kind == info.type)
    amounts, place = info.resources, info.topology
    memory, parts = amounts.get(MEMORY), amounts.get(PARTS[kind])
    return Device(
        type=kind,
        minor=info.minor,
        id=info.id,
        zone=place.node_id if place is not None and place.node_id >= 0 else NO_ZONE,
        pcie=place.pcie_id if place is not None else "",
        parts=(min(parts.value, WHOLE) if parts is not None else WHOLE) if info.health else 0,
        memory=memory.value if memory is not None and info.health else 0,
        labels=tuple(sorted(info.labels.items())),
        functions=tuple(
            sorted(
                (
                    Function(each.bus_id, tuple(sorted(group.labels.items())))
                    for group in info.vf_groups
                    for each in group.vfs
                ),
                key=lambda each: each.bus,
            )
        ),
    )


_PARTITIONS: Final = msgspec.json.Decoder(dict[str, tuple[PartitionEntry, ...]], dec_hook=decoded)


def _partitions(device: DeviceObject) -> list[Partition]:
    text = device.metadata.annotations.get(koordinatordevice.PARTITIONS)
    if not text:
        return []
    try:
        by_count = _PARTITIONS.decode(text)
    except (msgspec.DecodeError, quantity.QuantityError, RecursionError, UnicodeEncodeError) as problem:
        at = f"metadata.annotations[{koordinatordevice.PARTITIONS}]"
        raise BadObject("Device", device.metadata.name, at, f"not a table of partitions: {problem}") from None
    return [
        Partition(
            tuple(sorted(each.minors)),
            max(0, each.allocation_score),
            each.ring_bus_bandwidth.value if each.ring_bus_bandwidth is not None else 0,
        )
        for each in (entry for entries in by_count.values() for entry in entries)
        if each.minors
    ]
