"""The CPUs of one zone in a machine file: `cpus`, `cores`, `socket`, `l3` and their short forms.

`machinefile` calls `read` for each zone with the cores that the zone inherits (`extends`) and the CPUs that other zones
have; `write` finds the shortest form that reads back the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import get_args

from numalign.api.decode import cpuset, fields
from numalign.api.decode.fields import Field
from numalign.kubelet.machine import presets
from numalign.kubelet.machine.machine import Core

KEYS = ("cpus", "threadsPerCore", "numbering", "cores", "socket", "l3", "coresPerL3")

MAX_ID = 65_535

Threads = tuple[tuple[int, ...], ...]


def read(zone: Field, zone_id: int, before: Sequence[Core], taken: int) -> tuple[Core, ...]:
    """The zone's cores. Fields that the file omits are as in `before`; a new zone is a separate socket."""
    if zone.at("cpus").given and zone.at("cores").given:
        raise zone.at("cores").bad("given together with cpus; keep one of the two")
    anew = zone.at("cpus").given or zone.at("cores").given
    threads = _threads(zone, taken) if anew else _threads_of(zone, before, taken)
    socket = before[0].socket if before else zone_id
    sockets = [socket] * len(threads) if anew or not before else [core.socket for core in before]
    uncores: list[int | None] = [None] * len(threads) if anew else [core.uncore for core in before]
    labels = zip(_sockets(zone, threads, sockets), threads, _uncores(zone, threads, uncores), strict=True)
    return tuple(Core(socket, cpus, uncore) for socket, cpus, uncore in labels)


def mask(cores: Sequence[Core]) -> int:
    return cpuset.of(cpu for core in cores for cpu in core.cpus)


def explicit(cores: Iterable[Field], taken: int) -> Threads:
    """Cores that list their CPUs; in the order of the file, threads too."""
    threads = []
    for core in cores:
        ids = tuple(fields.integer(cpu, 0, cpuset.MAX_CPU) for cpu in fields.items(core))
        if not ids or len(set(ids)) < len(ids):
            raise core.bad("a core needs one or more CPUs, each once; write them like [0, 32]")
        taken |= _free(core, cpuset.of(ids), taken)
        threads.append(ids)
    return tuple(threads)


def _threads(zone: Field, taken: int) -> Threads:
    if zone.at("cores").given:
        return explicit(fields.items(zone.at("cores")), taken)
    listed = _free(zone.at("cpus"), fields.cpus(zone.at("cpus")), taken)
    count = listed.bit_count()
    per_core = fields.integer(zone.at("threadsPerCore"), 1, 64) if zone.at("threadsPerCore").given else 1
    if count % per_core:
        raise zone.at("threadsPerCore").bad(f"{count} CPUs do not make whole cores of {per_core} threads")
    numbering: presets.Numbering = fields.one_of(zone.at("numbering"), get_args(presets.Numbering), "split")
    return presets.fold(cpuset.members(listed), per_core, numbering)


def _threads_of(zone: Field, before: Sequence[Core], taken: int) -> Threads:
    for key in ("threadsPerCore", "numbering"):
        if zone.at(key).given:
            raise zone.at(key).bad("says how cpus fold into cores, but the zone has no cpus; add them")
    _free(zone, mask(before), taken)
    return tuple(core.cpus for core in before)


def _free(field: Field, cpus: int, taken: int) -> int:
    # Asked before any core is built: 64 zones that each claim every CPU must not cost 64 times the memory.
    if cpus & taken:
        raise field.bad(f"CPUs {short_text(cpus & taken)} are in another core too; a CPU belongs to one")
    return cpus


def _sockets(zone: Field, threads: Threads, default: list[int]) -> list[int]:
    labels = _labels(zone.at("socket"), threads)
    if labels is None:
        return default
    bare = next((cpus for cpus, label in zip(threads, labels, strict=True) if label is None), None)
    if bare is not None:
        raise zone.at("socket").bad(f"the core of CPU {bare[0]} is on no socket; name every CPU of the zone")
    return [label for label in labels if label is not None]


def _uncores(zone: Field, threads: Threads, default: list[int | None]) -> list[int | None]:
    size = zone.at("coresPerL3")
    if not size.given:
        return _labels(zone.at("l3"), threads) or default
    if zone.at("l3").given:
        raise size.bad("given together with l3; keep one of the two")
    cores_per_l3 = fields.integer(size, 1, MAX_ID)
    # A group is called by its lowest CPU: unique on the machine, and in the order in which Linux numbers caches.
    firsts = [min(map(min, threads[first : first + cores_per_l3])) for first in range(0, len(threads), cores_per_l3)]
    return [firsts[core // cores_per_l3] for core in range(len(threads))]


def _labels(field: Field, threads: Threads) -> list[int | None] | None:
    """The id of each core: one id for all, or a mapping of ids to CPUs; None: not in the file."""
    if not field.given:
        return None
    if isinstance(field.value, int):
        return [fields.integer(field, 0, MAX_ID)] * len(threads)
    label_of: dict[int, int] = {}
    for name, listed in fields.entries(field):
        label = _label_id(listed, name)
        fresh = [(cpu, label) for cpu in cpuset.members(fields.cpus(listed))]
        if any(cpu in label_of for cpu, _ in fresh):
            raise listed.bad("a CPU of this list is in another list too")
        label_of.update(fresh)
    return _labels_by_core(field, threads, label_of)


def _labels_by_core(field: Field, threads: Threads, label_of: dict[int, int]) -> list[int | None]:
    foreign = label_of.keys() - {cpu for cpus in threads for cpu in cpus}
    if foreign:
        raise field.bad(f"CPUs {short_text(cpuset.of(foreign))} are not in this zone")
    labels = []
    for cpus in threads:
        found = {label_of.get(cpu) for cpu in cpus}
        if len(found) > 1:
            raise field.bad(f"the threads of one core, CPUs {short_text(cpuset.of(cpus))}, are in different lists")
        labels.append(found.pop())
    return labels


def _label_id(field: Field, name: str) -> int:
    if not (name.isascii() and name.isdigit() and len(name) <= 5 and int(name) <= MAX_ID):
        raise field.bad(f"the key is not an id from 0 to {MAX_ID}")
    return int(name)


def short_text(cpus: int) -> str:
    listed = cpuset.text(cpus)
    return listed if len(listed) <= 60 else listed[:60] + "..."
