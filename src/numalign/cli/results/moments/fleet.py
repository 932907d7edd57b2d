"""The nodes of a moment: what their zones have, what of it is stranded, and what can be said of their reports.

`moment` calls `FleetTable` again and again with the same cluster: a node that did not change is not read again, so that
a page that is open costs a busy scheduler little."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct, structs

from numalign.api.nrt import normalise, publishers
from numalign.api.nrt.wire import NodeResourceTopology
from numalign.api.objects import resourcenames
from numalign.api.objects.node import Node as ClusterNode
from numalign.cli.display import formats
from numalign.cli.results import topology
from numalign.cli.results.moments.scene import Scene
from numalign.cli.results.moments.stranded import Usefulness
from numalign.cli.results.topology import ReportWriter
from numalign.dashboard.moment import Node, Report, ReportState, Share, Total, Zone
from numalign.placement.columns.nodefacts import Assumption
from numalign.placement.explain import nodeview, wording
from numalign.placement.explain.nodeview import Cell, Occupancy
from numalign.placement.ledger.divergences import Divergence, DivergenceKind
from numalign.scheduler.choose.cluster import Cluster

MILLI: Final = 1000
MOST_NOTES: Final = 5
OLD: Final = frozenset({Assumption.REPORT_DELETED, Assumption.KUBELET_AWAY})
"""Assumptions of a report that is not written any more."""
SILENT: Final = 2 * publishers.HEARTBEAT_SECONDS
"""Seconds after which an agent that should have renewed its heartbeat is no longer there."""
NO_WRITER: Final = ReportWriter("")


class _Seen(Struct):
    """What a node was made of; the same again gives the same node."""

    node: ClusterNode | None
    report: NodeResourceTopology | None
    writer: ReportWriter
    stranded: frozenset[str]
    notes: tuple[str, ...]
    is_silent: bool
    made: Node

    def still(self, node: ClusterNode | None, report: NodeResourceTopology | None, *rest: object) -> bool:
        """Whether it would be made of the same things again."""
        is_same = self.node is node and self.report is report
        return is_same and (self.writer, self.stranded, self.notes, self.is_silent) == rest


class FleetTable:
    """The nodes of one cluster, which may change between two calls."""

    def __init__(self) -> None:
        self._cluster: Cluster | None = None
        self._usefulness = Usefulness()
        self._seen: dict[str, _Seen] = {}
        self._generation = 0
        self.version = 0
        """Grows when a node changes, comes or goes."""

    def nodes(self, scene: Scene) -> Iterator[Node]:
        """All nodes, in no order. Work is done between the nodes, so a caller may pause there."""
        cluster, engine = scene.cluster, scene.cluster.engine
        if cluster is not self._cluster:
            self._cluster, self._seen = cluster, {}
        generation = engine.changes.generation
        rows = engine.changes.since(self._generation) if self._seen else None
        changed = {engine.names[row] for row in rows.tolist()} if rows is not None else None
        self._generation = generation
        useless, notes = self._usefulness.useless(scene), _contradictions(scene)
        gone = self._seen.keys() - engine.rows.keys()
        for name in gone:
            del self._seen[name]
        self.version += bool(gone)
        for name in list(engine.rows):
            yield self._node(
                scene, name, is_changed=changed is None or name in changed, useless=useless, notes=notes.get(name, ())
            )

    def _node(
        self,
        scene: Scene,
        name: str,
        *,
        is_changed: bool,
        useless: Mapping[str, frozenset[str]],
        notes: tuple[str, ...],
    ) -> Node:
        cluster = scene.cluster
        node, report = cluster.node_named(name), cluster.report_of(name)
        writer = scene.writers.get(name, NO_WRITER)
        stranded, seen = useless.get(name, frozenset()), self._seen.get(name)
        is_silent = report is not None and _is_silent(report, scene.at)
        if seen is not None and not is_changed and seen.still(node, report, writer, stranded, notes, is_silent):
            return seen.made
        made = _described(scene, name, stranded, notes)
        if seen is None or seen.made != made:
            self.version += 1
        else:
            made = seen.made
        self._seen[name] = _Seen(node, report, writer, stranded, notes, is_silent, made)
        return made


def _described(scene: Scene, name: str, useless: frozenset[str], notes: tuple[str, ...]) -> Node:
    cluster, engine = scene.cluster, scene.cluster.engine
    node, held, seen = cluster.node_named(name), nodeview.of(engine, name, with_pods=False), engine.view(name)
    return Node(
        name=name,
        status=topology.status(node) if node is not None else "no Node",
        policy=held.policy if held is not None else "",
        scope=held.scope if held is not None else "",
        labels=node.metadata.labels if node is not None else {},
        zones=tuple(_zones(held, useless)) if held is not None else (),
        totals={
            resource: Total(each.offered, max(0, each.offered - each.requested))
            for resource, each in (seen.totals.items() if seen is not None else ())
            if each.offered
        },
        pods=len(cluster.pods_on(name)),
        report=_report(scene, name, held, notes),
    )


def _zones(held: Occupancy, useless: frozenset[str]) -> Iterator[Zone]:
    by_zone: dict[int, dict[str, Cell]] = {zone: {} for zone in held.zones}
    for resource, cells in held.resources.items():
        for cell in cells:
            if len(cell.zones) == 1:
                by_zone[cell.zones[0]][resource] = cell
    for zone, found in by_zone.items():
        cpu = found.get(resourcenames.CPU)
        without_cpus = cpu is not None and cpu.free <= 0
        yield Zone(
            id=zone,
            shares={resource: _share(resource, cell) for resource, cell in found.items()},
            stranded=frozenset(
                resource
                for resource, cell in found.items()
                if cell.free > 0 and (resource in useless or (without_cpus and _is_device(resource)))
            ),
        )


def _share(resource: str, cell: Cell) -> Share:
    unit = MILLI if resource == resourcenames.CPU else 1
    return Share(max(cell.size, cell.allocatable) * unit, cell.allocatable * unit, cell.free * unit)


def _is_device(resource: str) -> bool:
    return resource != resourcenames.CPU and not resourcenames.is_bytes(resource)


def report_of(scene: Scene, name: str, notes: tuple[str, ...] = ()) -> Report:
    """`notes`: what contradicts the report."""
    found = _report(scene, name, nodeview.of(scene.cluster.engine, name, with_pods=False), notes)
    written = scene.cluster.report_of(name)
    if written is None:
        return found
    # Reading the whole report takes long, so that only the page of one node does.
    manager = scene.writers.get(name, NO_WRITER).manager
    return structs.replace(found, publisher=topology.publisher(written, normalise.normalise(written), manager))


def _report(scene: Scene, name: str, held: Occupancy | None, notes: tuple[str, ...]) -> Report:
    written, writer = scene.cluster.report_of(name), scene.writers.get(name, NO_WRITER)
    if written is None:
        return Report(state=ReportState.MISSING)
    assumed = held.assumptions if held is not None else frozenset[Assumption]()
    is_ours = publishers.SIGNED in written.metadata.annotations
    return Report(
        state=_state(assumed, is_contradicted=bool(notes), is_silent=_is_silent(written, scene.at)),
        written=max(filter(None, (_seconds(writer.time), _beat(written))), default=None),
        publisher=topology.OURS if is_ours else writer.manager,
        notes=(*notes, *sorted(wording.ASSUMPTIONS[each] for each in assumed)),
    )


def _state(assumed: frozenset[Assumption], *, is_contradicted: bool, is_silent: bool) -> ReportState:
    if is_contradicted:
        return ReportState.DIVERGED
    if is_silent or assumed & OLD:
        return ReportState.STALE
    return ReportState.ASSUMED if assumed else ReportState.GOOD


def _is_silent(report: NodeResourceTopology, at: float) -> bool:
    """Whether an agent wrote it that should have renewed its heartbeat since."""
    beat = _beat(report)
    return beat is not None and at - beat > SILENT


def _beat(report: NodeResourceTopology) -> float | None:
    return _seconds(report.metadata.annotations.get(publishers.HEARTBEAT))


def _seconds(time: str | None) -> float | None:
    found = publishers.moment(time)
    return found.timestamp() if found is not None else None


def contradiction(each: Divergence) -> str:
    """One contradiction as a sentence."""
    whose = f"pod {each.pod}" if each.pod else "the node"
    match each.kind:
        case DivergenceKind.ZONES:
            predicted = " or ".join(formats.zones(zones) for zones in each.predicted)
            return f"{whose} is in {formats.zones(each.observed)}, predicted was {predicted or 'no zone'}"
        case DivergenceKind.REFUSED:
            return f"the kubelet refused {whose}: {each.reason or 'without a reason'}"
        case DivergenceKind.NOTHING_HELD:
            return f"no report names {whose}, which runs for long"
        case DivergenceKind.TOTALS:
            return f"{formats.zones(each.observed)}: less {each.resource} is free than known pods explain"
    return f"{whose} holds {each.reported} {each.resource}, predicted were {each.modelled}"


def _contradictions(scene: Scene) -> dict[str, tuple[str, ...]]:
    """By node, the latest contradictions between what was predicted and what was reported."""
    found: dict[str, tuple[str, ...]] = {}
    for each in nodeview.divergences(scene.cluster.engine):
        found[each.node] = (*found.get(each.node, ()), contradiction(each))[-MOST_NOTES:]
    return found
