"""A node's report, read for the engine: any publisher's NodeTopology and the Node in, RowFacts out.

`engine` calls `read` for every report, and `without_report` for nodes that have none. With our agent's facts every
number is exact. A plain report of RTE or NFD works too, with what it carries: each thing that had to be supposed is in
`assumptions`. However odd a report is, reading it never fails."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from numalign.api import fingerprint, resourcenames
from numalign.api.node import Node
from numalign.api.nodetopology import NodeTopology
from numalign.kubelet import start
from numalign.kubelet.demand import Reading
from numalign.kubelet.settings import Settings
from numalign.placement import hardware, nodesettings, supplies
from numalign.placement.hardware import Cores
from numalign.placement.noderules import NodeRules
from numalign.placement.rowfacts import Assumption, Groups, RowFacts, Supply

Supplies = Mapping[str, Supply]


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

    @property
    def free_cpus(self) -> int | None:
        """The CPU manager's shared set less what it never hands out; None: not published."""
        facts = self.topology.facts
        if facts.default_cpus is None or facts.reserved_cpus is None:
            return None
        return facts.default_cpus & ~facts.reserved_cpus


def read(topology: NodeTopology, node: Node | None) -> RowFacts:
    """Everything that the report says about the node, and what it leaves open."""
    if not topology.zones:
        return _without_zones(topology.node, node)
    noted: set[Assumption] = set()
    report = Report(topology, node, nodesettings.read(topology, node, noted), _cores(topology), noted)
    devices, classes = supplies.devices(topology)
    found = {resourcenames.CPU: supplies.cpus(topology, report.cores), **supplies.memory(topology), **devices}
    signature = topology.fingerprint
    return RowFacts(
        node=topology.node,
        rules=_rules(report),
        supplies=found,
        classes=classes,
        free_full_core_cpus=_free_full_core_cpus(report),
        cores=_cores_by_free_threads(report),
        groups=_groups(report, found),
        unknown_size=_unknown_size(report, found),
        placements=topology.facts.placements,
        zone_cpus=report.cores.members if report.cores else (),
        from_books=_from_books(report, found),
        covered=_covered(report),
        fingerprint=signature.text if signature else "",
        exclusive_only=signature is not None and signature.method is fingerprint.Method.EXCLUSIVE,
        assumptions=frozenset(noted),
    )


def without_report(node: Node) -> RowFacts:
    """A node that reports nothing: no zone is known, so nothing can be held against a pod there."""
    return _without_zones(node.metadata.name, node)


def _without_zones(name: str, node: Node | None) -> RowFacts:
    noted = {Assumption.NO_REPORT}
    settings = Settings(minor=nodesettings.minor("", node, noted))
    rules = NodeRules(zones=(), reading=Reading.of(settings), minor=settings.minor)
    return RowFacts(node=name, rules=rules, assumptions=frozenset(noted))


def _cores(topology: NodeTopology) -> Cores | None:
    published = topology.facts.cores
    return hardware.cores(tuple(zone.id for zone in topology.zones), published) if published else None


def _rules(report: Report) -> NodeRules:
    settings, cores = report.settings, report.cores
    if cores is None and report.static_cpus:
        report.noted.add(Assumption.CORES_UNKNOWN)
    return NodeRules(
        zones=tuple(zone.id for zone in report.topology.zones),
        policy=settings.topology_policy,
        scope=settings.topology_scope,
        distances=_distances(report),
        static_cpus=report.static_cpus,
        cpu_options=nodesettings.switched_on(settings.cpu_options),
        threads_per_core=max(1, cores.topology.cpus_per_core) if cores else 1,
        sockets=cores.sockets if cores else (),
        static_memory=report.static_memory,
        reading=Reading.of(settings),
        minor=settings.minor,
        # Without a core map nobody can tell how CPUs in several zones are split.
        regular=cores.regular if cores else not report.static_cpus,
    )


def _distances(report: Report) -> tuple[tuple[int, ...], ...] | None:
    """By position, where the node prefers close zones."""
    settings, zones = report.settings, report.topology.zones
    closest = start.PREFER_CLOSEST in nodesettings.switched_on(settings.topology_options)
    if not closest or settings.topology_policy == "none":
        return None
    if any(other.id not in zone.costs for zone in zones for other in zones):
        report.noted.add(Assumption.DISTANCES_UNKNOWN)
        return None
    return tuple(tuple(zone.costs[other.id] for other in zones) for zone in zones)


def _free_full_core_cpus(report: Report) -> int | None:
    facts, cores = report.topology.facts, report.cores
    if cores is None or facts.default_cpus is None or facts.reserved_cpus is None:
        return None
    withheld = cores.topology.whole_cores(facts.reserved_cpus) | facts.reserved_cpus
    return (facts.default_cpus & cores.topology.cpus & ~withheld).bit_count()


def _cores_by_free_threads(report: Report) -> tuple[tuple[int, ...], ...] | None:
    free = report.free_cpus
    return report.cores.by_free_threads(free) if report.cores and free is not None else None


def _groups(report: Report, found: Supplies) -> Groups | None:
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
    # A single zone never groups (engine spec R8), nor does memory that nobody holds. A zone by itself with nothing
    # missing proves nothing: NFD takes a block that lies in several zones from the first of them (exporter spec 5.6).
    if busy and report.settings.topology_policy != "single-numa-node" and len(report.topology.zones) > 1:
        report.noted.add(Assumption.GROUPS_UNKNOWN)
        return None
    return Groups(tuple(1 << position for position in range(len(report.topology.zones))), busy)


def _unknown_size(report: Report, found: Supplies) -> dict[str, int]:
    """Only of resources whose size is a plain amount: memory counts by allocatable, and facts are exact."""
    plain = [] if report.cores or not report.static_cpus else [resourcenames.CPU]
    if report.topology.facts.devices is None:
        plain += [name for name in found if supplies.is_device(name)]
    if report.node is None and any(found[name].size == found[name].allocatable for name in plain):
        report.noted.add(Assumption.SIZE_FROM_ALLOCATABLE)
    missed = supplies.missed({name: found[name] for name in plain}, report.node)
    if missed:
        report.noted.add(Assumption.SIZE_FROM_ALLOCATABLE)
    return missed


def _from_books(report: Report, found: Supplies) -> frozenset[str]:
    facts = report.topology.facts
    cpus = report.cores is not None and report.free_cpus is not None
    memory = supplies.free_memory(report.topology) is not None
    return frozenset(
        name
        for name in found
        if (cpus and name == resourcenames.CPU)
        or (memory and supplies.is_memory(name))
        or (facts.devices is not None and supplies.is_device(name))
    )


def _covered(report: Report) -> frozenset[str] | None:
    placements = report.topology.facts.placements
    if placements is None:
        report.noted.add(Assumption.PLACEMENTS_UNKNOWN)
        return None
    return frozenset(f"{pod.namespace}/{pod.name}" for pod in placements if pod.name)
