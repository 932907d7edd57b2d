"""Writes machines as machine files, in the short form where there is one: the inverse of `machinefile.read`."""

from collections.abc import Sequence
from typing import Any, get_args

from numalign.api.decode import cpuset, quantity
from numalign.kubelet.machine import machinefile, presets
from numalign.kubelet.machine.machine import Core, Machine, Zone


def write(machine: Machine) -> dict[str, Any]:
    written: dict[str, Any] = {"name": machine.name, "zones": [_zone(zone) for zone in machine.zones]}
    if machine.devices:
        sections = {name: machinefile.write_devices(name, plugin) for name, plugin in machine.devices.items()}
        written["devices"] = sections
    return written


def _zone(zone: Zone) -> dict[str, Any]:
    written: dict[str, Any] = {"id": zone.id, **_cores(zone.cores)}
    if zone.memory:
        written["memory"] = _bytes(zone.memory)
    if zone.hugepages:
        written["hugepages"] = {_bytes(pages.size_kib << 10): pages.pages for pages in zone.hugepages}
    if zone.distances:
        written["distances"] = list(zone.distances)
    return written


def _cores(cores: Sequence[Core]) -> dict[str, Any]:
    if not cores:
        return {}
    labels = {"socket": _labels(cores, [core.socket for core in cores])}
    if any(core.uncore is not None for core in cores):
        labels["l3"] = _labels(cores, [core.uncore for core in cores])
    return _threads(tuple(core.cpus for core in cores)) | labels


def _threads(threads: tuple[tuple[int, ...], ...]) -> dict[str, Any]:
    cpus = sorted(cpu for core in threads for cpu in core)
    per_core = len(threads[0])
    for numbering in get_args(presets.Numbering):
        if len(cpus) % per_core == 0 and presets.fold(cpus, per_core, numbering) == threads:
            smt = {"threadsPerCore": per_core} if per_core > 1 else {}
            named = {"numbering": numbering} if numbering != "split" else {}
            return {"cpus": cpuset.text(cpuset.of(cpus)), **smt, **named}
    return {"cores": [list(core) for core in threads]}


def _labels(cores: Sequence[Core], labels: Sequence[int | None]) -> Any:
    if labels[0] is not None and len(set(labels)) == 1:
        return labels[0]
    masks: dict[int, int] = {}
    for core, label in zip(cores, labels, strict=True):
        if label is not None:
            masks[label] = masks.get(label, 0) | cpuset.of(core.cpus)
    return {label: cpuset.text(cpus) for label, cpus in masks.items()}


def _bytes(size: int) -> str:
    return str(quantity.of(size, quantity.Format.BINARY_SI))
