"""One moment of a cluster for the dashboard: its nodes, waiting pods and decisions, and what a scheduler counts.

`sources` calls `taken`; in a scheduler's process it pauses between nodes, so that scheduling goes on meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Final

from numalign.api.objects.pod import Pod
from numalign.cli.results.moments import stranded
from numalign.cli.results.moments.fleet import FleetTable
from numalign.cli.results.moments.scene import Queued, Scene
from numalign.dashboard.moment import Decision, GuardedNode, Health, Moment, Node, WaitingPod
from numalign.process.metrics import Counter
from numalign.scheduler import metrics
from numalign.scheduler.choose import stormguard
from numalign.scheduler.choose.decisionlog import DecisionRecord
from numalign.scheduler.explain import serving
from numalign.scheduler.main import Scheduler

AT_ONCE: Final = 16
"""Nodes that are looked at before other tasks run."""
MOST_WAITING: Final = 5000
MOST_DECISIONS: Final = 512


async def taken(scene: Scene, table: FleetTable) -> Moment:
    """`table`: of the same cluster as before, or a new one."""
    found = list[Node]()
    for place, node in enumerate(table.nodes(scene)):
        found.append(node)
        if place % AT_ONCE == 0:
            await asyncio.sleep(0)
    decisions = [decision(scene, each) for each in reversed(scene.records[-MOST_DECISIONS:])]
    waiting = tuple(_waiting(scene))
    return Moment(
        at=scene.at,
        origin=scene.origin,
        version=f"{table.version}",
        nodes={node.name: node for node in sorted(found, key=lambda node: node.name)},
        waiting=waiting,
        decisions=tuple(decisions),
        health=scene.health,
        problems=scene.problems,
    )


def _waiting(scene: Scene) -> Iterator[WaitingPod]:
    pods = sorted(scene.waiting.values(), key=lambda pod: pod.metadata.full_name)
    for pod in pods[:MOST_WAITING]:
        yield waiting_pod(scene, pod)


def waiting_pod(scene: Scene, pod: Pod) -> WaitingPod:
    queued = scene.queue.get(pod.metadata.uid)
    return WaitingPod(
        name=pod.metadata.full_name,
        scheduler=pod.spec.scheduler_name,
        queue=queued.queue if queued is not None else "",
        since=scene.at - queued.waits if queued is not None else None,
        attempts=queued.attempts if queued is not None else 0,
        priority=pod.spec.priority,
        requests=stranded.asked(pod),
        message=_message(pod),
    )


def _message(pod: Pod) -> str:
    """Why no node was found, as the last attempt wrote it into the pod's condition and its Event."""
    return next((each.message for each in pod.status.conditions if each.type == serving.SCHEDULED), "")


def decision(scene: Scene, record: DecisionRecord) -> Decision:
    return Decision(
        key=key(record),
        pod=record.pod,
        at=scene.wall(record.at),
        attempt=record.attempt,
        node=record.node,
        zones=record.zones,
        message=record.message,
        nodes=record.nodes,
        fitting=record.fitting,
    )


def key(record: DecisionRecord) -> str:
    return f"{record.uid}.{record.attempt}"


def uid_of(key: str) -> str:
    """Of the pod that the decision of this key is about."""
    return key.rpartition(".")[0]


def health(scheduler: Scheduler) -> Health:
    """What the scheduler of this process counts."""
    counts, now = scheduler.metrics, scheduler.now()
    results = dict[str, float]()
    for (result, *_), number in counts.attempt_seconds.counts():
        results[result] = results.get(result, 0) + number
    return Health(
        leads=scheduler.leads(),
        queue={name: len(pods) for name, pods in scheduler.queue.pending().items()},
        bound=results.get(metrics.SCHEDULED, 0),
        unschedulable=results.get(metrics.UNSCHEDULABLE, 0),
        failed=results.get(metrics.ERROR, 0),
        rejections=_summed(counts.rejections),
        divergences={str(kind): count for kind, count in scheduler.cluster.engine.statistics().divergences.items()},
        skipped=_summed(counts.skipped),
        guarded=tuple(_guarded(scheduler, now)),
    )


def _summed(family: Counter) -> dict[str, float]:
    """By the first label."""
    found = dict[str, float]()
    for (name, *_), number in family.values.items():
        found[name] = found.get(name, 0) + number
    return found


def _guarded(scheduler: Scheduler, now: float) -> Iterator[GuardedNode]:
    shapes = scheduler.cluster.engine.known_shapes
    for like, node, kept in scheduler.rejections:
        number = like.shape if isinstance(like, stormguard.Replicas) else like
        if number in shapes and stormguard.is_on(kept, now):
            pod = shapes[number].pod.metadata.full_name
            yield GuardedNode(node=node, like=pod, seconds=kept.until - now, rejections=kept.count, reason=kept.reason)


def queued(scheduler: Scheduler) -> Mapping[str, Queued]:
    """By uid."""
    now = scheduler.now()
    return {
        each.uid: Queued(queue=name, waits=now - each.added, attempts=each.attempts)
        for name, pods in scheduler.queue.pending().items()
        for each in pods
    }
