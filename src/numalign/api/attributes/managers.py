"""The configuration and memory state of a node's kubelet, as the agent publishes them.

`attributes` calls the codecs: policies and options of the managers, the kubelet's version with the feature gates that
matter, whether it answers, reserved memory by zone, and the Memory Manager's table of free memory and zone groups,
which plain amounts cannot express (kubelet spec 6.7). Policy and scope of the Topology Manager are standard attributes.
The kubelet model turns these structs into its settings and state."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from msgspec import Struct, field

from numalign.api import errors
from numalign.api.attributes import grammar


class ManagerPolicies(Struct, frozen=True, kw_only=True):
    """Policies by the kubelet's names, options verbatim."""

    cpu: str = "none"
    cpu_options: Mapping[str, str] = field(default_factory=dict)
    memory: str = "None"
    topology_options: Mapping[str, str] = field(default_factory=dict)


class KubeletBuild(Struct, frozen=True, kw_only=True):
    """Which kubelet runs, and the gates that change how it places pods."""

    version: str
    feature_gates: Mapping[str, bool] = field(default_factory=dict)


ReservedMemory = Mapping[int, Mapping[str, int]]
"""Bytes by zone and memory type that pods never get."""

CPU, MEMORY = "cpu", "memory"
OPTION_OF_CPU, OPTION_OF_TOPOLOGY = "cpu.", "topology."
SWITCH = {"false": False, "true": True}


def encode_policies(policies: ManagerPolicies) -> str:
    """cpu=static;memory=Static;cpu.full-pcpus-only=true"""
    parts = [f"{CPU}={grammar.word(policies.cpu)}", f"{MEMORY}={grammar.word(policies.memory)}"]
    for prefix, options in ((OPTION_OF_CPU, policies.cpu_options), (OPTION_OF_TOPOLOGY, policies.topology_options)):
        parts += [f"{prefix}{_option(name, value)}" for name, value in sorted(options.items())]
    return ";".join(parts)


def decode_policies(body: str) -> ManagerPolicies:
    settings = grammar.unique(grammar.pair(part) for part in body.split(";"))
    return ManagerPolicies(
        cpu=grammar.from_word(_taken(settings, CPU)),
        memory=grammar.from_word(_taken(settings, MEMORY)),
        cpu_options=_options(settings, OPTION_OF_CPU),
        topology_options=_options(settings, OPTION_OF_TOPOLOGY),
    )


def encode_build(build: KubeletBuild) -> str:
    """v1.34.2;PodLevelResourceManagers=true"""
    gates = (f"{grammar.word(gate)}={str(on).lower()}" for gate, on in sorted(build.feature_gates.items()))
    return ";".join((grammar.word(build.version), *gates))


def decode_build(body: str) -> KubeletBuild:
    version, *gates = body.split(";")
    pairs = (grammar.pair(gate) for gate in gates)
    switches = grammar.unique((grammar.from_word(gate), _switch(value)) for gate, value in pairs)
    return KubeletBuild(version=grammar.from_word(version), feature_gates=switches)


AWAY: Final = "away"


def encode_away(away: bool) -> str:
    """away; a kubelet that answers has no such attribute"""
    if not away:
        raise grammar.AttributeTextError("a kubelet that answers is not described")
    return AWAY


def decode_away(body: str) -> bool:
    if body != AWAY:
        raise grammar.AttributeTextError(f"{errors.echo(body)} is not {AWAY}")
    return True


def encode_reserved_memory(reserved: ReservedMemory) -> str:
    """0:memory=1Gi;1:hugepages-1Gi=2Gi,memory=512Mi"""
    return ";".join(f"{zone}:{grammar.sizes(amounts)}" for zone, amounts in sorted(reserved.items()))


def decode_reserved_memory(body: str) -> ReservedMemory:
    return grammar.unique(_zone_and_sizes(part) for part in grammar.split(body, ";"))


def _zone_and_sizes(text: str) -> tuple[int, dict[str, int]]:
    zone, colon, amounts = text.partition(":")
    if not colon:
        raise grammar.AttributeTextError(f"{errors.echo(text)} is not zone:type=size,...")
    return grammar.zone(zone), grammar.from_sizes(amounts)


def _option(name: str, value: str) -> str:
    # An option may have an empty value, a word may not.
    return f"{grammar.word(name)}={grammar.word(value) if value else ''}"


def _options(settings: Mapping[str, str], prefix: str) -> dict[str, str]:
    found = {}
    for key, value in settings.items():
        if key.startswith(prefix):
            found[grammar.from_word(key.removeprefix(prefix))] = grammar.from_word(value) if value else ""
    return found


def _taken(settings: Mapping[str, str], key: str) -> str:
    unknown = [
        name
        for name in settings
        if name not in (CPU, MEMORY) and not name.startswith((OPTION_OF_CPU, OPTION_OF_TOPOLOGY))
    ]
    if unknown:
        raise grammar.AttributeTextError(f"{errors.echo(unknown[0])} is not a setting of this version")
    if key not in settings:
        raise grammar.AttributeTextError(f"{key} is missing")
    return settings[key]


def _switch(text: str) -> bool:
    if text not in SWITCH:
        raise grammar.AttributeTextError(f"{errors.echo(text)} is not true or false")
    return SWITCH[text]


ZONE: Final = re.compile(r"([0-9]+):([0-9]+):([-0-9+]*):(.*)")


class MemoryZone(Struct, frozen=True, kw_only=True):
    """One zone: how many blocks are assigned on it, the zones of its group as a mask, free bytes by memory type."""

    zone: int
    assignments: int
    cells: int
    free: Mapping[str, int]


def encode_memory_state(zones: Iterable[MemoryZone]) -> str:
    """0:2:0-1:hugepages-1Gi=0,memory=10Gi;1:2:0-1:memory=0"""
    return ";".join(_zone(zone) for zone in sorted(zones, key=lambda zone: zone.zone))


def decode_memory_state(body: str) -> tuple[MemoryZone, ...]:
    zones = [_from_zone(text) for text in grammar.split(body, ";")]
    grammar.unique((zone.zone, zone) for zone in zones)
    return tuple(sorted(zones, key=lambda zone: zone.zone))


def _zone(zone: MemoryZone) -> str:
    cells = grammar.zones(zone.cells)
    return f"{zone.zone}:{zone.assignments}:{cells}:{grammar.sizes(zone.free)}"


@lru_cache(maxsize=grammar.PARTS)
def _from_zone(text: str) -> MemoryZone:
    match = ZONE.fullmatch(text)
    if match is None:
        raise grammar.AttributeTextError(f"{errors.echo(text)} is not zone:assignments:cells:type=free,...")
    return MemoryZone(
        zone=grammar.zone(match[1]),
        assignments=grammar.number(match[2]),
        cells=grammar.from_zones(match[3]),
        free=grammar.from_sizes(match[4]),
    )
