"""Shows the state of a running scheduler, and takes a snapshot of it.

`pages` serves `state` under /debug/state, `decisions` under /debug/decisions and the snapshot under /debug/dump.
Reading changes nothing. No secret is shown: objects come without environments, and only annotations that numalign
reads are kept."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec

from numalign.kube.resources import TOPOLOGIES
from numalign.placement import dump
from numalign.placement.explain import nodeview
from numalign.placement.rules.volumes.volumestock import Shelf
from numalign.scheduler.choose import decisionlog, stormguard
from numalign.scheduler.choose.stormguard import GuardedNode, Replicas
from numalign.scheduler.events.podhistory import HistoryEntry, PodHistory
from numalign.scheduler.intake.watching import DEVICES
from numalign.scheduler.main import Scheduler
from numalign.scheduler.queue import heldrooms
from numalign.scheduler.queue.queued import QueuedPod
from numalign.scheduler.record import entries
from numalign.scheduler.snapshot.snapshot import AssumedPod, KeptOff, NominatedPod, SchedulerState, Snapshot

Plain = dict[str, Any]


def state(scheduler: Scheduler, pod: str = "", node: str = "") -> Plain:
    """The state of `pod` (namespace/name) or `node`; without both, of everything, with nodes only counted."""
    if node:
        return {"node": of_node(scheduler, node)}
    shown: Plain = {"queue": _queue(scheduler, pod), "assumed": _assumed(scheduler, pod)}
    if pod:
        return shown | _of_pod(scheduler, pod)
    cluster, queue = scheduler.cluster, scheduler.queue
    return shown | {
        "leads": scheduler.leads(),
        "inFlight": [flight.queued.pod.metadata.full_name for flight in queue.flights.all()],
        "nominated": {
            each.metadata.full_name: name for name in queue.nominations.nodes() for each in queue.nominations.on(name)
        },
        "keptOff": _kept_off(scheduler),
        "nodes": cluster.nodes,
        "pods": cluster.pods,
        "shapes": len(cluster.engine.known_shapes),
    }


def of_node(scheduler: Scheduler, name: str) -> Plain:
    """A node's pods with their zones and how these are known, and free of allocatable by zone and resource."""
    cluster = scheduler.cluster
    shown: Plain = {
        "name": name,
        "isThere": cluster.has_node(name),
        "pods": [pod.metadata.full_name for pod in cluster.pods_on(name)],
    }
    found = nodeview.of(cluster.engine, name)
    if found is None:
        return shown
    seen: Plain = msgspec.to_builtins(found, str_keys=True, enc_hook=sorted)
    return shown | seen


def names_of_nodes(scheduler: Scheduler) -> list[str]:
    return sorted(scheduler.cluster.world.rows)


def decisions(scheduler: Scheduler, pod: str = "") -> list[Plain]:
    """The latest decisions, the newest last."""
    return [
        msgspec.to_builtins(decisionlog.record_of(turn)) | {"at": _wall(scheduler, turn.at)}
        for turn in scheduler.decision_log.of(pod)
    ]


def taken(scheduler: Scheduler) -> Snapshot:
    """The snapshot. It is taken without awaiting, so that nothing changes meanwhile."""
    # Koordinator's devices are part of the reports that decisions depend on.
    informers = {name: each for name, each in scheduler.watched.informers.items() if name != DEVICES.plural}
    objects = {name: tuple(map(entries.discreet, informer.store)) for name, informer in informers.items()}
    if TOPOLOGIES.plural in objects:
        reports = (scheduler.cluster.report_of(each.metadata.name) or each for each in objects[TOPOLOGIES.plural])
        objects[TOPOLOGIES.plural] = tuple(map(entries.discreet, reports))
    return Snapshot(
        objects=objects,
        config=scheduler.config,
        state=_state(scheduler),
        wall=_wall(scheduler, scheduler.now()),
        now=scheduler.now(),
        missing=tuple(f"{name}: not listed yet" for name, informer in informers.items() if not informer.has_synced),
    )


def _state(scheduler: Scheduler) -> SchedulerState:
    cluster, queue = scheduler.cluster, scheduler.queue
    shapes = cluster.engine.known_shapes
    return SchedulerState(
        rows=tuple(cluster.engine.names),
        vacant_rows=cluster.engine.vacant_rows,
        start=scheduler.cycle.start,
        assumed=tuple(
            AssumedPod(uid, each.decision.node, each.is_bound, each.decision.score)
            for uid, each in cluster.assumed.items()
        ),
        nominated=tuple(
            NominatedPod(
                each.metadata.uid,
                node,
                queue.nominations.victims_of(each.metadata.uid),
                entries.discreet(each) if heldrooms.is_stand_in(each) else None,
            )
            for node in queue.nominations.nodes()
            for each in queue.nominations.on(node)
        ),
        kept_off=tuple(
            KeptOff(entries.discreet(shapes[number].pod), node, owner=owner, **msgspec.structs.asdict(kept))
            for number, owner, node, kept in _guarded(scheduler)
            if number in shapes
        ),
        former_reports=_former_reports(scheduler),
        once_reported=tuple(sorted(cluster.once_reported)),
        ready_since={
            name: since
            for name, row in cluster.world.rows.items()
            if (since := cluster.world.unreported.since(row)) is not None
        },
        deleted_reports=tuple(map(entries.discreet, cluster.deleted_reports)),
        ledger=dump.dump(cluster.engine, entries.discreet),
        volumes=_assumed_on(scheduler.stock.volumes.volumes),
        claims=_assumed_on(scheduler.stock.volumes.claims),
        decisions=tuple(map(decisionlog.record_of, scheduler.decision_log)),
        queue=_queue(scheduler),
    )


def _former_reports(scheduler: Scheduler) -> tuple[str, ...]:
    """Reports that the API server still has, and that the cluster dropped with the Nodes that they are about."""
    reports = scheduler.watched.informers.get(TOPOLOGIES.plural)
    names = (each.metadata.name for each in reports.store) if reports is not None else ()
    return tuple(name for name in names if scheduler.cluster.report_of(name) is None)


def _assumed_on(shelf: Shelf[Any]) -> tuple[Any, ...]:
    return tuple(map(entries.discreet, shelf.assumed()))


def _of_pod(scheduler: Scheduler, pod: str) -> Plain:
    shown: Plain = {
        "histories": [_story(scheduler, story) for story in scheduler.histories.of(pod)],
        "decisions": decisions(scheduler, pod),
    }
    namespace, _, name = pod.rpartition("/")
    found = scheduler.watched.informers["pods"].store.get(name, namespace)
    if found is None or not found.spec.node_name:
        return shown
    here = nodeview.of(scheduler.cluster.engine, found.spec.node_name)
    held = next((each for each in here.tenants if each.uid == found.metadata.uid), None) if here else None
    return shown | {"node": found.spec.node_name, "held": msgspec.to_builtins(held, str_keys=True)}


def _queue(scheduler: Scheduler, pod: str = "") -> Plain:
    now = scheduler.now()
    return {
        name: [_waiting(each, now) for each in waiting if pod in ("", each.pod.metadata.full_name)]
        for name, waiting in scheduler.queue.pending().items()
    }


def _waiting(queued: QueuedPod, now: float) -> Plain:
    return {
        "pod": queued.pod.metadata.full_name,
        "uid": queued.uid,
        "priority": queued.pod.spec.priority,
        "waits": round(now - queued.added, 3),
        "attempts": queued.attempts,
        "refused": {plugin: list(reasons) for plugin, reasons in queued.rejection.reasons.items()},
        "gate": queued.gate,
        "cause": queued.cause,
    }


def _assumed(scheduler: Scheduler, pod: str) -> Plain:
    found = {each.pod.metadata.full_name: each for each in scheduler.cluster.assumed.values()}
    return {
        name: {"node": each.pod.spec.node_name, "bound": each.is_bound}
        for name, each in found.items()
        if pod in ("", name)
    }


def _kept_off(scheduler: Scheduler) -> list[Plain]:
    now, shapes = scheduler.now(), scheduler.cluster.engine.known_shapes
    return [
        {
            "node": node,
            "like": shapes[shape].pod.metadata.full_name,
            "owner": owner,
            "seconds": round(max(0.0, kept.until - now), 3),
            "rejections": kept.count,
            "reason": kept.reason,
        }
        for shape, owner, node, kept in _guarded(scheduler)
        if shape in shapes and stormguard.is_on(kept, now)
    ]


def _guarded(scheduler: Scheduler) -> Iterator[tuple[int, str, str, GuardedNode]]:
    """The records of the storm guard: shape, owner if the record is limited to one, node and record."""
    for like, node, kept in scheduler.rejections:
        if isinstance(like, Replicas):
            yield like.shape, like.owner, node, kept
        else:
            yield like, "", node, kept


def _story(scheduler: Scheduler, story: PodHistory) -> Plain:
    lines = [_line(scheduler, line) for line in story.lines]
    return {"pod": story.name, "uid": story.uid, "lines": lines, "leftOut": story.left_out}


def _line(scheduler: Scheduler, line: HistoryEntry) -> Plain:
    return {"at": _wall(scheduler, line.at), "what": line.what} | dict(line.about)


def _wall(scheduler: Scheduler, at: float) -> str:
    """A time of the monotonic clock as wall-clock time."""
    wall: datetime = scheduler.wall() - timedelta(seconds=scheduler.now() - at)
    return wall.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
