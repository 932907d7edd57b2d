"""Reads the checkpoints of the kubelet's CPU, memory and device managers, and verifies their checksums.

`readings` passes the bytes; `inventory` takes free CPUs and memory groups from here, because podresources omits plain
init containers (engine spec R3). The files are not an API: a file that is incomplete or does not match a known
kubelet's format is a BadObject, and the next snapshot may find a valid one. Checksums are FNV-1a over Go's spew output
of the value, including type and field names (kubelet spec 9)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Struct, field

from numalign.api import errors
from numalign.api.decode import cpuset
from numalign.kubelet.cpu.state import CPUState
from numalign.kubelet.device import DeviceState, Ids
from numalign.kubelet.machine import machinefile
from numalign.kubelet.memory.state import Block, MemoryState, Table, ZoneMemory

OFFSET: Final = 0x811C9DC5
PRIME: Final = 0x01000193
MASK: Final = 0xFFFFFFFF
UNSET: Final = "Checksum:(checksum.Checksum)0"

Tree = Mapping[str, Any]


def fnv1a(text: str) -> int:
    value = OFFSET
    for byte in text.encode("utf-8", "surrogatepass"):
        value = (value ^ byte) * PRIME & MASK
    return value


def of_text(data: str) -> int:
    return fnv1a(f"(string){data}")


def of_cpus(tree: Tree) -> int:
    entries = _map({uid: _map(containers) for uid, containers in tree.get("entries", {}).items()})
    header = f"PolicyName:(string){tree['policyName']} DefaultCPUSet:(string){tree['defaultCpuSet']}"
    return fnv1a(
        f"(*state.CPUManagerCheckpoint){{{header} Entries:(map[string]map[string]string){entries} {UNSET}}}",
    )


def of_memory(tree: Tree) -> int:
    entries = _map(
        {
            uid: _map({name: _list(map(_block, blocks)) for name, blocks in containers.items()})
            for uid, containers in tree.get("entries", {}).items()
        }
    )
    zones = _map({int(zone): _zone(state) for zone, state in tree["machineState"].items()})
    header = f"PolicyName:(string){tree['policyName']} MachineState:(state.NUMANodeMap){zones}"
    return fnv1a(
        f"(*state.MemoryManagerCheckpoint){{{header} Entries:(state.ContainerMemoryAssignments){entries} {UNSET}}}",
    )


def of_devices(tree: Tree) -> int:
    entries = "<nil>" if tree["PodDeviceEntries"] is None else _list(map(_device_entry, tree["PodDeviceEntries"]))
    registered = _map({resource: _ids(ids) for resource, ids in tree["RegisteredDevices"].items()})
    header = f"PodDeviceEntries:([]checkpoint.PodDevicesEntry){entries}"
    return fnv1a(f"(checkpoint.checkpointData){{{header} RegisteredDevices:(map[string][]string){registered}}}")


def _zone(state: Tree) -> str:
    tables = _map({kind: _table(table) for kind, table in state["memoryMap"].items()})
    count, cells = f"NumberOfAssignments:(int){state['numberOfAssignments']}", _ids(state["cells"])
    return f"<*>{{{count} MemoryMap:(map[v1.ResourceName]*state.MemoryTable){tables} Cells:([]int){cells}}}"


def _table(table: Tree) -> str:
    names = {
        "TotalMemSize": "total",
        "SystemReserved": "systemReserved",
        "Allocatable": "allocatable",
        "Reserved": "reserved",
        "Free": "free",
    }
    return f"<*>{{{' '.join(f'{name}:(uint64){table[key]}' for name, key in names.items())}}}"


def _block(block: Tree) -> str:
    affinity = f"NUMAAffinity:([]int){_ids(block['numaAffinity'])}"
    return f"{{{affinity} Type:(v1.ResourceName){block['type']} Size:(uint64){block['size']}}}"


def _device_entry(entry: Tree) -> str:
    ids = _map({int(zone): _ids(devices) for zone, devices in entry["DeviceIDs"].items()})
    names = " ".join(f"{name}:(string){entry[name]}" for name in ("PodUID", "ContainerName", "ResourceName"))
    return f"{{{names} DeviceIDs:(checkpoint.DevicesPerNUMA){ids} AllocResp:([]uint8){_bytes(entry['AllocResp'])}}}"


def _bytes(text: str | None) -> str:
    try:
        return "<nil>" if text is None else _list(map(str, base64.b64decode(text, validate=True)))
    except (binascii.Error, ValueError):
        return "<nil>"


def _ids(ids: Sequence[object] | None) -> str:
    return "<nil>" if ids is None else _list(map(str, ids))


def _list(items: Iterable[str]) -> str:
    return f"[{' '.join(items)}]"


def _map(entries: Mapping[Any, str]) -> str:
    """Keys sorted: numbers by value, text by bytes."""
    ordered = sorted(entries, key=lambda key: key if isinstance(key, int) else key.encode("utf-8", "surrogatepass"))
    return f"map[{' '.join(f'{key}:{entries[key]}' for key in ordered)}]"


KIND: Final = "Checkpoint"
CPU: Final = "cpu_manager_state"
MEMORY: Final = "memory_manager_state"
"""Both are in the kubelet's root folder."""
DEVICES: Final = "kubelet_internal_checkpoint"
"""In the folder of the device plugins."""
DEVICE_PLUGINS: Final = "/var/lib/kubelet/device-plugins"
"""A constant of the kubelet, whatever its root folder is."""
LARGEST: Final = 16 << 20
NO_ZONE: Final = -1
"""The key of devices without a topology."""
UNREADABLE: Final = (ValueError, TypeError, RecursionError, ArithmeticError)

T = TypeVar("T")
Raw = msgspec.Raw
Amount = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


class CPUCheckpoint(Struct, frozen=True):
    policy: str
    state: CPUState


class Sizes(Struct, frozen=True):
    """One memory type in one zone, in bytes: total and reserved."""

    total: int
    system_reserved: int
    allocatable: int


class MemoryCheckpoint(Struct, frozen=True):
    policy: str
    state: MemoryState
    sizes: Mapping[int, Mapping[str, Sizes]]


class DeviceCheckpoint(Struct, frozen=True):
    state: DeviceState
    zones: Mapping[str, Mapping[str, tuple[int, ...] | None]]
    """Zones of held devices, by resource and id; None: no topology."""
    registered: Mapping[str, Ids]
    """Healthy devices by resource, as of the last write."""


class _CPUs(Struct, rename={"policy": "policyName", "default": "defaultCpuSet", "pods": "podEntries"}):
    policy: str
    default: str
    entries: dict[str, dict[str, str]] = field(default_factory=dict)
    pods: dict[str, dict[str, str]] = field(default_factory=dict)


class _Table(Struct, rename="camel"):
    total: Amount
    system_reserved: Amount
    allocatable: Amount
    reserved: Amount
    free: Amount


class _Zone(Struct, rename="camel"):
    number_of_assignments: Amount
    memory_map: dict[str, _Table]
    cells: list[int]


class _Block(Struct, rename={"zones": "numaAffinity"}):
    zones: list[int]
    type: str
    size: Amount


class _PodBlocks(Struct, rename="camel"):
    memory_blocks: list[_Block] = field(default_factory=list)


class _Memory(Struct, rename={"policy": "policyName", "zones": "machineState", "pods": "podEntries"}):
    policy: str
    zones: dict[int, _Zone]
    entries: dict[str, dict[str, list[_Block]]] = field(default_factory=dict)
    pods: dict[str, _PodBlocks] = field(default_factory=dict)


class _DeviceEntry(Struct, rename="pascal"):
    pod_uid: str = field(name="PodUID")
    container_name: str
    resource_name: str
    device_ids: dict[int, list[str]] = field(name="DeviceIDs")
    alloc_resp: str | None


class _Devices(Struct, rename="pascal"):
    registered_devices: dict[str, list[str]]
    pod_device_entries: list[_DeviceEntry] | None


class _DeviceEnvelope(Struct, rename="pascal"):
    data: Raw
    checksum: int


class _Envelope(Struct, rename="camel"):
    """The envelope: newer files carry the content as text with its own checksum (as kubelet 1.37 does)."""

    checksum: int = 0
    data: str = ""
    data_checksum: int = 0
    pod_entries: Raw | None = None


def cpu(raw: bytes) -> CPUCheckpoint:
    content = _read(CPU, raw, _CPUs, of_cpus)
    state = CPUState(
        default=_cpus(CPU, "defaultCpuSet", content.default),
        assignments={
            uid: {name: _cpus(CPU, f"entries[{errors.clipped(uid)}]", cpus) for name, cpus in containers.items()}
            for uid, containers in content.entries.items()
        },
        pods={uid: _cpus(CPU, "podEntries", entry.get("cpuSet", "")) for uid, entry in content.pods.items()},
    )
    return CPUCheckpoint(content.policy, state)


def memory(raw: bytes) -> MemoryCheckpoint:
    content = _read(MEMORY, raw, _Memory, of_memory)
    state = MemoryState(
        zones={zone: _zone_memory(entry) for zone, entry in sorted(content.zones.items())},
        blocks={
            uid: {name: _blocks(blocks) for name, blocks in containers.items()}
            for uid, containers in content.entries.items()
        },
        pods={uid: _blocks(entry.memory_blocks) for uid, entry in content.pods.items()},
    )
    sizes = {
        zone: {kind: Sizes(t.total, t.system_reserved, t.allocatable) for kind, t in entry.memory_map.items()}
        for zone, entry in sorted(content.zones.items())
    }
    return MemoryCheckpoint(content.policy, state, sizes)


def devices(raw: bytes) -> DeviceCheckpoint:
    outer = _typed(DEVICES, raw, _DeviceEnvelope)
    content = _typed(DEVICES, bytes(outer.data), _Devices)
    _require_sum(DEVICES, outer.checksum, of_devices(_typed(DEVICES, bytes(outer.data), dict[str, Any])))
    state = DeviceState()
    zones: dict[str, dict[str, tuple[int, ...] | None]] = {}
    for entry in content.pod_device_entries or ():
        ids = frozenset(device for held in entry.device_ids.values() for device in held)
        state = state.with_devices(entry.pod_uid, entry.container_name, entry.resource_name, ids)
        zones.setdefault(entry.resource_name, {}).update(_zones_by_id(entry.device_ids))
    registered = {resource: frozenset(ids) for resource, ids in content.registered_devices.items()}
    return DeviceCheckpoint(state, zones, registered)


def _zones_by_id(ids_by_zone: Mapping[int, list[str]]) -> dict[str, tuple[int, ...] | None]:
    found: dict[str, tuple[int, ...] | None] = {}
    for zone, ids in sorted(ids_by_zone.items()):
        for device in ids:
            found[device] = None if zone == NO_ZONE else (*(found.get(device) or ()), zone)
    return found


def _zone_memory(entry: _Zone) -> ZoneMemory:
    return ZoneMemory(
        cells=_mask(entry.cells),
        tables={kind: Table(table.free, table.reserved) for kind, table in entry.memory_map.items()},
        assignments=entry.number_of_assignments,
    )


def _blocks(blocks: list[_Block]) -> tuple[Block, ...]:
    return tuple(Block(block.type, _mask(block.zones), block.size) for block in blocks)


def _mask(zones: list[int]) -> int:
    if not all(0 <= zone <= machinefile.MAX_ZONE_ID for zone in zones):
        raise errors.BadObject(KIND, MEMORY, "", f"names a zone that is not between 0 and {machinefile.MAX_ZONE_ID}")
    return cpuset.of(zones)


def _cpus(file: str, path: str, text: str) -> int:
    try:
        return cpuset.parse(text)
    except cpuset.CPUSetError as problem:
        raise errors.BadObject(KIND, file, path, str(problem)) from None


def _read(file: str, raw: bytes, kind: type[T], checksum: Callable[[Tree], int]) -> T:
    """Decodes the content and verifies its checksum."""
    envelope = _typed(file, raw, _Envelope)
    if envelope.data:
        content = _typed(file, envelope.data.encode("utf-8", "surrogatepass"), kind)
        if not _repeats(raw, content):
            _require_sum(file, envelope.data_checksum, of_text(envelope.data))
        return content
    content = _typed(file, raw, kind)
    # With pod-level entries the printed form contains Go's sets.
    if envelope.pod_entries is None:
        _require_sum(file, envelope.checksum, checksum(_typed(file, raw, dict[str, Any])))
    return content


def _repeats(raw: bytes, content: object) -> bool:
    """The file repeats the content for older kubelets, and no damage changes both alike. Comparing is a hundred times
    faster than the checksum, and a busy kubelet writes every second."""
    try:
        return bool(msgspec.json.decode(raw, type=type(content)) == content)
    except UNREADABLE:
        return False


def _require_sum(file: str, written: object, found: int) -> None:
    if written != found:
        why = f"is {errors.echo(written)}, but the content has {found}; the file is half-written or was edited"
        raise errors.BadObject(KIND, file, "checksum", why)


def _typed(file: str, raw: bytes, kind: type[T]) -> T:
    if len(raw) > LARGEST:
        raise errors.BadObject(KIND, file, "", f"longer than {LARGEST} bytes; no kubelet writes that much")
    try:
        return msgspec.json.decode(raw, type=kind)
    except UNREADABLE as problem:
        raise _bad(file, problem) from None


def _bad(file: str, problem: Exception) -> errors.BadObject:
    what, _, where = str(problem).rpartition(" - at `")
    path = where.rstrip("`").removeprefix("$").removeprefix(".") if what else ""
    why = f"{errors.clipped(what or str(problem))}; the file is half-written, or an unknown kubelet version wrote it"
    return errors.BadObject(KIND, file, path, why)
