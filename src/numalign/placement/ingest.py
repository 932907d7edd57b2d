"""A node's report, read for the engine: any publisher's NodeTopology and the Node in, RowFacts out.

`mirror` calls `read` for every report, and `read_again` for a plain one that it has not kept when the Node changes.
With our agent's facts every number is exact. A plain report of RTE or NFD works too, with what it carries: each thing
that had to be supposed is in `assumptions`. However odd a report is, reading it never fails. What nodes of one make
have in common is the same object for all of them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec import Struct, structs

from numalign.api import fingerprint, resourcenames
from numalign.api.attributes import NodeFacts
from numalign.api.node import Node
from numalign.api.nodetopology import NodeTopology
from numalign.api.placementcodec import Payload
from numalign.api.topologymanager import Policy, Scope
from numalign.kubelet import start
from numalign.kubelet.demand import Reading
from numalign.kubelet.settings import Settings
from numalign.kubelet.versions import Minor
from numalign.placement import hardware, nodesettings, supplies
from numalign.placement.hardware import Cores
from numalign.placement.noderules import BY_L3, NodeRules
from numalign.placement.rowfacts import Assumption, Groups, RowFacts, Stock, Supplies, Supply, supplies_of

Found = Mapping[str, Supply]
NONE_OF_OURS: Final = NodeFacts()
FROM_NODE: Final = frozenset({Assumption.MINOR_ASSUMED, Assumption.SIZE_FROM_ALLOCATABLE})
"""What may be assumed because of what a Node says, or does not say."""
EXACT: Final[Mapping[str, int]] = {}
MAKES: Final = 1024
"""Different kinds of nodes that are remembered."""


class Report(Struct, frozen=True):
    """A report while it is being read. `noted` collects what is supposed on the way."""

    topology: NodeTopology
    node: Node | None
    settings: Settings
    cores: Cores | None
    noted: set[Assumption]

    @property
    def static_cpus(self) -> bool:
        return self.settings.cpu_policy == "static"

    @property
    def static_memory(self) -> bool:
        return self.settings.memory_policy == "Static"


class Make(NamedTuple):
    """All that rules follow from, as it was published: most reports come from a make that is known already."""

    zones: tuple[int, ...]
    policy: Policy
    scope: Scope
    distances: tuple[tuple[int, ...], ...] | None
    static_cpus: bool
    cpu_options: tuple[tuple[str, str], ...]
    threads: int
    sockets: tuple[int, ...]
    static_memory: bool
    feature_gates: tuple[tuple[str, bool], ...]
    minor: Minor
    regular: bool
    l3_straddles: bool


def read(topology: NodeTopology, node: Node | None) -> RowFacts:
    """Everything that the report says about the node, and what it leaves open."""
    if not topology.zones:
        return _without_zones(topology.node, node)
    noted: set[Assumption] = set()
    report = Report(topology, node, nodesettings.read(topology, node, noted), _cores(topology), noted)
    devices, classes = supplies.devices(topology)
    found = {resourcenames.CPU: supplies.cpus(topology, report.cores), **supplies.memory(topology), **devices}
    # In the order of the report, in which the next ones are likely to have them, too.
    found = {name: found[name] for name in topology.zones[0].resources if name in found} | found
    if topology.facts.placements is None:
        noted.add(Assumption.PLACEMENTS_UNKNOWN)
    signature = topology.fingerprint
    return RowFacts(
        node=sys.intern(topology.node),
        rules=_rules(report),
        supplies=_shared_stock(supplies_of(found)),
        classes=classes,
        free_full_core_cpus=supplies.on_full_cores(topology.facts, report.cores),
        cores=supplies.by_free_threads(topology.facts, report.cores),
        groups=_groups(report, found),
        unknown_size=_unknown_size(_plain(report, found), node, noted),
        placements=topology.facts.placements,
        payload=payload(topology),
        zone_cpus=report.cores.members if report.cores else (),
        from_books=_from_books(report, found),
        fingerprint=signature.text if signature else "",
        exclusive_only=signature is not None and signature.method is fingerprint.Method.EXCLUSIVE,
        assumptions=shared_assumptions(frozenset(noted)),
    )


def payload(topology: NodeTopology) -> Payload | None:
    """Upstream's placements; what our agent lists says more. It is written for zones that are numbered through."""
    found = topology.placement
    if found is None or topology.facts.placements is not None or topology.manager.policy != "single-numa-node":
        return None
    return found if found.zones == len(topology.zones) else None


def is_plain(topology: NodeTopology) -> bool:
    """Whether there is nothing of our agent in the report."""
    return topology.facts == NONE_OF_OURS


def read_again(facts: RowFacts, node: Node | None) -> RowFacts:
    """A plain report that was read before, with what the Node says now."""
    noted = set(facts.assumptions - FROM_NODE)
    settings = Settings(minor=nodesettings.minor("", node, noted))
    rules = structs.replace(facts.rules, reading=Reading.of(settings), minor=settings.minor)
    unknown = _unknown_size(_of_kinds(dict(facts.supplies.items()), cpus=rules.static_cpus, devices=True), node, noted)
    return structs.replace(
        facts, rules=_shared_rules(rules), unknown_size=unknown, assumptions=shared_assumptions(frozenset(noted))
    )


def supposed_groups(policy: Policy, zones: int, busy: int) -> Groups | None:
    """Of a node that publishes none, when some memory of these zones is in use; None: nobody knows."""
    # A single zone never groups (engine spec R8), nor does memory that nobody holds. A zone by itself with nothing
    # missing proves nothing: NFD takes a block that lies in several zones from the first of them (exporter spec 5.6).
    return None if busy and policy != "single-numa-node" and zones > 1 else _apart(zones, busy)


def without_report(node: Node) -> RowFacts:
    """A node that reports nothing: no zone is known, so nothing can be held against a pod there."""
    return _without_zones(node.metadata.name, node)


def _without_zones(name: str, node: Node | None) -> RowFacts:
    noted = {Assumption.NO_REPORT}
    settings = Settings(minor=nodesettings.minor("", node, noted))
    rules = NodeRules(zones=(), reading=Reading.of(settings), minor=settings.minor)
    return RowFacts(node=name, rules=_shared_rules(rules), assumptions=shared_assumptions(frozenset(noted)))


@lru_cache(maxsize=MAKES)
def _shared_rules(rules: NodeRules) -> NodeRules:
    return rules


@lru_cache(maxsize=MAKES)
def shared_assumptions(noted: frozenset[Assumption]) -> frozenset[Assumption]:
    return noted


def _shared_stock(found: Supplies) -> Supplies:
    return structs.replace(found, stock=_stock(found.stock))


@lru_cache(maxsize=MAKES)
def _stock(stock: Stock) -> Stock:
    return stock


@lru_cache(maxsize=MAKES)
def _shared_names(names: frozenset[str]) -> frozenset[str]:
    return names


@lru_cache(maxsize=MAKES)
def _apart(zones: int, busy: int) -> Groups:
    """Every zone by itself."""
    return Groups(tuple(1 << position for position in range(zones)), busy)


def _cores(topology: NodeTopology) -> Cores | None:
    published = topology.facts.cores
    return hardware.cores(supplies.zone_ids(topology), published) if published else None


def _rules(report: Report) -> NodeRules:
    settings, cores = report.settings, report.cores
    if cores is None and report.static_cpus:
        report.noted.add(Assumption.CORES_UNKNOWN)
    make = Make(
        zones=supplies.zone_ids(report.topology),
        policy=settings.topology_policy,
        scope=settings.topology_scope,
        distances=_distances(report),
        static_cpus=report.static_cpus,
        cpu_options=tuple(settings.cpu_options.items()),
        threads=max(1, cores.topology.cpus_per_core) if cores else 1,
        sockets=cores.sockets if cores else (),
        static_memory=report.static_memory,
        feature_gates=tuple(settings.feature_gates.items()),
        minor=settings.minor,
        # Without a core map nobody can tell how CPUs in several zones are split.
        regular=cores.regular if cores else not report.static_cpus,
        l3_straddles=cores.l3_straddles if cores else report.static_cpus,
    )
    return _rules_of(make)


@lru_cache(maxsize=MAKES)
def _rules_of(make: Make) -> NodeRules:
    options = nodesettings.switched_on(dict(make.cpu_options))
    return _shared_rules(
        NodeRules(
            zones=make.zones,
            policy=make.policy,
            scope=make.scope,
            distances=make.distances,
            static_cpus=make.static_cpus,
            cpu_options=options,
            threads_per_core=make.threads,
            sockets=make.sockets,
            static_memory=make.static_memory,
            reading=Reading.of(Settings(feature_gates=dict(make.feature_gates), minor=make.minor)),
            minor=make.minor,
            regular=make.regular,
            l3_straddles=make.l3_straddles and BY_L3 in options,
        )
    )


def _distances(report: Report) -> tuple[tuple[int, ...], ...] | None:
    """By position, where the node prefers close zones."""
    settings, zones = report.settings, report.topology.zones
    if not settings.topology_options or settings.topology_policy == "none":
        return None
    if start.PREFER_CLOSEST not in nodesettings.switched_on(settings.topology_options):
        return None
    if any(other.id not in zone.costs for zone in zones for other in zones):
        report.noted.add(Assumption.DISTANCES_UNKNOWN)
        return None
    in_a_row = all(zone.id == place for place, zone in enumerate(zones))
    if not in_a_row and settings.topology_policy != "single-numa-node":
        report.noted.add(Assumption.CLOSEST_DESPITE_GAPS)
    return tuple(tuple(zone.costs[other.id] for other in zones) for zone in zones)


def _groups(report: Report, found: Found) -> Groups | None:
    if not report.static_memory:
        return None
    published = supplies.groups(report.topology)
    if published is not None:
        return published
    memory = [found[name] for name in found if supplies.is_memory(name)]
    busy = 0
    for position in range(len(report.topology.zones)):
        if any(each.free[position] < each.allocatable[position] for each in memory):
            busy |= 1 << position
    groups = supposed_groups(report.settings.topology_policy, len(report.topology.zones), busy)
    if groups is None:
        report.noted.add(Assumption.GROUPS_UNKNOWN)
    return groups


def _plain(report: Report, found: Found) -> Found:
    """Resources whose size is a plain amount: memory counts by allocatable, and facts are exact."""
    cpus = report.static_cpus and not report.cores
    return _of_kinds(found, cpus=cpus, devices=report.topology.facts.devices is None)


def _of_kinds(found: Found, *, cpus: bool, devices: bool) -> Found:
    wanted = {name: each for name, each in found.items() if supplies.is_device(name)} if devices else {}
    return wanted | {resourcenames.CPU: found[resourcenames.CPU]} if cpus else wanted


def _unknown_size(plain: Found, node: Node | None, noted: set[Assumption]) -> Mapping[str, int]:
    if node is None and any(each.size == each.allocatable for each in plain.values()):
        noted.add(Assumption.SIZE_FROM_ALLOCATABLE)
    missed = supplies.missed(plain, node)
    if missed:
        noted.add(Assumption.SIZE_FROM_ALLOCATABLE)
    return missed or EXACT


def _from_books(report: Report, found: Found) -> frozenset[str]:
    facts = report.topology.facts
    names: list[str] = []
    if report.cores is not None and supplies.free_cpus(facts) is not None:
        names.append(resourcenames.CPU)
    if supplies.free_memory(report.topology) is not None:
        names += filter(supplies.is_memory, found)
    if facts.devices is not None:
        names += filter(supplies.is_device, found)
    return _shared_names(frozenset(names))
