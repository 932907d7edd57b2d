"""What `numalign topology` answers, as values: the JSON and YAML output, field by field.

`nodes` fills these in from a cluster as the scheduler knows it, `topologydrawing` turns them into text. Amounts are
CPUs (thousandths possible for the node as a whole), bytes, or numbers of devices. docs/use/topology.md has every
field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from msgspec import Struct

from numalign.api import errors
from numalign.api.nrt import normalise
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.api.nrt.wire import NodeResourceTopology
from numalign.cli import narrowing
from numalign.cli.admit import matrix, units
from numalign.cli.admit.report import Held, Reported, Resource, Zones, ZoneState
from numalign.cli.topology.writers import Publication
from numalign.kube.resources import NODES, TOPOLOGIES
from numalign.placement.explain import nodeview, wording
from numalign.placement.explain.nodeview import Cell, Occupancy, Tenant
from numalign.placement.ledger.holdings import Source
from numalign.scheduler.choose.cluster import Cluster
from numalign.scheduler.snapshot import restore
from numalign.scheduler.snapshot.restore import Restored
from numalign.scheduler.snapshot.snapshot import Snapshot

OURS: Final = "numalign"
RTE: Final = "resource-topology-exporter"
RTE_ANNOTATION: Final = "k8stopoawareschedwg/rte-update"


class PodThere(Reported, frozen=True, kw_only=True):
    """A pod of the node. `source` tells how its zones are known; by container the sets of zones that are possible."""

    name: str
    source: Source
    arrived: bool
    """Whether the node is known to have admitted it."""
    leaving: bool
    containers: Mapping[str, tuple[Zones, ...]]
    holds: tuple[Held, ...]


class ReportTold(Reported, frozen=True, kw_only=True):
    publisher: str
    time: str
    age: float | None
    """Seconds; None: only the API server could tell, and was not asked."""
    doubts: tuple[str, ...]
    """What had to be guessed or left out while it was read."""


class NodeTold(Reported, frozen=True, kw_only=True):
    """One node; without a report it has neither policy nor zones."""

    name: str
    exists: bool
    """False: there is a report, and no Node."""
    policy: str
    scope: str
    zones: Zones
    resources: tuple[Resource, ...]
    pods: tuple[PodThere, ...]
    pod_count: int
    report: ReportTold | None
    assumptions: tuple[str, ...]


class Asked(Struct, frozen=True):
    """A cluster, and who wrote its reports."""

    taken: Snapshot
    written: Mapping[str, Publication] = {}


def nodes(asked: Asked, name: str = "") -> tuple[list[NodeTold], tuple[str, ...]]:
    """Every node by name, or the one of this name; and what could not be read."""
    reports = {each.metadata.name: each for each in asked.taken.every(TOPOLOGIES)}
    known = sorted({*(each.metadata.name for each in asked.taken.every(NODES)), *reports})
    if name and name not in known:
        raise errors.BadObject("Node", name, "", f"is not there; {_others(known)}")
    restored = restore.restored(narrowing.narrowed(asked.taken, name) if name else asked.taken)
    return [_node(each, restored, reports.get(each), asked) for each in known if name in ("", each)], restored.problems


def _others(known: list[str]) -> str:
    return (
        f"the cluster has {', '.join(known[:5])}{' and others' * (len(known) > 5)}" if known else "there are no nodes"
    )


def _node(name: str, restored: Restored, written: NodeResourceTopology | None, asked: Asked) -> NodeTold:
    held = nodeview.of(restored.engine, name)
    pods = tuple(map(_pod, held.tenants)) if held is not None else ()
    return NodeTold(
        name=name,
        exists=restored.cluster.has_node(name),
        policy=held.policy if held is not None else "",
        scope=held.scope if held is not None else "",
        zones=held.zones if held is not None else (),
        resources=tuple(_resources(restored.cluster, name, held)),
        pods=pods,
        pod_count=max(len(restored.cluster.pods_on(name)), len(pods)),
        report=_report(written, asked) if written is not None else None,
        assumptions=tuple(sorted(wording.ASSUMPTIONS[each] for each in held.assumptions)) if held is not None else (),
    )


def _resources(cluster: Cluster, name: str, held: Occupancy | None) -> Iterable[Resource]:
    columns = cluster.engine.columns
    row = columns.rows.get(name)
    if row is None:
        return
    offered, requested = columns.offered[row].tolist(), columns.requested[row].tolist()
    for column, resource in enumerate(columns.resources.names):
        cells = held.resources.get(resource, ()) if held is not None else ()
        if offered[column] or cells:
            yield Resource(
                name=resource,
                allocatable=units.total(resource, offered[column]),
                free=units.total(resource, max(0, offered[column] - requested[column])),
                zones=tuple(_cell(resource, cell, held) for cell in cells) if held is not None else (),
            )


def _cell(resource: str, cell: Cell, held: Occupancy) -> ZoneState:
    pods = Counter[str]()
    for tenant in held.tenants:
        for charge in tenant.charges:
            if charge.resource == resource and charge.zones == cell.zones and charge.certain:
                pods[tenant.name] += charge.amount
    rest = cell.allocatable - cell.free - pods.total()
    if rest > 0:
        pods[matrix.UNKNOWN] = rest
    return ZoneState(zones=cell.zones, allocatable=cell.allocatable, free=cell.free, pods=dict(pods))


def _pod(tenant: Tenant) -> PodThere:
    return PodThere(
        name=tenant.name,
        source=tenant.source,
        arrived=not tenant.is_pending,
        leaving=tenant.is_leaving,
        containers=tenant.containers,
        holds=tuple(
            Held(resource=each.resource, amount=each.amount, zones=each.zones, certain=each.certain)
            for each in tenant.charges
        ),
    )


def _report(written: NodeResourceTopology, asked: Asked) -> ReportTold:
    topology = normalise.normalise(written)
    known = asked.written.get(written.metadata.name, Publication(""))
    return ReportTold(
        publisher=_publisher(written, topology, known.manager),
        time=known.time,
        age=_seconds(known.time, asked.taken.wall),
        doubts=tuple(_doubt(guess.field, guess.code, guess.found, guess.used) for guess in topology.guesses),
    )


def _publisher(written: NodeResourceTopology, topology: NodeTopology, manager: str) -> str:
    if topology.facts.managers is not None or topology.facts.placements is not None:
        return OURS
    return manager or (RTE if RTE_ANNOTATION in written.metadata.annotations else "")


def _doubt(field: str, code: str, found: str, used: str) -> str:
    instead = f"; {errors.clipped(used)} used instead" if used not in ("", found) else ""
    return f"{field}: {code}{f' ({errors.clipped(found)})' if found else ''}{instead}"


def _seconds(time: str, now: str) -> float | None:
    try:
        return max(0.0, (datetime.fromisoformat(now) - datetime.fromisoformat(time)).total_seconds())
    except (ValueError, TypeError):
        return None
