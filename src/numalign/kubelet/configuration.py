"""Reads a KubeletConfiguration into the settings that decide admission.

The command line and the simulator pass the parsed file and its machine; the agent passes those of a real node.
Defaults, types and validation are the kubelet's (kubelet spec 12); fields that do not concern admission are ignored.
Checks that the managers make at start are in `start`."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from typing import get_args

import msgspec

from numalign.api import errors
from numalign.api.decode import fields, quantity
from numalign.api.decode.fields import Field
from numalign.api.objects import resourcenames
from numalign.kubelet import settings, versions
from numalign.kubelet.machine import zonecores
from numalign.kubelet.machine.machine import Machine

KIND = "KubeletConfiguration"
API_VERSION = "kubelet.config.k8s.io/v1beta1"
HEAD = {"apiVersion": API_VERSION, "kind": KIND}
LARGEST = 1 << 20
"""Bytes of /configz that are read."""

RESERVABLE = ("cpu", "memory", "ephemeral-storage", "pid")
MEMORY_SIGNAL = "memory.available"
SIGNALS = (
    MEMORY_SIGNAL,
    "allocatableMemory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "containerfs.available",
    "containerfs.inodesFree",
    "pid.available",
)
DEFAULT_THRESHOLD = {resourcenames.MEMORY: 100 << 20}
DEFAULT_MAX_PODS = 110

# apimachinery keeps these in a form that its conversion to int64 refuses, whole bytes or not.
FRACTION = re.compile(r"[+-]?[0-9]*\.[0-9]+[KMGTPE]i")
PERCENTAGE = re.compile(r"[+-]?(?:[0-9]{1,40}\.?[0-9]{0,40}|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,2})?")


def read(obj: object, source: str, machine: Machine, minor: versions.Minor = versions.NEWEST) -> settings.Settings:
    """The settings of a kubelet of this minor that is started on this machine with this file."""
    config = fields.root(obj, KIND, source)
    fields.of_kind(config, API_VERSION, KIND)
    reserved_cpus = _reserved_cpus(config, machine)
    memory_policy = _memory_policy(config.at("memoryManagerPolicy"))
    return settings.Settings(
        topology_policy=fields.one_of(config.at("topologyManagerPolicy"), get_args(settings.TopologyPolicy), "none"),
        topology_scope=fields.one_of(config.at("topologyManagerScope"), get_args(settings.TopologyScope), "container"),
        topology_options=texts(config.at("topologyManagerPolicyOptions")),
        cpu_policy=fields.one_of(config.at("cpuManagerPolicy"), get_args(settings.CPUPolicy), "none"),
        cpu_options=texts(config.at("cpuManagerPolicyOptions")),
        reserved_cpus=reserved_cpus,
        memory_policy=memory_policy,
        reserved_memory=reserved_memory(config.at("reservedMemory"), memory_policy),
        reserved=_reserved(config, reserved_cpus.bit_count()),
        eviction_hard=_eviction_hard(config, machine.capacity[resourcenames.MEMORY]),
        max_pods=_max_pods(config.at("maxPods")),
        feature_gates=_feature_gates(config.at("featureGates")),
        minor=minor,
    )


def from_configz(raw: bytes) -> dict[str, object]:
    """The KubeletConfiguration in the answer of /configz; older kubelets omit kind and version."""
    try:
        loaded = msgspec.json.decode(raw[:LARGEST])
    except (ValueError, RecursionError) as problem:
        raise errors.BadObject(KIND, "/configz", "", errors.clipped(str(problem))) from None
    inside = fields.root(loaded, KIND, "/configz").at("kubeletconfig")
    if not inside.given:
        raise inside.bad("missing; is this a kubelet's /configz?")
    return HEAD | fields.named(inside)


def texts(field: Field) -> Mapping[str, str]:
    """Policy options."""
    return {name: _text_or_empty(value) for name, value in fields.entries(field)}


def _reserved_cpus(config: Field, machine: Machine) -> int:
    field = config.at("reservedSystemCPUs")
    cgroups = [key for key in ("systemReservedCgroup", "kubeReservedCgroup") if _text_or_empty(config.at(key))]
    if not _text_or_empty(field):
        return 0
    if cgroups:
        raise field.bad(f"cannot be combined with {cgroups[0]}; remove one of the two")
    reserved = fields.cpus(field)
    if reserved & ~machine.cpus:
        missing = zonecores.short_text(reserved & ~machine.cpus)
        raise field.bad(f"the machine has no CPU {missing}; its CPUs are {zonecores.short_text(machine.cpus)}")
    return reserved


def _text_or_empty(field: Field) -> str:
    return fields.text(field) if field.given else ""


def _reserved(config: Field, reserved_cpus: int) -> Mapping[str, int]:
    """Both reservations together. A list of reserved CPUs takes the place of either's `cpu` (kubelet spec 12)."""
    totals: dict[str, quantity.Quantity] = {}
    for key in ("kubeReserved", "systemReserved"):
        for resource, written in fields.entries(config.at(key)):
            fields.text(written)
            if resource not in RESERVABLE:
                raise written.bad(f"cannot be reserved; only {', '.join(RESERVABLE)} can")
            if resource != resourcenames.CPU or not reserved_cpus:
                totals[resource] = totals.get(resource, quantity.ZERO) + _reservation(written, resource)
    if reserved_cpus:
        totals[resourcenames.CPU] = quantity.of(reserved_cpus)
    return {name: size.milli if name == resourcenames.CPU else size.value for name, size in totals.items()}


def _reservation(written: Field, resource: str) -> quantity.Quantity:
    size = fields.amount(written)
    if size < quantity.ZERO:
        raise written.bad(f"{errors.echo(written.value)} is negative; reserve nothing or more")
    if resource != resourcenames.CPU:
        return size
    # The kubelet rounds up to millionths of a CPU, and from there to the nearest thousandth.
    millionths = -(-size.nanos // 1000)
    return quantity.of_milli((millionths + 500) // 1000)


def _eviction_hard(config: Field, memory: int) -> Mapping[str, int]:
    """The memory threshold of hard eviction. The default applies only to a file without any threshold."""
    field, merge = config.at("evictionHard"), config.at("mergeDefaultEvictionSettings")
    merged = merge.given and fields.boolean(merge)
    thresholds = {signal: _threshold(value, signal, memory) for signal, value in fields.entries(field)}
    if not field.given or (merged and MEMORY_SIGNAL not in thresholds):
        return DEFAULT_THRESHOLD
    held_back = thresholds.get(MEMORY_SIGNAL)
    return {} if held_back is None else {resourcenames.MEMORY: held_back}


def _threshold(field: Field, signal: str, capacity: int) -> int | None:
    """The threshold in bytes for a resource of this capacity; None: the value disables it."""
    if signal not in SIGNALS:
        raise field.bad(f"no eviction signal of this name; {fields.suggestion(signal, SIGNALS)}")
    text = fields.text(field)
    if text.endswith("%"):
        return None if text in ("0%", "100%") else int(float(capacity) * _share(field, text))
    size = fields.amount(field)
    if size <= quantity.ZERO:
        raise field.bad(f'{errors.echo(text)} is not positive; write an amount like "100Mi" or a percentage')
    return size.value


def _share(field: Field, text: str) -> float:
    """The percentage as a part of 1, in single precision as in the kubelet: it decides single bytes."""
    number = text.rstrip("%")
    if PERCENTAGE.fullmatch(number) is None:
        raise field.bad(f'{errors.echo(text)} is not a percentage; write one like "5%"')
    if not 0 <= float(number) <= 100:
        raise field.bad(f"{errors.echo(text)} is not between 0% and 100%")
    return _single(_single(float(number)) / 100)


def _single(value: float) -> float:
    [rounded] = struct.unpack("f", struct.pack("f", value))
    return float(rounded)


def _memory_policy(field: Field) -> settings.MemoryPolicy:
    return fields.one_of(field, get_args(settings.MemoryPolicy), "None")


def reserved_memory(field: Field, policy: settings.MemoryPolicy = "None") -> tuple[settings.MemoryReservation, ...]:
    seen: set[tuple[int, str]] = set()
    reservations = []
    for entry in fields.items(field):
        zone = _zone(entry.at("numaNode"))
        limits = {}
        for resource, written in fields.entries(entry.at("limits")):
            if (zone, resource) in seen:
                raise written.bad(f"reserved twice for NUMA node {zone}; keep one entry")
            seen.add((zone, resource))
            limits[resource] = _memory_limit(written, resource, policy)
        reservations.append(settings.MemoryReservation(zone, limits))
    return tuple(reservations)


def _zone(field: Field) -> int:
    return fields.integer(field, -fields.INT32_MAX - 1, fields.INT32_MAX) if field.given else 0


def _memory_limit(written: Field, resource: str, policy: settings.MemoryPolicy) -> int:
    if resource != resourcenames.MEMORY and not resourcenames.is_hugepages(resource):
        raise written.bad("only memory and hugepages-<size> can be reserved per NUMA node")
    size = fields.whole_bytes(written)
    if size == 0:
        raise written.bad("zero reserves nothing; write more, or remove the line")
    if policy == "Static" and isinstance(written.value, str) and FRACTION.fullmatch(written.value):
        raise written.bad("the memory manager cannot read a fraction of a binary unit; write 1536Mi for 1.5Gi")
    return size


def _max_pods(field: Field) -> int:
    return (fields.integer(field, 0, fields.INT32_MAX) if field.given else 0) or DEFAULT_MAX_PODS


def _feature_gates(field: Field) -> Mapping[str, bool]:
    """Gates as set; whether this kubelet has them and lets them be set is judged at start."""
    return {name: fields.boolean(written) for name, written in fields.entries(field)}
