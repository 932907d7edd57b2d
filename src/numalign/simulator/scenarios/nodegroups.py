"""Reads the node groups of a scenario into `NodeSpec`s.

A group has equal machines with one kubelet configuration. `scenariofile` reads each entry under `nodes`, and `numalign
cluster up` makes one group from its options. A machine is the name of a preset or written in place; the caller decides
whether it may be a file."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final, get_args

from msgspec import structs

from numalign.api import errors
from numalign.api.attributes import devicetable
from numalign.api.attributes.devicetable import NO_ZONE, Device, DeviceTable, Function
from numalign.api.decode import cpuset, fields
from numalign.api.decode.fields import Field
from numalign.api.objects.node import Taint
from numalign.kubelet import configuration, refusals, start, versions
from numalign.kubelet.machine import machinefile, presets, zonecores
from numalign.kubelet.machine.machine import Machine
from numalign.kubelet.settings import Settings
from numalign.simulator.nodes.specs import NodeSpec, PublisherFaults, PublisherKind, Publishing
from numalign.simulator.scenarios import durations

KEYS: Final = (
    "name",
    "count",
    "machine",
    "policy",
    "scope",
    "kubelet",
    "version",
    "labels",
    "taints",
    "reports",
    "mode",
    "sharedDevices",
    "starts",
    "boots",
)
MODES: Final = ("predict", "direct")
TAINT_KEYS: Final = ("key", "value", "effect")
EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
REPORT_KEYS: Final = ("as", "period", "onChange", "window", "lag", "lost", "stale", "repeated", "garbage", "restarted")
DIALECTS: Final[tuple[PublisherKind, ...]] = get_args(PublisherKind)
MOST_NODES: Final = 50_000
USUAL_MINOR: Final = versions.Minor(1, 37)
"""The API server has the same minor version, because a kubelet must not be newer than its API server."""

MachineByName = Callable[[Field], Machine]


def preset(name: Field) -> Machine:
    written = fields.text(name)
    if written not in presets.names():
        raise name.bad(f"no preset {errors.echo(written)}; {fields.suggestion(written, presets.names())}")
    return presets.machine(written)


def usual(machine: Machine) -> dict[str, object]:
    """The default kubelet configuration: all aligning options on, one core and one GiB reserved in the first zone that
    has them, and no limit on the number of zones."""
    cores = next(zone.cores for zone in machine.zones if zone.cores)
    home = next(zone.id for zone in machine.zones if zone.memory)
    return {
        "cpuManagerPolicy": "static",
        "reservedSystemCPUs": cpuset.text(zonecores.mask(cores[:1])),
        "memoryManagerPolicy": "Static",
        "kubeReserved": {"memory": "924Mi"},
        "evictionHard": {"memory.available": "100Mi"},
        "reservedMemory": [{"numaNode": home, "limits": {"memory": "1Gi"}}],
        "topologyManagerPolicyOptions": {start.MAX_ZONES: str(max(start.DEFAULT_MAX_ZONES, len(machine.zones)))},
    }


def read(group: Field, machine: MachineByName = preset) -> Iterator[NodeSpec]:
    """All nodes of the group. The name of a single node has no number."""
    fields.only(group, KEYS)
    prefix = fields.text(group.at("name")) if group.at("name").given else "node"
    count = fields.integer(group.at("count"), 1, MOST_NODES) if group.at("count").given else 1
    on = _machine(group.at("machine"), machine)
    one = NodeSpec(
        name=prefix,
        machine=on,
        settings=_settings(group, on),
        labels={name: fields.text(each) for name, each in fields.entries(group.at("labels"))},
        taints=tuple(_taint(each) for each in fields.items(group.at("taints"))),
        publishing=_publishing(group.at("reports")),
        direct=group.at("mode").given and fields.one_of(group.at("mode"), MODES, "") == "direct",
        shared_devices=_shared(group.at("sharedDevices"), on),
        start_seconds=_seconds(group.at("starts"), 1.0),
        boot_seconds=_seconds(group.at("boots"), 60.0),
    )
    if count == 1:
        return iter((one,))
    return (structs.replace(one, name=f"{prefix}-{number}") for number in range(count))


def _machine(field: Field, by_name: MachineByName) -> Machine:
    if isinstance(field.value, str):
        return by_name(field)
    return machinefile.read(fields.mapping(field), f"{field.source}, {field.path}")


def _settings(group: Field, machine: Machine) -> Settings:
    written = dict(fields.mapping(group.at("kubelet"))) if group.at("kubelet").given else {}
    for short, name in (("policy", "topologyManagerPolicy"), ("scope", "topologyManagerScope")):
        if group.at(short).given:
            written[name] = group.at(short).value
    whole = {"apiVersion": configuration.API_VERSION, "kind": configuration.KIND} | written
    source = f"{group.source}, {group.path}.kubelet"
    settings = configuration.read(whole, source, machine, _minor(group.at("version")))
    _require_start(machine, settings, source)
    return settings


def _require_start(machine: Machine, settings: Settings, source: str) -> None:
    try:
        start.start(machine, settings)
    except (refusals.StartRefusal, refusals.Undecided) as refusal:
        raise errors.BadObject(configuration.KIND, source, "", f"the kubelet would not start: {refusal}") from None


def _minor(field: Field) -> versions.Minor:
    if not field.given:
        return USUAL_MINOR
    written = fields.text(field)
    found = versions.parse(written)
    if found is None or versions.clamped(found) != found:
        raise field.bad(
            f"{errors.echo(written)} is not a supported version; use {versions.OLDEST} to {versions.NEWEST}"
        )
    return found


def _taint(field: Field) -> Taint:
    fields.only(field, TAINT_KEYS)
    value = fields.text(field.at("value")) if field.at("value").given else ""
    return Taint(fields.text(field.at("key")), value, fields.one_of(field.at("effect"), EFFECTS, ""))


DEVICE_KEYS: Final = ("type", "zone", "pcie", "memory", "count", "functions")
MOST_OF_A_KIND: Final = 64


def _shared(field: Field, machine: Machine) -> DeviceTable | None:
    """Devices by type, numbered in the order in which they are listed."""
    zones, found, numbers = [zone.id for zone in machine.zones], list[Device](), Counter[str]()
    for each in fields.items(field):
        fields.only(each, DEVICE_KEYS)
        kind = fields.one_of(each.at("type"), devicetable.KINDS, "gpu")
        zone = fields.integer(each.at("zone"), min(zones), max(zones)) if each.at("zone").given else NO_ZONE
        count, functions = (
            fields.integer(each.at(name), least, MOST_OF_A_KIND) if each.at(name).given else least
            for name, least in (("count", 1), ("functions", 0))
        )
        for _ in range(count):
            minor, bus = numbers[kind], len(found)
            numbers[kind] += 1
            found.append(
                Device(
                    type=kind,
                    minor=minor,
                    id=f"{kind}-{minor}",
                    zone=zone,
                    pcie=fields.text(each.at("pcie")) if each.at("pcie").given else "",
                    memory=fields.whole_bytes(each.at("memory")) if each.at("memory").given else 0,
                    functions=tuple(Function(f"0000:{bus:02x}:00.{at + 1:x}") for at in range(functions)),
                )
            )
    found.sort(key=lambda device: (devicetable.KINDS.index(device.type), device.minor))
    return DeviceTable(devices=tuple(found)) if found else None


def _publishing(field: Field) -> Publishing:
    if not field.given:
        return Publishing()
    fields.only(field, REPORT_KEYS)
    late = durations.span(field.at("lag")) or durations.Span(0.0, 0.0)
    return Publishing(
        publisher=fields.one_of(field.at("as"), DIALECTS, "agent"),
        period=_seconds(field.at("period"), Publishing().period),
        reactive=fields.boolean(field.at("onChange")) if field.at("onChange").given else True,
        window=durations.read(field.at("window")) if field.at("window").given else None,
        lag=late.least,
        jitter=late.most - late.least,
        faults=_faults(field),
    )


def _faults(field: Field) -> PublisherFaults:
    return PublisherFaults(
        dropped=_chance(field.at("lost")),
        stale=_chance(field.at("stale")),
        duplicated=_chance(field.at("repeated")),
        garbage=_chance(field.at("garbage")),
        restarted=_chance(field.at("restarted")),
    )


def _chance(field: Field) -> float:
    if not field.given:
        return 0.0
    if not isinstance(field.value, int | float) or isinstance(field.value, bool) or not 0 <= field.value <= 1:
        raise field.bad(f"{errors.echo(field.value)} is not a probability; write a number from 0 to 1")
    return float(field.value)


def _seconds(field: Field, default: float) -> float:
    return durations.read(field) if field.given else default
