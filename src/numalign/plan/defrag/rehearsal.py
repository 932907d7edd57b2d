"""Carries a plan out on a copy of the cluster, step by step, with the scheduler's own engine, filters and scores.

`planner` calls `rehearsed`. A pod is evicted, the one that its controller creates is placed where the plan has it, and
runs there before the next step begins. At the end the pods of the goal are placed, in whatever order they may arrive. A
step that the engine does not confirm fails the plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Final

import numpy as np
from msgspec import Struct, structs

from numalign.api.objects.pod import Pod
from numalign.placement.decisions import Decision
from numalign.placement.facts import BindFailed
from numalign.plan.defrag.board import Move
from numalign.plan.defrag.messages import ContainerLanding, Landing
from numalign.plan.defrag.movable import Member, Movable, created_again
from numalign.scheduler.choose import choose, filtering
from numalign.scheduler.choose.choose import AttemptContext
from numalign.scheduler.choose.filtering import Refused
from numalign.scheduler.profiles import Profile
from numalign.scheduler.snapshot import restore
from numalign.scheduler.snapshot.restore import Restored

RUNNING: Final = "Running"


class LandedPod(Struct, frozen=True):
    member: Member
    source: int
    lands: Landing


class Rehearsed(Struct, frozen=True):
    steps: tuple[tuple[LandedPod, ...], ...]
    placed: Mapping[int, int]
    """By row, pods of the goal."""


class Failed(Struct, frozen=True):
    """A pod of this kind was not confirmed on this row; no kind: a pod of the goal."""

    row: int
    kind: int | None = None


class _OneWay(Random):
    """Random numbers that always choose the first of equals, or the last one."""

    def __init__(self, number: float) -> None:
        super().__init__(0)
        self._number = number

    def random(self) -> float:
        return self._number


FIRST, LAST = 0.0, 1.0 - 2.0**-53


def rehearsed(
    made: Restored, movable: Movable, moves: Sequence[Move], goal: tuple[Pod, Mapping[int, int]] | None
) -> Rehearsed | Failed:
    """`made`: is changed; `goal`: a pod, and by row how many of them are to be placed."""
    stage, at, steps = _Stage(made), dict[int, tuple[Pod, ...]](), list[tuple[LandedPod, ...]]()
    for number, move in enumerate(moves):
        unit = movable.units[move.unit]
        before = at.get(move.unit, tuple(each.pod for each in unit.members))
        rows = [made.world.pods[pod.metadata.uid].row for pod in before]
        for pod in before:
            restore.end(made, pod)
        landed, coming = list[LandedPod](), list[Pod]()
        for member, source, row in zip(unit.members, rows, move.rows, strict=True):
            again = _numbered(created_again(member.pod), number)
            lands = stage.placed(again, row)
            if lands is None:
                return Failed(row, member.kind)
            landed.append(LandedPod(member, source, lands))
            coming.append(made.world.pods[again.metadata.uid].pod)
        at[move.unit] = tuple(stage.running(pod) for pod in coming)
        steps.append(tuple(landed))
    placed: dict[int, int] = {}
    pod, wanted = goal if goal is not None else (Pod(), {})
    for row, count in wanted.items():
        for serial in range(count):
            if stage.placed(_named(pod, f"{pod.metadata.name}-goal-{row}-{serial}"), row, compared=False) is None:
                return Failed(row)
            placed[row] = placed.get(row, 0) + 1
    return Rehearsed(tuple(steps), placed)


class _Stage:
    def __init__(self, made: Restored) -> None:
        self._made = made
        self._around = AttemptContext(made.cluster, made.nominations, made.rejections)

    def placed(self, pod: Pod, row: int, *, compared: bool = True) -> Landing | None:
        """The pod on the row; None: filters or the engine refuse it. `compared`: with the scheduler's own choice."""
        made, engine = self._made, self._made.engine
        profile = made.profiles.get(pod.spec.scheduler_name) or next(iter(made.profiles.values()))
        shape = filtering.shape(profile, engine, pod)
        attempt = self._around.attempt(filtering.read(profile, pod), shape, made.now, 0)
        found = filtering.filtered(attempt.pod, profile.filters, made.world)
        if isinstance(found, Refused) or not found.has(row) or row in attempt.kept_off:
            return None
        own = compared and all(self._chosen(attempt, profile, number) == row for number in (FIRST, LAST))
        rows = np.array([row], np.intp)
        decision = choose.best(attempt, profile, made.cluster, rows, _OneWay(FIRST))
        if decision is None:
            return None
        made.cluster.assume(pod, decision)
        return _landing(decision, own=own)

    def running(self, pod: Pod) -> Pod:
        """The pod is seen to run."""
        seen = structs.replace(pod, status=structs.replace(pod.status, phase=RUNNING))
        self._made.cluster.bound(pod.metadata.uid)
        self._made.cluster.pod(seen, self._made.now)
        return seen

    def _chosen(self, attempt: choose.Attempt, profile: Profile, number: float) -> int | None:
        """The row that the scheduler would choose."""
        made = self._made
        found = choose.choose(attempt, profile, made.cluster, _OneWay(number))
        if not isinstance(found, choose.Chosen):
            return None
        made.engine.apply(BindFailed(found.decision.uid))
        return made.engine.row(found.decision.node)


def _landing(decision: Decision, *, own: bool) -> Landing:
    containers = tuple(ContainerLanding(each.container, each.zones) for each in decision.placement)
    is_certain = own and not decision.in_turn and all(len(each.zones) <= 1 for each in containers)
    return Landing(node=decision.node, certainty="certain" if is_certain else "likely", containers=containers)


def _numbered(pod: Pod, number: int) -> Pod:
    return _named(pod, f"{pod.metadata.name}-{number}")


def _named(pod: Pod, name: str) -> Pod:
    return structs.replace(pod, metadata=structs.replace(pod.metadata, name=name, uid=f"{pod.metadata.uid}/{name}"))
