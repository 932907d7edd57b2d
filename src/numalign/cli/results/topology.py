"""Shows nodes with their zones, what is free in them, and their pods: JSON and YAML output, and text.

`numalign topology` calls `nodes` with a cluster as the scheduler knows it, then `node_text`; `nodelist` draws lists.
Reports carry no time, so the API server's managed fields say who wrote a report and when. Amounts are CPUs (thousandths
possible for the node as a whole), bytes, or numbers of devices. docs/use/topology.md documents the fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct, structs
from rich.text import Text

from numalign.api.attributes.repairs import Guess
from numalign.api.decode.structs import Wire
from numalign.api.errors import BadObject, clipped
from numalign.api.nrt import normalise, publishers
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.api.nrt.publishers import ManagedMeta
from numalign.api.nrt.wire import NodeResourceTopology
from numalign.api.objects import resourcenames
from numalign.api.objects.node import Node
from numalign.cli import output
from numalign.cli.display import formats, matrix, values
from numalign.cli.display.formats import INDENT, Page
from numalign.cli.display.values import Held, Reported, Resource, Zones, ZoneState
from numalign.kube import errors, resources
from numalign.kube.client import Client
from numalign.kube.lists import Unreadable
from numalign.kube.resources import NODES, TOPOLOGIES
from numalign.placement.columns.holdings import Source
from numalign.placement.explain import amounts, nodeview, obstacles, wording
from numalign.placement.explain.nodeview import Cell, Occupancy, Tenant
from numalign.placement.rules.nodes.nodespec import CORDONED
from numalign.placement.view import Total
from numalign.scheduler.choose.cluster import Cluster
from numalign.scheduler.snapshot import restore, snapshot
from numalign.scheduler.snapshot.restore import Restored
from numalign.scheduler.snapshot.snapshot import Snapshot


class Managed(Wire, frozen=True):
    """Any object, reduced to its managed fields."""

    metadata: ManagedMeta = ManagedMeta()


REPORTS: Final = resources.of(TOPOLOGIES.api_version, TOPOLOGIES.plural, TOPOLOGIES.kind, Managed)


class ReportWriter(Struct, frozen=True):
    manager: str
    time: str = ""
    """RFC 3339; empty: unknown."""


async def listed(client: Client) -> dict[str, ReportWriter]:
    """By node. Empty where there are no reports, or access is denied."""
    try:
        found = await client.every(REPORTS.everywhere())
    except (errors.NotFound, errors.Forbidden):
        return {}
    managed = [each for each in found if not isinstance(each, Unreadable)]
    return {each.metadata.name: _latest(each.metadata) for each in managed}


def _latest(report: ManagedMeta) -> ReportWriter:
    last = publishers.latest(report)
    return ReportWriter(last.manager, last.time or "")


NO_TOTAL: Final = Total(0, 0)
OURS: Final = "numalign"


class TenantOutput(Reported, frozen=True, kw_only=True):
    """A pod of the node. `source` says how its zones are known; by container the sets of zones that are possible."""

    name: str
    source: Source
    arrived: bool
    """Whether the node is known to have admitted it."""
    leaving: bool
    containers: Mapping[str, tuple[Zones, ...]]
    holds: tuple[Held, ...]


class ReportOutput(Reported, frozen=True, kw_only=True):
    publisher: str
    time: str
    age: float | None
    """Seconds; None: only the API server knows, and it was not asked."""
    doubts: tuple[str, ...]
    """What the reader repaired or skipped."""


class NodeTopologyOutput(Reported, frozen=True, kw_only=True):
    """One node; without a report it has neither policy nor zones."""

    name: str
    exists: bool
    """False: there is a report, and no Node."""
    status: str
    """As `kubectl get nodes` shows it: Ready, NotReady, with SchedulingDisabled if it is cordoned."""
    taints: tuple[str, ...]
    """As `kubectl taint` writes them, without the one that a cordon sets."""
    policy: str
    scope: str
    mode: str
    """`direct`: the scheduler decides, and the agent enforces; `predict`: the kubelet decides."""
    zones: Zones
    resources: tuple[Resource, ...]
    pods: tuple[TenantOutput, ...]
    pod_count: int
    report: ReportOutput | None
    assumptions: tuple[str, ...]

    @property
    def without_age(self) -> NodeTopologyOutput:
        """The node with a report of no age, to compare two looks at it."""
        if self.report is None:
            return self
        return structs.replace(self, report=structs.replace(self.report, age=None, time=""))


class ReportedCluster(Struct, frozen=True):
    """A cluster, and who wrote its reports."""

    taken: Snapshot
    written: Mapping[str, ReportWriter] = {}


def nodes(
    asked: ReportedCluster, names: Sequence[str] = (), selected: Callable[[Mapping[str, str]], bool] | None = None
) -> tuple[list[NodeTopologyOutput], tuple[str, ...]]:
    """All nodes by name, those of these names, or those whose labels are selected; and the problems of reading them."""
    reports = {each.metadata.name: each for each in asked.taken.every(TOPOLOGIES)}
    labels = {each.metadata.name: each.metadata.labels for each in asked.taken.every(NODES)}
    known = sorted({*labels, *reports})
    for name in names:
        if name not in known:
            raise BadObject("Node", name, "", f"is not there; {_others(known)}")
    shown = [name for name in known if not names or name in names]
    if selected is not None:
        shown = [name for name in shown if name in labels and selected(labels[name])]
    restored = restore.restored(snapshot.narrowed(asked.taken, shown[0]) if len(shown) == 1 else asked.taken)
    return [_node(each, restored, reports.get(each), asked) for each in shown], restored.problems


def _others(known: list[str]) -> str:
    return (
        f"the cluster has {', '.join(known[:5])}{' and others' * (len(known) > 5)}" if known else "there are no nodes"
    )


def _node(
    name: str, restored: Restored, written: NodeResourceTopology | None, asked: ReportedCluster
) -> NodeTopologyOutput:
    held, node = nodeview.of(restored.engine, name), restored.cluster.node_named(name)
    pods = tuple(map(_pod, held.tenants)) if held is not None else ()
    return NodeTopologyOutput(
        name=name,
        exists=restored.cluster.has_node(name),
        status=status(node) if node is not None else "",
        taints=taints(node) if node is not None else (),
        policy=held.policy if held is not None else "",
        scope=held.scope if held is not None else "",
        mode=held.mode if held is not None else "",
        zones=held.zones if held is not None else (),
        resources=tuple(_resources(restored.cluster, name, held)),
        pods=pods,
        pod_count=max(len(restored.cluster.pods_on(name)), len(pods)),
        report=_report(written, asked) if written is not None else None,
        assumptions=tuple(sorted(wording.ASSUMPTIONS[each] for each in held.assumptions)) if held is not None else (),
    )


def status(node: Node) -> str:
    """As `kubectl get nodes` shows it."""
    ready = "Ready" if node.is_ready else "NotReady"
    return f"{ready},SchedulingDisabled" if node.spec.unschedulable else ready


def taints(node: Node) -> tuple[str, ...]:
    """As `kubectl taint` writes them, without the one that a cordon sets."""
    keys = ((each.key, each.value, each.effect) for each in node.spec.taints)
    return tuple(obstacles.taint_text(key) for key in keys if key[0] != CORDONED[0])


def _resources(cluster: Cluster, name: str, held: Occupancy | None) -> Iterable[Resource]:
    seen = cluster.engine.view(name)
    if seen is None:
        return
    zoned = held.resources if held is not None else {}
    for resource in dict.fromkeys((*seen.totals, *zoned)):
        total, cells = seen.totals.get(resource, NO_TOTAL), zoned.get(resource, ())
        if total.offered or cells:
            yield Resource(
                name=resource,
                allocatable=values.total(resource, total.offered),
                free=values.total(resource, max(0, total.offered - total.requested)),
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


def _pod(tenant: Tenant) -> TenantOutput:
    return TenantOutput(
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


def _report(written: NodeResourceTopology, asked: ReportedCluster) -> ReportOutput:
    topology = normalise.normalise(written)
    known = asked.written.get(written.metadata.name, ReportWriter(""))
    return ReportOutput(
        publisher=publisher(written, topology, known.manager),
        time=known.time,
        age=_seconds(known.time, asked.taken.wall),
        doubts=tuple(map(doubt, topology.guesses)),
    )


def publisher(written: NodeResourceTopology, topology: NodeTopology, manager: str) -> str:
    if topology.facts.managers is not None or topology.facts.placements is not None:
        return OURS
    return manager or (publishers.RTE if publishers.RTE_UPDATE in written.metadata.annotations else "")


def doubt(guess: Guess) -> str:
    """What was repaired, as one line."""
    instead = f"; {clipped(guess.used)} used instead" if guess.used not in ("", guess.found) else ""
    return f"{guess.field}: {guess.code}{f' ({clipped(guess.found)})' if guess.found else ''}{instead}"


def _seconds(time: str, now: str) -> float | None:
    try:
        return max(0.0, (datetime.fromisoformat(now) - datetime.fromisoformat(time)).total_seconds())
    except (ValueError, TypeError):
        return None


MOST_LINES: Final = 50
"""Assumptions and pods that are listed one by one."""
MOST_DOUBTS: Final = 4
ALWAYS: Final = (resourcenames.CPU, resourcenames.MEMORY)
"""Drawn even where no zone has a part of them."""


def node_text(info: NodeTopologyOutput) -> str:
    page = Page()
    page.add(Text(output.printable(info.name), "bold"))
    lines = formats.labelled()
    for label, text in _facts(info):
        lines.add_row(label, output.printable(text))
    page.add(lines, indent=INDENT)
    page.add()
    if not info.zones:
        page.add("without a usable report nothing is known of its zones; as a whole it has")
        whole = formats.labelled()
        for each in info.resources:
            whole.add_row(output.printable(each.name), formats.free_of(each.name, each.free, each.allocatable))
        page.add(whole, indent=INDENT)
        return page.text()
    drawn = [each for each in info.resources if each.zones or each.name in ALWAYS]
    matrix.draw_zones(page, drawn, [each.name for each in info.pods] + [matrix.UNKNOWN])
    for label, pods in _loosely(info):
        page.add()
        page.add(label)
        for pod in pods[:MOST_LINES]:
            page.add(pod, indent=INDENT)
    return page.text()


def _facts(info: NodeTopologyOutput) -> Iterator[tuple[str, str]]:
    if not info.exists:
        yield "node", "a report exists, but no Node of this name: no pod is scheduled there"
    if info.policy:
        mode = "direct mode, by default " if info.mode == "direct" else ""
        yield "topology", f"{mode}policy {info.policy}, scope {info.scope}, NUMA {formats.zones(info.zones)}"
    if info.report is None:
        yield "report", "none"
    else:
        yield "report", _report_line(info)
    if info.exists:
        yield "status", info.status
    if info.taints:
        yield "taints", ", ".join(info.taints[:MOST_LINES])
    yield "pods", str(info.pod_count)
    for each in info.assumptions[:MOST_LINES]:
        yield "assumed", each
    doubts = info.report.doubts if info.report is not None else ()
    for each in doubts[:MOST_DOUBTS]:
        yield "repaired", each
    if len(doubts) > MOST_DOUBTS:
        yield "repaired", f"and {len(doubts) - MOST_DOUBTS} more; -o json lists all"


def _report_line(info: NodeTopologyOutput) -> str:
    assert info.report is not None
    by = f"by {info.report.publisher}" if info.report.publisher else "by an unknown publisher"
    age = f", {amounts.duration(info.report.age)} ago" if info.report.age is not None else ""
    return by + age


def _loosely(info: NodeTopologyOutput) -> Iterator[tuple[str, list[str]]]:
    """Pods that the picture does not show completely."""
    unsure = [f"{formats.pod(pod.name)}  {_where(pod)}" for pod in info.pods if _is_unsure(pod)]
    if unsure:
        yield "not settled:", unsure
    shared = sorted(formats.pod(pod.name) for pod in info.pods if not pod.holds)
    if shared:
        names = ", ".join(shared[:MOST_LINES]) + (f" and {len(shared) - MOST_LINES} more" * (len(shared) > MOST_LINES))
        yield "in no zone of their own:", [names]


def _is_unsure(pod: TenantOutput) -> bool:
    vague = any(len(each.zones) > 1 or not each.certain for each in pod.holds)
    return bool(pod.holds) and (vague or pod.leaving or not pod.arrived or pod.source != "observed")


def _where(pod: TenantOutput) -> str:
    held = "; ".join(
        f"{formats.amount(each.resource, each.amount)} {each.resource} in {formats.zones(each.zones)}"
        f"{'' if each.certain else ', perhaps'}"
        for each in sorted(pod.holds, key=lambda each: (each.zones, each.resource))
    )
    state = "leaving" if pod.leaving else pod.source if pod.arrived else f"{pod.source}, not arrived yet"
    return f"{held} ({state})"
