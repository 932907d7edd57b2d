"""The attributes that the agent adds to a topology report: the facts that make predictions exact.

`nrt.normalise` calls `read` and `write`; the agent fills `NodeFacts`, and the scheduler reads it. Each attribute has a
name under `numalign.io/`, a version tag and a codec in the module of its subject. A newer version or an unknown name is
reported and skipped. A malformed text is a BadObject from `decode` and a repair from `read`."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from msgspec import Struct

from numalign.api import errors
from numalign.api.attributes import coremap, deviceclasses, devicetable, directmode, grammar, managers, podplacements
from numalign.api.attributes.coremap import Core
from numalign.api.attributes.deviceclasses import DeviceCount
from numalign.api.attributes.devicetable import DeviceTable
from numalign.api.attributes.directmode import AppliedContainer, DeviceMinors, DirectMode
from numalign.api.attributes.managers import KubeletBuild, ManagerPolicies, MemoryZone, ReservedMemory
from numalign.api.attributes.podplacements import PodPlacement
from numalign.api.attributes.repairs import Guess, GuessCode
from numalign.api.decode import cpuset

KIND: Final = "NodeResourceTopology"
PREFIX: Final = "numalign.io/"


class NodeFacts(Struct, frozen=True, kw_only=True):
    """Everything our agent adds to a report. None: not published."""

    managers: ManagerPolicies | None = None
    kubelet: KubeletBuild | None = None
    reserved_cpus: int | None = None
    reserved_memory: ReservedMemory | None = None
    cores: tuple[Core, ...] | None = None
    default_cpus: int | None = None
    """The CPU manager's shared set, as in its checkpoint; reserved CPUs may be part of it."""
    memory: tuple[MemoryZone, ...] | None = None
    devices: tuple[DeviceCount, ...] | None = None
    placements: tuple[PodPlacement, ...] | None = None
    kubelet_away: bool | None = None
    """True: the kubelet does not answer the agent, and everything else is as it was before."""
    mode: DirectMode | None = None
    """The agent enforces what the scheduler decides."""
    minors: tuple[DeviceMinors, ...] | None = None
    """The devices that it can hand out."""
    shares: DeviceTable | None = None
    """The devices that it can hand out in parts or together."""
    applied: tuple[AppliedContainer, ...] | None = None
    """What it did with each decision."""


class Codec(NamedTuple):
    """How one field of NodeFacts is written and read, without the version tag."""

    field: str
    encode: Callable[[Any], str]
    decode: Callable[[str], Any]


_once: Final = lru_cache(maxsize=256)
"""For configuration, which is equal on nodes of the same setup."""

CODECS: Final = {
    "numalign.io/managers": Codec("managers", managers.encode_policies, _once(managers.decode_policies)),
    "numalign.io/kubelet": Codec("kubelet", managers.encode_build, _once(managers.decode_build)),
    "numalign.io/kubelet-state": Codec("kubelet_away", managers.encode_away, managers.decode_away),
    "numalign.io/reserved-cpus": Codec("reserved_cpus", cpuset.text, grammar.cpus),
    "numalign.io/reserved-memory": Codec(
        "reserved_memory", managers.encode_reserved_memory, _once(managers.decode_reserved_memory)
    ),
    "numalign.io/cores": Codec("cores", coremap.encode, coremap.decode),
    "numalign.io/default-cpus": Codec("default_cpus", cpuset.text, grammar.cpus),
    "numalign.io/memory": Codec("memory", managers.encode_memory_state, managers.decode_memory_state),
    "numalign.io/devices": Codec("devices", deviceclasses.encode, deviceclasses.decode),
    "numalign.io/mode": Codec("mode", directmode.encode_mode, _once(directmode.decode_mode)),
    "numalign.io/minors": Codec("minors", directmode.encode_minors, _once(directmode.decode_minors)),
    "numalign.io/shared-devices": Codec("shares", devicetable.encode, _once(devicetable.decode)),
    "numalign.io/applied": Codec("applied", directmode.encode_applied, directmode.decode_applied),
    "numalign.io/placements": Codec("placements", podplacements.encode_placements, podplacements.decode_placements),
}


class Unknown(NamedTuple):
    """An attribute of a newer release, which this one cannot read."""

    version: int | None
    """None: the name is unknown, too."""


def write(facts: NodeFacts) -> dict[str, str]:
    """The attributes of all facts that are not None, by name."""
    values = ((name, codec, getattr(facts, codec.field)) for name, codec in sorted(CODECS.items()))
    return {name: grammar.tagged(codec.encode(value)) for name, codec, value in values if value is not None}


def decode(node: str, name: str, value: str) -> Any:
    """The fact in one attribute of the report on this node, or Unknown; BadObject if it breaks its grammar."""
    codec = CODECS.get(name)
    if codec is None:
        return Unknown(None)
    try:
        version, body = grammar.version_and_body(value)
        return codec.decode(body) if version == grammar.VERSION else Unknown(version)
    except grammar.AttributeTextError as error:
        raise errors.BadObject(KIND, node, f"attributes[{name}]", str(error)) from error


def read(node: str, attributes: Mapping[str, str], guesses: list[Guess]) -> NodeFacts:
    """The facts in our attributes; an unreadable one is recorded and stays None."""
    facts: dict[str, Any] = {}
    for name, value in attributes.items():
        try:
            fact = decode(node, name, value)
        except errors.BadObject as problem:
            guesses.append(Guess(GuessCode.FACT_MALFORMED, problem.field, problem.why))
            continue
        if isinstance(fact, Unknown):
            guesses.append(Guess(GuessCode.FACT_UNKNOWN, f"attributes[{name}]", errors.echo(value)))
        else:
            facts[CODECS[name].field] = fact
    return NodeFacts(**facts)
