"""How a node advertises direct mode and acknowledges decisions: attributes of its report, labels of its Node.

The agent writes `numalign.io/mode` where it can enforce decisions, `numalign.io/minors` with the devices that it can
hand out, and `numalign.io/applied` with what it did for each container. `attributes` calls the codecs;
docs/concepts/direct-mode.md gives the grammar. The labels are defaults for pods that do not say otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from numalign.api import errors
from numalign.api.attributes import directspec, grammar
from numalign.api.attributes.directspec import AlignmentPolicy, BindPolicy, Strategy
from numalign.api.decode import cpuset

POLICY_LABEL: Final = "numalign.io/numa-topology-policy"
SCOPE_LABEL: Final = "numalign.io/numa-topology-scope"
CPU_LABEL: Final = "numalign.io/cpu-bind-policy"
STRATEGY_LABEL: Final = "numalign.io/numa-allocate-strategy"
LABELS: Final = (POLICY_LABEL, SCOPE_LABEL, CPU_LABEL, STRATEGY_LABEL)

DIRECT: Final = "direct"
FEATURES: Final = ("cpus", "mems", "devices")
"""What an agent may be able to enforce, in the order in which it is written."""


class DirectMode(Struct, frozen=True):
    """The agent enforces decisions: these kinds of them."""

    features: frozenset[str] = frozenset(FEATURES)


class DeviceMinors(Struct, frozen=True, order=True):
    """Devices of one resource on one set of zones (as a mask), by minor number (as a mask); no zone: zones 0."""

    resource: str
    zones: int
    minors: int


class AppliedContainer(Struct, frozen=True, kw_only=True, order=True):
    """What became of one container's decision."""

    uid: str
    """The pod's."""
    container: str
    cpus: int = 0
    """What the kernel says the container may use (`cpuset.cpus.effective`)."""
    mems: int = 0
    failure: str = ""
    """Why the decision was not applied; empty: it was."""


class NodeDefaults(Struct, frozen=True):
    """What the node's labels say for pods that do not."""

    policy: AlignmentPolicy = "none"
    scope: str = "container"
    cpus: BindPolicy | None = None
    strategy: Strategy = "MostAllocated"


def defaults(labels: Mapping[str, str]) -> NodeDefaults:
    """The defaults in a node's labels; a word that is unknown counts as not said."""
    bind, strategy = labels.get(CPU_LABEL, ""), labels.get(STRATEGY_LABEL, "")
    return NodeDefaults(
        policy=directspec.POLICIES.get(labels.get(POLICY_LABEL, ""), "none"),
        scope=directspec.SCOPES.get(labels.get(SCOPE_LABEL, ""), "container"),
        cpus=next((each for each in directspec.BIND_POLICIES if each == bind), None),
        strategy=next((each for each in directspec.STRATEGIES if each == strategy), "MostAllocated"),
    )


def encode_mode(mode: DirectMode) -> str:
    """direct;cpus+mems+devices"""
    return f"{DIRECT};{'+'.join(each for each in FEATURES if each in mode.features)}"


def decode_mode(body: str) -> DirectMode:
    name, separator, listed = body.partition(";")
    features = grammar.split(listed, "+")
    unknown = [each for each in features if each not in FEATURES]
    if name != DIRECT or not separator or unknown:
        raise grammar.AttributeTextError(f"{errors.echo(body)} is not {DIRECT}; and some of {'+'.join(FEATURES)}")
    return DirectMode(frozenset(features))


MINORS: Final = re.compile(r"([^=]+)=([-0-9+]+|none):([-0-9,]+)")
NO_ZONE: Final = "none"


def encode_minors(devices: Iterable[DeviceMinors]) -> str:
    """example.com/gpu=0:0-3;example.com/gpu=1:4-7"""
    return ";".join(
        f"{grammar.word(each.resource)}={_zones(each)}:{cpuset.text(each.minors)}" for each in sorted(devices)
    )


def _zones(devices: DeviceMinors) -> str:
    return grammar.zones(devices.zones) if devices.zones else NO_ZONE


def decode_minors(body: str) -> tuple[DeviceMinors, ...]:
    found = [_minors(text) for text in grammar.split(body, ";")]
    grammar.unique(((each.resource, each.zones), each) for each in found)
    return tuple(sorted(found))


def _minors(text: str) -> DeviceMinors:
    match = MINORS.fullmatch(text)
    if match is None:
        raise grammar.AttributeTextError(f"{errors.echo(text)} is not resource=zones:minors")
    zones = 0 if match[2] == NO_ZONE else grammar.from_zones(match[2])
    return DeviceMinors(grammar.from_word(match[1]), zones, grammar.cpus(match[3]))


def encode_applied(containers: Iterable[AppliedContainer]) -> str:
    """uid/app=0-5@0;uid/db=!cpuset%20is%20taken"""
    return ";".join(
        f"{grammar.word(each.uid)}|{grammar.word(each.container)}={_outcome(each)}" for each in sorted(containers)
    )


def decode_applied(body: str) -> tuple[AppliedContainer, ...]:
    found = [_applied(text) for text in grammar.split(body, ";")]
    grammar.unique(((each.uid, each.container), each) for each in found)
    return tuple(sorted(found))


def _outcome(each: AppliedContainer) -> str:
    return f"!{grammar.word(each.failure)}" if each.failure else f"{cpuset.text(each.cpus)}@{grammar.zones(each.mems)}"


def _applied(text: str) -> AppliedContainer:
    subject, outcome = grammar.pair(text)
    uid, separator, container = subject.partition("|")
    if not separator:
        raise grammar.AttributeTextError(f"{errors.echo(subject)} is not uid|container")
    pod, name = grammar.from_word(uid), grammar.from_word(container)
    if outcome.startswith("!"):
        return AppliedContainer(uid=pod, container=name, failure=grammar.from_word(outcome[1:]))
    cpus, at, mems = outcome.partition("@")
    if not at:
        raise grammar.AttributeTextError(f"{errors.echo(outcome)} is not cpus@zones or !reason")
    return AppliedContainer(uid=pod, container=name, cpus=grammar.cpus(cpus), mems=grammar.from_zones(mems))
