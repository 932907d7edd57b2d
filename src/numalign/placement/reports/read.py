"""Reads a node's report for the engine: any publisher's NodeTopology and the Node in, RowFacts out.

`ledger.sync` reads every report with a `ReportReader`. With our agent's facts every number is exact. A plain report of
RTE or NFD works too, with what it carries: whatever the reader had to assume is in `assumptions`. What depends on the
machine and on the kubelet's configuration is derived once (`StaticFacts`) and used for all reports that have it in
common, of one node or of several; what is free is read from every report anew. Reading never fails, even for a
malformed report."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Final, NamedTuple

from msgspec import Struct, structs

from numalign.api.attributes.attributes import NodeFacts
from numalign.api.attributes.coremap import Core
from numalign.api.attributes.devicetable import DeviceTable
from numalign.api.attributes.directmode import DeviceMinors, DirectMode
from numalign.api.attributes.managers import KubeletBuild, ManagerPolicies, MemoryZone, ReservedMemory
from numalign.api.caches import BoundedCache
from numalign.api.nrt import fingerprint
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.api.nrt.placementcodec import Payload
from numalign.api.nrt.topologymanager import Policy, Scope, TopologyManager
from numalign.api.objects import resourcenames
from numalign.api.objects.node import Node
from numalign.kubelet import start
from numalign.kubelet.demand import Reading
from numalign.kubelet.settings import Settings
from numalign.kubelet.versions import Minor
from numalign.placement.columns import zonesets
from numalign.placement.columns.directmachine import DirectMachine, DirectTerms
from numalign.placement.columns.nodefacts import Assumption, DeviceClass, Groups, RowFacts, Stock, Supplies, Supply
from numalign.placement.columns.noderules import BY_L3, NodeRules
from numalign.placement.reports import direct, hardware, nodesettings, supplies
from numalign.placement.reports.hardware import Cores
from numalign.placement.reports.supplies import DeviceSlots

NONE_OF_OURS: Final = NodeFacts()
FROM_NODE: Final = frozenset({Assumption.MINOR_ASSUMED, Assumption.SIZE_FROM_ALLOCATABLE})
"""Assumptions that depend on the Node object."""
EXACT: Final[Mapping[str, int]] = {}
MAKES: Final = 1024
"""Number of node kinds that are cached."""
DEVICE_CLASS = attrgetter("resource", "zones", "total", "healthy")


class Basis(NamedTuple):
    """Everything from which static facts are derived. Decoding keeps most of it as the same objects between reports."""

    node: Node | None
    manager: TopologyManager
    is_assumed: bool
    """Whether the report leaves the Topology Manager's policy or scope out."""
    managers: ManagerPolicies | None
    kubelet: KubeletBuild | None
    cores: tuple[Core, ...] | None
    reserved_cpus: int | None
    has_free_cpus: bool
    has_memory_table: bool
    has_placements: bool
    zones: list[int]
    costs: list[Mapping[int, int]]
    resources: list[tuple[str, ...]]
    """Resource names by zone."""
    capacity: list[int]
    allocatable: list[int]
    """The amounts of all these resources, zone after zone."""
    devices: list[tuple[str, int | None, int, int]] | None
    mode: DirectMode | None
    minors: tuple[DeviceMinors, ...] | None
    shares: DeviceTable | None
    reserved_memory: ReservedMemory | None


class StaticFacts(Struct, frozen=True, kw_only=True):
    """What reports have in common until the machine or the kubelet's configuration changes."""

    basis: Basis
    rules: NodeRules
    stock: Stock
    cores: Cores | None
    unknown_size: Mapping[str, int]
    from_checkpoints: frozenset[str]
    assumptions: frozenset[Assumption]
    listed: tuple[tuple[str, int], ...]
    """Resources of which the zones' amounts say what is free, with their places among the stock's names."""
    cpu: int
    """Place of cpu."""
    memory: tuple[tuple[str, int], ...]
    """Memory and hugepages, with their places."""
    devices: DeviceSlots
    direct: DirectMachine | None


class RulesKey(NamedTuple):
    """Everything from which rules are derived; most nodes of a cluster share it with others."""

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
    direct: DirectTerms | None


class ReportReader:
    """Reads reports one after the other and keeps the static facts of each node."""

    def __init__(self) -> None:
        self._by_node: dict[str, StaticFacts] = {}
        self._by_make: BoundedCache[int, StaticFacts] = BoundedCache(MAKES)
        """The latest of all nodes whose Nodes say the same, by the identity of `StaticFacts.basis.node`."""

    def read(self, topology: NodeTopology, node: Node | None) -> RowFacts:
        if not topology.zones:
            return _without_zones(topology.node, node)
        table = supplies.memory_table(topology)
        basis = _basis(topology, node, has_memory_table=table is not None)
        known = self._by_node.get(topology.node)
        if known is None or known.basis != basis:
            known = self._by_make.get(id(node))
            if known is None or known.basis != basis:
                known = static_facts(topology, basis)
                self._by_make.keep(id(known.basis.node), known)
            self._by_node[topology.node] = known
        return _row_facts(topology, known, table)

    def forget(self, node: str) -> None:
        """Drops the facts of a node without a report."""
        self._by_node.pop(node, None)


def read(topology: NodeTopology, node: Node | None) -> RowFacts:
    """Reads one report by itself."""
    return ReportReader().read(topology, node)


def is_plain(topology: NodeTopology) -> bool:
    """Whether the report has no facts of numalign's agent."""
    return topology.facts == NONE_OF_OURS


def read_again(facts: RowFacts, node: Node | None) -> RowFacts:
    """Reads a plain report again after its Node changed."""
    noted = set(facts.assumptions - FROM_NODE)
    settings = Settings(minor=nodesettings.minor("", node, noted))
    rules = structs.replace(facts.rules, reading=Reading.of(settings), minor=settings.minor)
    plain = _of_kinds(dict(facts.supplies.items()), cpus=rules.static_cpus, devices=True)
    return structs.replace(
        facts,
        rules=_shared_rules(rules),
        unknown_size=_unknown_size(plain, node, noted),
        assumptions=_shared_assumptions(frozenset(noted)),
    )


def marked_deleted(facts: RowFacts) -> RowFacts:
    """The last report of a node whose report object is gone."""
    return structs.replace(facts, assumptions=_shared_assumptions(facts.assumptions | {Assumption.REPORT_DELETED}))


def _without_zones(name: str, node: Node | None) -> RowFacts:
    noted = {Assumption.NO_REPORT}
    settings = Settings(minor=nodesettings.minor("", node, noted))
    rules = NodeRules(zones=(), reading=Reading.of(settings), minor=settings.minor)
    return RowFacts(node=name, rules=_shared_rules(rules), assumptions=_shared_assumptions(frozenset(noted)))


# What is free


def _row_facts(topology: NodeTopology, known: StaticFacts, table: Sequence[MemoryZone] | None) -> RowFacts:
    facts, stock, rules, cores = topology.facts, known.stock, known.rules, known.cores
    free, width = [0] * len(stock.size), len(stock.names)
    for name, place in known.listed:
        free[place::width] = [zone.resources.get(name, supplies.NOTHING).available for zone in topology.zones]
    left = supplies.free_cpus(facts) if cores is not None else None
    if cores is not None and left is not None:
        free[known.cpu :: width] = cores.by_position(left)
    else:
        free[known.cpu :: width] = [amount // supplies.MILLI for amount in free[known.cpu :: width]]
    for position, zone in enumerate(table or ()):
        for name, place in known.memory:
            spot = position * width + place
            free[spot] = min(zone.free.get(name, 0), stock.allocatable[spot])
    devices, homeless, classes = facts.devices or (), tuple[int, ...](), tuple[DeviceClass, ...]()
    for at, spot in known.devices.in_zones:
        free[spot] += devices[at].free
    if known.devices.homeless:
        homeless = supplies.homeless(devices, known.devices, width)
    if known.devices.wide:
        classes = tuple([structs.replace(each, free=devices[at].free) for at, each in known.devices.wide])
    groups = _groups(rules, known, free, table)
    signature, assumptions = topology.fingerprint, known.assumptions
    if groups is None and rules.static_memory:
        assumptions = _with_unknown_groups(assumptions)
    if facts.kubelet_away:
        assumptions = _shared_assumptions(assumptions | {Assumption.KUBELET_AWAY})
    return RowFacts(
        node=sys.intern(topology.node),
        rules=rules,
        supplies=Supplies(stock, tuple(free), homeless),
        classes=classes,
        free_full_core_cpus=supplies.on_full_cores(facts, cores),
        cores=cores.by_free_threads(left) if cores is not None and left is not None else None,
        groups=groups,
        unknown_size=known.unknown_size,
        placements=facts.placements,
        payload=_payload(topology) if topology.placement is not None else None,
        zone_cpus=cores.members if cores is not None else (),
        from_checkpoints=known.from_checkpoints,
        fingerprint=signature.text if signature else "",
        exclusive_only=signature is not None and signature.method is fingerprint.Method.EXCLUSIVE,
        assumptions=assumptions,
        direct=known.direct,
        applied=facts.applied or (),
    )


def _groups(
    rules: NodeRules, known: StaticFacts, free: Sequence[int], table: Sequence[MemoryZone] | None
) -> Groups | None:
    """As the memory manager's table says. Of a node that publishes none, when some memory is in use: None, unless no
    zones can be grouped."""
    if not rules.static_memory:
        return None
    zones = rules.zones
    if table is not None:
        busy = sum([1 << position for position, zone in enumerate(table) if zone.assignments])
        return _shared_groups(tuple([zonesets.from_ids(zone.cells, zones) for zone in table]), busy)
    busy, width = 0, len(known.stock.names)
    for _, place in known.memory:
        for position, spot in enumerate(range(place, len(free), width)):
            if free[spot] < known.stock.allocatable[spot]:
                busy |= 1 << position
    # A single zone never groups (engine spec R8), nor does memory that no pod holds. A zone by itself with nothing
    # missing proves nothing: NFD takes a block that lies in several zones from the first of them (exporter spec 5.6).
    if busy and rules.policy != "single-numa-node" and len(zones) > 1:
        return None
    return _shared_groups(tuple([1 << position for position in range(len(zones))]), busy)


def _payload(topology: NodeTopology) -> Payload | None:
    """Upstream's placements; what our agent lists says more. It is written for zones that are numbered through."""
    found = topology.placement
    if found is None or topology.facts.placements is not None or topology.manager.policy != "single-numa-node":
        return None
    return found if found.zones == len(topology.zones) else None


# What stays the same


def _basis(topology: NodeTopology, node: Node | None, *, has_memory_table: bool) -> Basis:
    facts, zones = topology.facts, topology.zones
    tables = [zone.resources for zone in zones]
    amounts = [each for table in tables for each in table.values()]
    return Basis(
        node=node,
        manager=topology.manager,
        is_assumed=bool(topology.guesses) and nodesettings.is_assumed(topology),
        managers=facts.managers,
        kubelet=facts.kubelet,
        cores=facts.cores,
        reserved_cpus=facts.reserved_cpus,
        has_free_cpus=facts.default_cpus is not None,
        has_memory_table=has_memory_table,
        has_placements=facts.placements is not None,
        zones=[zone.id for zone in zones],
        costs=[zone.costs for zone in zones],
        resources=list(map(tuple, tables)),
        capacity=[each.capacity for each in amounts],
        allocatable=[each.allocatable for each in amounts],
        devices=list(map(DEVICE_CLASS, facts.devices)) if facts.devices is not None else None,
        mode=facts.mode,
        minors=facts.minors,
        shares=facts.shares,
        # The kubelet's managers account for it themselves.
        reserved_memory=facts.reserved_memory if facts.mode is not None else None,
    )


def static_facts(topology: NodeTopology, basis: Basis) -> StaticFacts:
    """Derives the static facts from the basis of this report."""
    noted, node, facts = set[Assumption](), basis.node, topology.facts
    settings = nodesettings.read(topology, node, noted)
    cores = hardware.cores(supplies.zone_ids(topology), facts.cores) if facts.cores else None
    stock = supplies.stock(topology, cores)
    found = dict(Supplies(stock).items())
    machine = direct.machine(topology, settings, cores, node, noted)
    rules = _rules(topology, settings, cores, noted, terms=machine.terms if machine else None)
    # The size of these is a plain amount. Memory counts by allocatable, and our agent's facts are exact.
    plain = _of_kinds(found, cpus=rules.static_cpus and cores is None, devices=facts.devices is None)
    unknown_size, from_checkpoints = _unknown_size(plain, node, noted), _from_checkpoints(basis, cores, stock.names)
    if not basis.has_placements:
        noted.add(Assumption.PLACEMENTS_UNKNOWN)
    return StaticFacts(
        basis=basis,
        rules=rules,
        stock=_shared_stock(stock),
        cores=cores,
        unknown_size=unknown_size,
        from_checkpoints=from_checkpoints,
        assumptions=_shared_assumptions(frozenset(noted)),
        listed=tuple((name, place) for place, name in enumerate(stock.names) if name not in from_checkpoints),
        cpu=stock.names.index(resourcenames.CPU),
        memory=tuple((name, place) for place, name in enumerate(stock.names) if supplies.is_memory(name)),
        devices=supplies.device_slots(topology, stock.names),
        direct=machine,
    )


def _rules(
    topology: NodeTopology, settings: Settings, cores: Cores | None, noted: set[Assumption], terms: DirectTerms | None
) -> NodeRules:
    static_cpus = settings.cpu_policy == "static"
    if cores is None and static_cpus:
        noted.add(Assumption.CORES_UNKNOWN)
    make = RulesKey(
        zones=supplies.zone_ids(topology),
        policy=settings.topology_policy,
        scope=settings.topology_scope,
        distances=_distances(topology, settings, noted),
        static_cpus=static_cpus,
        cpu_options=tuple(settings.cpu_options.items()),
        threads=max(1, cores.topology.cpus_per_core) if cores else 1,
        sockets=cores.sockets if cores else (),
        static_memory=settings.memory_policy == "Static",
        feature_gates=tuple(settings.feature_gates.items()),
        minor=settings.minor,
        # Without a core map it is not known how CPUs in several zones are split.
        regular=cores.regular if cores else not static_cpus,
        l3_straddles=cores.l3_straddles if cores else static_cpus,
        direct=terms,
    )
    return _rules_of(make)


@lru_cache(maxsize=MAKES)
def _rules_of(make: RulesKey) -> NodeRules:
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
            direct=make.direct,
        )
    )


def _distances(
    topology: NodeTopology, settings: Settings, noted: set[Assumption]
) -> tuple[tuple[int, ...], ...] | None:
    """The distances by position, if the node prefers close zones."""
    zones = topology.zones
    if not settings.topology_options or settings.topology_policy == "none":
        return None
    if start.PREFER_CLOSEST not in nodesettings.switched_on(settings.topology_options):
        return None
    if any(other.id not in zone.costs for zone in zones for other in zones):
        noted.add(Assumption.DISTANCES_UNKNOWN)
        return None
    in_a_row = all(zone.id == place for place, zone in enumerate(zones))
    if not in_a_row and settings.topology_policy != "single-numa-node":
        noted.add(Assumption.CLOSEST_DESPITE_GAPS)
    return tuple(tuple(zone.costs[other.id] for other in zones) for zone in zones)


def _of_kinds(found: Mapping[str, Supply], *, cpus: bool, devices: bool) -> Mapping[str, Supply]:
    wanted = {name: each for name, each in found.items() if supplies.is_device(name)} if devices else {}
    return wanted | {resourcenames.CPU: found[resourcenames.CPU]} if cpus else wanted


def _unknown_size(plain: Mapping[str, Supply], node: Node | None, noted: set[Assumption]) -> Mapping[str, int]:
    if node is None and any(each.size == each.allocatable for each in plain.values()):
        noted.add(Assumption.SIZE_FROM_ALLOCATABLE)
    missed = supplies.missed(plain, node)
    if missed:
        noted.add(Assumption.SIZE_FROM_ALLOCATABLE)
    return missed or EXACT


def _from_checkpoints(basis: Basis, cores: Cores | None, names: Sequence[str]) -> frozenset[str]:
    found: list[str] = []
    if cores is not None and basis.has_free_cpus and basis.reserved_cpus is not None:
        found.append(resourcenames.CPU)
    if basis.has_memory_table:
        found += filter(supplies.is_memory, names)
    if basis.devices is not None:
        found += filter(supplies.is_device, names)
    return _shared_names(frozenset(found))


# One object for all nodes that have the same


@lru_cache(maxsize=MAKES)
def _shared_rules(rules: NodeRules) -> NodeRules:
    return rules


@lru_cache(maxsize=MAKES)
def _shared_assumptions(noted: frozenset[Assumption]) -> frozenset[Assumption]:
    return noted


@lru_cache(maxsize=MAKES)
def _with_unknown_groups(noted: frozenset[Assumption]) -> frozenset[Assumption]:
    return _shared_assumptions(noted | {Assumption.GROUPS_UNKNOWN})


@lru_cache(maxsize=MAKES)
def _shared_stock(stock: Stock) -> Stock:
    return stock


@lru_cache(maxsize=MAKES)
def _shared_names(names: frozenset[str]) -> frozenset[str]:
    return names


@lru_cache(maxsize=MAKES)
def _shared_groups(cells: tuple[int, ...], busy: int) -> Groups:
    return Groups(cells, busy)
