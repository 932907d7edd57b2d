"""Builds the cluster of a scheduler from a snapshot: the same engine, plugins and profiles, without clock or network.

Commands that explain or replay decisions call `restored`. Objects are applied as informers would deliver them. If a
scheduler took the snapshot, its ledger, assumed pods and storm guard replace what follows from objects.
Unreadable objects are skipped and reported."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from msgspec import Struct, field, structs

from numalign.api.attributes import heldrooms as rooms
from numalign.api.errors import BadObject
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod
from numalign.api.schedulerconfig.configuration import Configuration
from numalign.kube.resources import NODES, PODS, TOPOLOGIES
from numalign.kube.watch.store import Change
from numalign.placement import dump
from numalign.placement.decisions import Decision
from numalign.placement.engine import Engine
from numalign.placement.ledger.charges import Cover, PodLife
from numalign.placement.rules.clusterstate import ClusterState
from numalign.scheduler import settings
from numalign.scheduler.choose.cluster import AssumedDecision, Cluster
from numalign.scheduler.choose.plugins import Plugins
from numalign.scheduler.choose.stormguard import GuardedNode, Replicas, StormGuard
from numalign.scheduler.intake import watching
from numalign.scheduler.profiles import Profile
from numalign.scheduler.queue import heldrooms
from numalign.scheduler.queue.nominations import Nominations
from numalign.scheduler.snapshot.snapshot import KeptOff, SchedulerState, Snapshot

Taker = Callable[[Any], object]
VACANT: Final = "vacant row "
LONG_AGO: Final = float("-inf")


class Restored(Struct, frozen=True, kw_only=True):
    config: Configuration
    cluster: Cluster
    stock: Plugins
    profiles: Mapping[str, Profile]
    """Profiles by scheduler name."""
    rejections: StormGuard
    nominations: Nominations
    now: float
    start: int = 0
    pods: Mapping[str, Pod] = field(default_factory=dict)
    """All pods of the snapshot by namespace/name, with or without a node."""
    problems: tuple[str, ...] = ()
    """What is missing or was skipped, as sentences."""

    @property
    def engine(self) -> Engine:
        return self.cluster.engine

    @property
    def world(self) -> ClusterState:
        return self.cluster.world


def restored(taken: Snapshot, without: frozenset[str] = frozenset()) -> Restored:
    """The cluster of a snapshot. `without`: uids of pods that are restored as pending, as before their attempts."""
    world = ClusterState()
    cluster, stock = Cluster(Engine(settings.engine(taken.config)), world), Plugins(world)
    made = Restored(
        config=taken.config,
        cluster=cluster,
        stock=stock,
        profiles={each.scheduler_name: stock.profile(each) for each in taken.config.profiles},
        rejections=StormGuard(),
        nominations=Nominations(),
        now=taken.now,
        start=taken.state.start if taken.state else 0,
        pods={pod.metadata.full_name: pod for pod in taken.every(PODS)},
    )
    problems = [*taken.missing, *taken.left_out]
    for what, taker, thing in _takers(made, taken, without):
        try:
            taker(thing)
        except BadObject as problem:
            problems.append(f"{what}: {problem}")
    if taken.state is not None:
        _remember(made, taken, taken.state, without)
    cluster.graces_ended(taken.now)
    for pod in taken.every(PODS):
        if pod.metadata.uid in without:
            end(made, pod)
    return structs.replace(made, problems=tuple(problems))


def _takers(made: Restored, taken: Snapshot, without: frozenset[str]) -> Iterator[tuple[str, Taker, Any]]:
    cluster, now = made.cluster, made.now
    for resource, apply in watching.appliers(made.stock).items():
        for thing in taken.objects.get(resource, ()):
            yield resource, apply, Change(None, thing)
    yield from _nodes(made, taken)
    yield from _pods(made, taken, without)
    # Without a scheduler pods come first, so that each report is reconciled once, with all pods known.
    for report in taken.every(TOPOLOGIES) if taken.state is None else ():
        yield TOPOLOGIES.plural, lambda report: cluster.report(report, now), report


def _nodes(made: Restored, taken: Snapshot) -> Iterator[tuple[str, Taker, Any]]:
    """Nodes in row order; if a scheduler took the snapshot, each with its report."""
    cluster, now = made.cluster, made.now
    nodes = {each.metadata.name: each for each in taken.every(NODES)}
    reports = {each.metadata.name: each for each in taken.every(TOPOLOGIES)}
    deleted = {each.metadata.name: each for each in taken.state.deleted_reports} if taken.state else {}
    reported = (TOPOLOGIES.plural, lambda report: cluster.report(report, now))
    former = frozenset(taken.state.former_reports if taken.state else ())
    for name in dict.fromkeys((*_rows(taken.state), *nodes, *reports)):
        if name.startswith(VACANT):
            yield NODES.plural, cluster.node, Node(metadata=ObjectMeta(name=name))
            continue
        if name in reports and name in former:
            yield *reported, reports.pop(name)
            # With this the cluster forgets that it has read the report.
            yield NODES.plural, cluster.node_gone, name
        if name in nodes:
            yield NODES.plural, lambda node: cluster.node(node, _ready_since(taken, node)), nodes[name]
        if name in reports and taken.state is not None:
            yield *reported, reports[name]
        elif name in deleted:
            yield *reported, deleted[name]
            yield TOPOLOGIES.plural, lambda gone: cluster.report_gone(gone, now), name
    for number in taken.state.vacant_rows if taken.state else ():
        yield NODES.plural, cluster.node_gone, f"{VACANT}{number}"


def _rows(state: SchedulerState | None) -> list[str]:
    """Names in row order. Rows that are vacant have a name that no node has."""
    return [name or f"{VACANT}{number}" for number, name in enumerate(state.rows)] if state is not None else []


def _ready_since(taken: Snapshot, node: Node) -> float:
    """When the scheduler first saw the node Ready; without a scheduler, when it became Ready, as it says itself, if it
    does."""
    if taken.state is not None:
        return taken.state.ready_since.get(node.metadata.name, taken.now)
    then, wall = _moment(node.ready.last_transition_time if node.ready else None), _moment(taken.wall)
    return taken.now - (wall - then).total_seconds() if then and wall else LONG_AGO


def _moment(written: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(written) if written else None
    except ValueError:
        return None


def _pods(made: Restored, taken: Snapshot, without: frozenset[str]) -> Iterator[tuple[str, Taker, Any]]:
    cluster, now = made.cluster, made.now
    undecided = _undecided(taken.state, without)
    if taken.state is None:
        for node in taken.every(NODES):
            yield NODES.plural, lambda node: _hold(made, taken, node), node
    for pod in taken.every(PODS):
        if pod.metadata.uid in undecided:
            continue
        if pod.spec.node_name:
            yield PODS.plural, lambda seen: cluster.pod(seen, now), pod
        elif pod.status.nominated_node_name:
            yield PODS.plural, lambda seen: made.nominations.put(seen, seen.status.nominated_node_name), pod


def _hold(made: Restored, taken: Snapshot, node: Node) -> None:
    """The rooms that a Node holds, as a scheduler that starts now enters them."""
    wall = _moment(taken.wall)
    for room in rooms.of_node(node):
        if wall is None or rooms.ends(room) > wall:
            made.nominations.put(heldrooms.stand_in(room), node.metadata.name)


def _remember(made: Restored, taken: Snapshot, state: SchedulerState, without: frozenset[str]) -> None:
    """Restores the state that only the scheduler had."""
    by_uid = {pod.metadata.uid: pod for pod in taken.every(PODS)}
    for volume in state.volumes:
        made.stock.volumes.volumes.assume(volume)
    for claim in state.claims:
        made.stock.volumes.claims.assume(claim)
    undecided = _undecided(state, without)
    _remember_pods(made, state, {uid: pod for uid, pod in by_uid.items() if uid not in undecided}, without)
    if state.once_reported is not None:
        made.cluster.restore_once_reported(state.once_reported, lambda name: state.ready_since.get(name, taken.now))
    for each in state.nominated:
        pod = each.pod or by_uid.get(each.uid)
        if pod is not None:
            made.nominations.put(pod, each.node)
            made.nominations.expect(each.uid, each.victims)
    for kept in state.kept_off:
        shape = made.engine.shape(kept.pod).number
        made.rejections.keep(Replicas(kept.owner, shape) if kept.owner else shape, kept.node, _kept(kept))


def _undecided(state: SchedulerState | None, uids: frozenset[str]) -> frozenset[str]:
    """The pods that no report covers yet. Amounts that reports may have deducted for the others are released."""
    if state is None:
        return frozenset()
    records = (record for node in state.ledger.nodes for record in node.records)
    return uids - {record.uid for record in records if record.cover is not Cover.NO}


def end(made: Restored, pod: Pod) -> None:
    """Ends the pod in the restored cluster: what it holds is free."""
    assumed = made.cluster.assumed.get(pod.metadata.uid)
    placed = assumed.pod if assumed is not None else pod
    if made.engine.counts(pod.metadata.uid):
        made.cluster.pod(structs.replace(placed, status=structs.replace(pod.status, phase="Succeeded")), made.now)


def _remember_pods(made: Restored, state: SchedulerState, by_uid: dict[str, Pod], without: frozenset[str]) -> None:
    cluster, now = made.cluster, made.now
    for assumed in state.assumed:
        pod = by_uid.get(assumed.uid)
        if pod is not None:
            by_uid[assumed.uid] = _assumed(cluster, pod, assumed.node, bound=assumed.is_bound, now=now)
    for record in (record for node in state.ledger.nodes for record in node.records):
        # The pod was deleted and may still run, so no object shows it any more.
        if record.life is PodLife.LINGERING and record.pod is not None:
            cluster.pod(record.pod, now)
            cluster.pod_gone(record.pod, now)
    dump.adopt(cluster.engine, state.ledger, by_uid, without)


def _assumed(cluster: Cluster, pod: Pod, node: str, *, bound: bool, now: float) -> Pod:
    placed = structs.replace(pod, spec=structs.replace(pod.spec, node_name=node))
    cluster.pod(placed, now)
    cluster.assumed[pod.metadata.uid] = AssumedDecision(
        placed, Decision(uid=pod.metadata.uid, node=node), is_bound=bound
    )
    return placed


def _kept(kept: KeptOff) -> GuardedNode:
    return GuardedNode(kept.until, kept.last, kept.count, kept.changed, kept.end_reported, kept.reason)
