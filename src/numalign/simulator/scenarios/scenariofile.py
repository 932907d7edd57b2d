"""Reads scenario files into `Scenario` values.

The catalogue and the command line parse the YAML and pass the mapping to `read`; docs/use/scenarios.md describes the
format. Every error is a BadObject with file and field, including unknown keys, because a misspelt key would change the
scenario silently."""

import re
from collections.abc import Iterator
from typing import Final

from msgspec import structs

from numalign.api import errors
from numalign.api.decode import fields
from numalign.api.decode.fields import Field
from numalign.simulator.nodes.specs import NodeSpec
from numalign.simulator.scenarios import durations, judge, nodegroups, scenario
from numalign.simulator.scenarios.scenario import (
    AT_ONCE,
    CreatedObjects,
    Deletion,
    Expectation,
    Fault,
    PodKind,
    PodStream,
    Scenario,
    Traffic,
)
from numalign.simulator.trees import Tree

KIND: Final = "Scenario"
KEYS: Final = ("name", "title", "about", "seed", "lasts", "nodes", "traffic", "faults", "expect", "notes")
STREAM_KEYS: Final = ("at", "pods", "every", "lifetime", "namespace", "mix")
CHOICE_KEYS: Final = ("name", "weight", "labels", "annotations", "spec")
OBJECT_KEYS: Final = ("at", "objects")
DELETION_KEYS: Final = ("at", "delete")
DELETED_KEYS: Final = ("apiVersion", "kind", "namespace", "name", "labels")
FAULT_KEYS: Final = ("at", "fault", "nodes", "resource", "devices", "lasts")
NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
EXPECTED: Final = re.compile(r"(==|!=|>=|<=|>|<)\s*([0-9]{1,9}(?:\.[0-9]{1,6})?)")
MOST_PODS: Final = 1_000_000
MOST_WEIGHT: Final = 1_000_000
EVERY_NODE: Final = "*"


def read(value: object, source: str, machine: nodegroups.MachineByName = nodegroups.preset) -> Scenario:
    """`machine` resolves the name of a machine: presets only, or files too."""
    file = fields.root(value, KIND, source)
    fields.only(file, KEYS)
    nodes = tuple(node for group in fields.items(file.at("nodes")) for node in nodegroups.read(group, machine))
    if not nodes:
        raise file.at("nodes").bad("no node; a scenario needs at least one")
    read = Scenario(
        name=_name(file.at("name")),
        title=fields.text(file.at("title")),
        about=_text(file.at("about")),
        seed=_number(file.at("seed"), 1, 0, 2**63 - 1),
        lasts=durations.read(file.at("lasts")),
        nodes=_distinct(file.at("nodes"), nodes),
        traffic=tuple(_traffic(each) for each in fields.items(file.at("traffic"))),
        faults=tuple(fault for each in fields.items(file.at("faults")) for fault in _faults(each, nodes)),
        expect={name: tuple(_expectations(each)) for name, each in _by_scheduler(file.at("expect"))},
        notes={name: fields.text(each) for name, each in _by_scheduler(file.at("notes"))},
        written=value,
    )
    _require_in_time(file, read.lasts)
    return read


def _distinct(field: Field, nodes: tuple[NodeSpec, ...]) -> tuple[NodeSpec, ...]:
    seen: set[str] = set()
    for node in nodes:
        if node.name in seen:
            raise field.bad(f"two nodes have the name {node.name}; give each group a unique name")
        seen.add(node.name)
    return nodes


def _require_in_time(file: Field, lasts: float) -> None:
    """Refuses load and faults that begin after the end: they would never happen."""
    for part in ("traffic", "faults"):
        for each in fields.items(file.at(part)):
            if _at(each) > lasts:
                end = durations.text(lasts)
                raise each.at("at").bad(f"{durations.text(_at(each))} is after the end of the scenario; lasts is {end}")


def _by_scheduler(field: Field) -> Iterator[tuple[str, Field]]:
    known = (scenario.ANY_SCHEDULER, *scenario.SCHEDULERS)
    for name, each in fields.entries(field):
        if name in judge.MEASURES:
            raise field.unknown(
                name, f"belongs to a scheduler; write for example {{any: {{{name}: {errors.echo(each.value)}}}}}"
            )
        if name not in known:
            raise field.unknown(name, f"no scheduler of this name plays scenarios; {fields.suggestion(name, known)}")
        yield name, each


def _traffic(field: Field) -> Traffic:
    if field.at("delete").given:
        return _deletion(field)
    if field.at("objects").given:
        fields.only(field, OBJECT_KEYS)
        return CreatedObjects(_at(field), tuple(_object(each) for each in fields.items(field.at("objects"))))
    fields.only(field, STREAM_KEYS)
    mix = tuple(_choice(each) for each in fields.items(field.at("mix")))
    if not mix:
        raise field.at("mix").bad("no pod; specify at least one")
    return PodStream(
        at=_at(field),
        pods=fields.integer(field.at("pods"), 1, MOST_PODS),
        every=durations.span(field.at("every")) or AT_ONCE,
        lifetime=durations.span(field.at("lifetime")),
        namespace=_text(field.at("namespace")) or "default",
        mix=mix,
    )


def _choice(field: Field) -> PodKind:
    fields.only(field, CHOICE_KEYS)
    return PodKind(
        name=_name(field.at("name")),
        weight=_number(field.at("weight"), 1, 1, MOST_WEIGHT),
        labels=dict(_words(field.at("labels"))),
        annotations=dict(_words(field.at("annotations"))),
        spec=_tree(field.at("spec")),
    )


def _deletion(field: Field) -> Deletion:
    fields.only(field, DELETION_KEYS)
    what = field.at("delete")
    fields.only(what, DELETED_KEYS)
    if what.at("name").given == what.at("labels").given:
        raise what.bad("specify one object by name, or several by labels")
    return Deletion(
        at=_at(field),
        api_version=fields.text(what.at("apiVersion")),
        kind=fields.text(what.at("kind")),
        namespace=_text(what.at("namespace")),
        name=_text(what.at("name")),
        labels=_text(what.at("labels")),
    )


def _faults(field: Field, nodes: tuple[NodeSpec, ...]) -> Iterator[Fault]:
    """The fault, and its end if it has a duration."""
    fields.only(field, FAULT_KEYS)
    kind = fields.one_of(field.at("fault"), scenario.FAULTS, "")
    begun = Fault(
        at=_at(field),
        kind=kind,
        nodes=_node_names(field.at("nodes"), nodes),
        resource=_text(field.at("resource")),
        devices=tuple(fields.text(each) for each in fields.items(field.at("devices"))),
    )
    yield begun
    if field.at("lasts").given:
        if kind not in scenario.REVERSED:
            raise field.at("lasts").bad(f"{kind} has no duration; remove the field")
        end = begun.at + durations.read(field.at("lasts"))
        yield structs.replace(begun, at=end, kind=scenario.REVERSED[kind])


def _node_names(field: Field, nodes: tuple[NodeSpec, ...]) -> tuple[str, ...]:
    known = tuple(node.name for node in nodes)
    if field.value == EVERY_NODE:
        return known
    named = tuple(fields.text(each) for each in fields.items(field))
    for name in named:
        if name not in known:
            raise field.bad(f"no node has the name {errors.echo(name)}; {fields.suggestion(name, known)}")
    if not named:
        raise field.bad(f'list the nodes, or write "{EVERY_NODE}" for all')
    return named


def _expectations(field: Field) -> Iterator[Expectation]:
    for measure, each in fields.entries(field):
        if measure not in judge.MEASURES:
            known = fields.suggestion(measure, judge.MEASURES)
            raise field.unknown(measure, f"no measure has this name; {known}")
        match = EXPECTED.fullmatch(str(each.value)) or EXPECTED.fullmatch(f"== {each.value}")
        if match is None:
            raise each.bad(
                f'{errors.echo(each.value)} is not a valid expectation; write a number, or a comparison such as ">= 1"'
            )
        yield Expectation(measure, match[1], float(match[2]))


def _object(field: Field) -> Tree:
    tree = _tree(field)
    for name in ("apiVersion", "kind"):
        fields.text(field.at(name))
    return tree


def _tree(field: Field) -> Tree:
    return {str(key): value for key, value in fields.mapping(field).items()}


def _at(field: Field) -> float:
    return durations.read(field.at("at")) if field.at("at").given else 0.0


def _name(field: Field) -> str:
    name = fields.text(field)
    if not NAME.fullmatch(name):
        raise field.bad(
            f"{errors.echo(name)} is not a valid name; use lower-case letters, digits and dashes, at most 63"
        )
    return name


def _text(field: Field) -> str:
    return fields.text(field) if field.given else ""


def _number(field: Field, default: int, low: int, high: int) -> int:
    return fields.integer(field, low, high) if field.given else default


def _words(field: Field) -> Iterator[tuple[str, str]]:
    return ((name, fields.text(each)) for name, each in fields.entries(field))
