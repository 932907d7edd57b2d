"""The checksums of the kubelet's checkpoints: FNV-1a over what Go's spew prints of the value.

`checkpoints` asks whether a file says what was written, so that one cut short or patched by hand is noticed. Newer
files carry their content as one text with a checksum of that; older ones sum up the structs, whose printed form, types
and field names included, is written out here (kubelet spec 9)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

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
    told = f"PolicyName:(string){tree['policyName']} DefaultCPUSet:(string){tree['defaultCpuSet']}"
    return fnv1a(
        f"(*state.CPUManagerCheckpoint){{{told} Entries:(map[string]map[string]string){entries} {UNSET}}}",
    )


def of_memory(tree: Tree) -> int:
    entries = _map(
        {
            uid: _map({name: _list(map(_block, blocks)) for name, blocks in containers.items()})
            for uid, containers in tree.get("entries", {}).items()
        }
    )
    zones = _map({int(zone): _zone(state) for zone, state in tree["machineState"].items()})
    told = f"PolicyName:(string){tree['policyName']} MachineState:(state.NUMANodeMap){zones}"
    return fnv1a(
        f"(*state.MemoryManagerCheckpoint){{{told} Entries:(state.ContainerMemoryAssignments){entries} {UNSET}}}",
    )


def of_devices(tree: Tree) -> int:
    entries = "<nil>" if tree["PodDeviceEntries"] is None else _list(map(_device_entry, tree["PodDeviceEntries"]))
    registered = _map({resource: _ids(ids) for resource, ids in tree["RegisteredDevices"].items()})
    told = f"PodDeviceEntries:([]checkpoint.PodDevicesEntry){entries}"
    return fnv1a(f"(checkpoint.checkpointData){{{told} RegisteredDevices:(map[string][]string){registered}}}")


def _zone(state: Tree) -> str:
    tables = _map({kind: _table(table) for kind, table in state["memoryMap"].items()})
    told = f"NumberOfAssignments:(int){state['numberOfAssignments']}"
    return (
        f"<*>{{{told} MemoryMap:(map[v1.ResourceName]*state.MemoryTable){tables} Cells:([]int){_ids(state['cells'])}}}"
    )


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
    """Keys in order: numbers as numbers, text by its bytes."""
    ordered = sorted(entries, key=lambda key: key if isinstance(key, int) else key.encode("utf-8", "surrogatepass"))
    return f"map[{' '.join(f'{key}:{entries[key]}' for key in ordered)}]"
