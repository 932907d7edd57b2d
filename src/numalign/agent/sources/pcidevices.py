"""GPUs and RDMA NICs of the node, as the kernel and their drivers show them in /sys and /proc.

`enforce.devices` makes the node's table of shared devices of it, and finds there what a container has to get. A device
without a driver that containers can use is left out: GPUs of nvidia and amdgpu, and NICs with an RDMA device. Virtual
functions belong to the device that they are a part of."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from numalign.agent.sources.hostfiles import Files

PCI: Final = "sys/bus/pci/devices"
ADDRESS: Final = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
ROOT: Final = re.compile(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}")
NUMBERS: Final = re.compile(r"([0-9]{1,6}):([0-9]{1,8})")
FIELD: Final = r"^%s:[ \t]*(\S.*?)[ \t]*$"
NVIDIA: Final = "proc/driver/nvidia/gpus"
MAJORS: Final = "proc/devices"
DISPLAYS: Final = ("0x03", "0x12")
"""Classes of GPUs: display controllers, and accelerators."""
ACTIVE: Final = "4:"
"""The state of a port of an RDMA device."""
NVIDIA_CONTROL: Final = 255
"""The minor number of /dev/nvidiactl."""
UNKNOWN_ZONE: Final = -1
MOST: Final = 1024
"""Devices that are read."""


class CharacterDevice(Struct, frozen=True):
    """A character device, by its path on the host and its numbers."""

    path: str
    major: int
    minor: int


class PciFunction(Struct, frozen=True):
    """A virtual function."""

    bus: str
    files: tuple[CharacterDevice, ...]


class PciDevice(Struct, frozen=True, kw_only=True):
    kind: Literal["gpu", "rdma"]
    bus: str
    id: str
    """The driver's, such as a GPU's UUID; else the address on the bus."""
    zone: int = UNKNOWN_ZONE
    root: str = ""
    """The PCIe root; empty: unknown."""
    memory: int = 0
    """Bytes; 0: the kernel does not say."""
    healthy: bool = True
    labels: tuple[tuple[str, str], ...] = ()
    files: tuple[CharacterDevice, ...] = ()
    """What a container needs to use it."""
    functions: tuple[PciFunction, ...] = ()


class PciSurvey(Struct, frozen=True):
    devices: tuple[PciDevice, ...]
    """By address."""
    problems: tuple[str, ...] = ()


def survey(root: Path) -> PciSurvey:
    """`root`: the folder that holds `sys` and `proc`."""
    files = Files(root)
    addresses = [name for name in files.names(PCI) if ADDRESS.fullmatch(name)]
    if len(addresses) > MOST:
        files.note(PCI, f"{len(addresses)} devices; {MOST} are read")
    majors = dict(_majors(files))
    found = [each for bus in addresses[:MOST] for each in _devices(files, bus, majors)]
    return PciSurvey(tuple(found), tuple(files.problems))


def _devices(files: Files, bus: str, majors: dict[str, int]) -> Iterator[PciDevice]:
    place = f"{PCI}/{bus}"
    if (files.root / place / "physfn").exists():
        return
    if (files.text(f"{place}/class") or "").startswith(DISPLAYS):
        driver = _target(files, f"{place}/driver")
        if driver == "nvidia":
            yield from _nvidia(files, bus, majors)
        elif driver == "amdgpu":
            yield from _amd(files, bus)
    if names := files.names(f"{place}/infiniband"):
        yield _rdma(files, bus, names[0])


def _nvidia(files: Files, bus: str, majors: dict[str, int]) -> Iterator[PciDevice]:
    written = files.text(f"{NVIDIA}/{bus}/information")
    if written is None:
        return
    said = {name: re.search(FIELD % name, written, re.MULTILINE) for name in ("Model", "GPU UUID", "Device Minor")}
    known = {name: match[1] for name, match in said.items() if match is not None}
    minor, major = known.get("Device Minor", ""), majors.get("nvidia-frontend", majors.get("nvidia"))
    if not minor.isdecimal() or major is None:
        files.note(f"{NVIDIA}/{bus}/information", "has no minor number, or the driver no device files; left out")
        return
    nodes = [CharacterDevice(f"/dev/nvidia{int(minor)}", major, int(minor))]
    nodes.append(CharacterDevice("/dev/nvidiactl", major, NVIDIA_CONTROL))
    if (memory := majors.get("nvidia-uvm")) is not None:
        nodes += [CharacterDevice("/dev/nvidia-uvm", memory, 0), CharacterDevice("/dev/nvidia-uvm-tools", memory, 1)]
    model = known.get("Model", "").replace(" ", "-")
    yield PciDevice(
        kind="gpu",
        bus=bus,
        id=known.get("GPU UUID", bus),
        zone=_zone(files, bus),
        root=_root(files, bus),
        labels=(*((("model", model),) if model else ()), ("vendor", "nvidia")),
        files=tuple(nodes),
    )


def _amd(files: Files, bus: str) -> Iterator[PciDevice]:
    place = f"{PCI}/{bus}"
    nodes = [
        node
        for name in files.names(f"{place}/drm")
        if name.startswith(("card", "renderD"))
        and (node := _file(files, f"{place}/drm/{name}", f"/dev/dri/{name}")) is not None
    ]
    if not nodes:
        return
    compute = _file(files, "sys/class/kfd/kfd", "/dev/kfd")
    yield PciDevice(
        kind="gpu",
        bus=bus,
        id=files.text(f"{place}/unique_id") or bus,
        zone=_zone(files, bus),
        root=_root(files, bus),
        memory=files.number(f"{place}/mem_info_vram_total") or 0,
        labels=(("vendor", "amd"),),
        files=(*nodes, *([compute] if compute is not None else [])),
    )


def _rdma(files: Files, bus: str, name: str) -> PciDevice:
    ports = f"{PCI}/{bus}/infiniband/{name}/ports"
    states = [files.text(f"{ports}/{port}/state") or "" for port in files.names(ports)]
    functions = [_target(files, f"{PCI}/{bus}/{each}") for each in _functions(files, bus)]
    return PciDevice(
        kind="rdma",
        bus=bus,
        id=bus,
        zone=_zone(files, bus),
        root=_root(files, bus),
        healthy=not states or any(state.startswith(ACTIVE) for state in states),
        labels=(("name", name),),
        files=_verbs(files, bus),
        # A function without a driver belongs to a virtual machine, or is not set up.
        functions=tuple(PciFunction(each, own) for each in sorted(functions) if (own := _verbs(files, each))),
    )


def _functions(files: Files, bus: str) -> list[str]:
    return [name for name in files.names(f"{PCI}/{bus}") if re.fullmatch(r"virtfn[0-9]{1,4}", name)]


def _verbs(files: Files, bus: str) -> tuple[CharacterDevice, ...]:
    """The files by which a process uses the RDMA device."""
    if not ADDRESS.fullmatch(bus):
        return ()
    place = f"{PCI}/{bus}/infiniband_verbs"
    own = [_file(files, f"{place}/{name}", f"/dev/infiniband/{name}") for name in files.names(place)]
    found = [each for each in own if each is not None]
    manager = _file(files, "sys/class/misc/rdma_cm", "/dev/infiniband/rdma_cm")
    return (*found, manager) if found and manager is not None else tuple(found)


def _zone(files: Files, bus: str) -> int:
    """-1, as the kernel writes it, where the firmware says nothing."""
    found = files.number(f"{PCI}/{bus}/numa_node")
    return found if found is not None and found >= 0 else UNKNOWN_ZONE


def _root(files: Files, bus: str) -> str:
    try:
        path = os.readlink(files.root / PCI / bus)
    except OSError:
        return ""
    return next((part for part in path.split("/") if ROOT.fullmatch(part)), "")


def _target(files: Files, link: str) -> str:
    try:
        return os.path.basename(os.readlink(files.root / link))
    except OSError:
        return ""


def _file(files: Files, place: str, path: str) -> CharacterDevice | None:
    match = NUMBERS.fullmatch(files.text(f"{place}/dev") or "")
    return CharacterDevice(path, int(match[1]), int(match[2])) if match is not None else None


def _majors(files: Files) -> Iterator[tuple[str, int]]:
    """The drivers of character devices, with their major numbers."""
    written = (files.text(MAJORS) or "").partition("Block devices:")[0]
    for line in written.splitlines():
        number, _, name = line.strip().partition(" ")
        if number.isdecimal() and name:
            yield name, int(number)
