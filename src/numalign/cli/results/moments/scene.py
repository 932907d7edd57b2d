"""A cluster at one moment, as a scheduler knows it, with the queue, the decisions and the writers of reports.

`sources` make scenes; `moment` and the modules beside it describe them for the dashboard's pages. A live scheduler is a
scene without a copy of its cluster: what only reads may look at it, what asks the engine needs a copy."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from numalign.api.objects.pod import Pod
from numalign.cli.results.topology import ReportWriter
from numalign.dashboard.moment import Health
from numalign.kube.resources import PODS
from numalign.scheduler.choose.cluster import Cluster
from numalign.scheduler.choose.decisionlog import DecisionRecord
from numalign.scheduler.playback.player import Player
from numalign.scheduler.snapshot import restore
from numalign.scheduler.snapshot.restore import Restored
from numalign.scheduler.snapshot.snapshot import KeptOff, Snapshot


class Queued(Struct, frozen=True, kw_only=True):
    """What a queue knows of a pod."""

    queue: str
    waits: float
    """Seconds since it was added."""
    attempts: int


class Scene(Struct, frozen=True, kw_only=True):
    cluster: Cluster
    restored: Restored | None = None
    """A copy that questions may be asked of; None: the cluster is that of a live scheduler."""
    snapshot: Snapshot | None = None
    """What the copy was made of, if it was made of one."""
    at: float
    """Seconds since the epoch."""
    now: float
    """The same on the scheduler's clock."""
    origin: str
    waiting: Mapping[str, Pod] = {}
    """Pods without a node by namespace/name."""
    queue: Mapping[str, Queued] = {}
    """By uid; empty: no scheduler is asked."""
    records: tuple[DecisionRecord, ...] = ()
    """The latest decisions, the newest last."""
    writers: Mapping[str, ReportWriter] = {}
    """By node."""
    kept_off: tuple[KeptOff, ...] = ()
    health: Health | None = None
    problems: tuple[str, ...] = ()

    def wall(self, then: float) -> float:
        """A time of the scheduler's clock as seconds since the epoch."""
        return self.at - (self.now - then)


def of_snapshot(taken: Snapshot, origin: str, writers: Mapping[str, ReportWriter] | None = None) -> Scene:
    """Restores the cluster, which takes seconds where it is large."""
    made = restore.restored(taken)
    state = taken.state
    return Scene(
        cluster=made.cluster,
        restored=made,
        snapshot=taken,
        at=_epoch(taken.wall),
        now=taken.now,
        origin=origin,
        waiting={pod.metadata.full_name: pod for pod in taken.every(PODS) if is_waiting(pod)},
        queue=_queued(state.queue) if state is not None else {},
        records=state.decisions if state is not None else (),
        writers=writers or {},
        kept_off=state.kept_off if state is not None else (),
        problems=made.problems,
    )


def of_player(player: Player, records: tuple[DecisionRecord, ...], at: float, origin: str) -> Scene:
    """As the recording has it at the player's time."""
    return Scene(
        cluster=player.made.cluster,
        restored=player.made,
        at=at,
        now=player.now,
        origin=origin,
        waiting={pod.metadata.full_name: pod for pod in player.waiting.values() if not pod.status.is_finished},
        records=records,
        problems=player.made.problems,
    )


def is_waiting(pod: Pod) -> bool:
    return not pod.spec.node_name and not pod.status.is_finished


def _queued(pools: Mapping[str, Any]) -> dict[str, Queued]:
    """The queue as a dump has it: text for readers."""
    return {
        each["uid"]: Queued(queue=name, waits=float(each["waits"]), attempts=int(each["attempts"]))
        for name, pods in pools.items()
        for each in pods
    }


def _epoch(wall: str) -> float:
    """Now, if the file does not say when it was written."""
    try:
        return datetime.fromisoformat(wall).timestamp()
    except ValueError:
        return datetime.now(UTC).timestamp()
