"""Makes a plan of moves for a goal: proves that there is none, or searches, rehearses and describes one.

`numalign plan defrag` calls `plan`. The same cluster and goal give the same plan. `execution` asks `broken` and
`is_reached` between the steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Final, Literal, NamedTuple

import xxhash
from msgspec import Struct

from numalign.api.errors import BadObject
from numalign.api.objects.pod import Pod
from numalign.plan.defrag import board as boards
from numalign.plan.defrag import bounds, movable, rehearsal
from numalign.plan.defrag.board import START, Board, Move
from numalign.plan.defrag.goals import Blocking, EmptyNode, FitPods, FreeZones, Goal
from numalign.plan.defrag.messages import Alternative, Cost, DefragPlan, Gain, GoalLanding, MovedPod, Step
from numalign.plan.defrag.movable import Movable
from numalign.plan.defrag.rehearsal import LandedPod, Rehearsed
from numalign.plan.defrag.rowstates import RowStates
from numalign.plan.defrag.search import PATIENCE, Found, Search
from numalign.scheduler.snapshot.restore import Restored

MOST_REHEARSALS: Final = 8
MOST_ALTERNATIVES: Final = 5
MOST_NAMED: Final = 5
ANY_PRIORITY: Final = (1 << 31) - 1


class Wanted(Struct, frozen=True, kw_only=True):
    """What a plan is for: one of the three."""

    text: str
    pod: Pod | None = None
    pods: int = 0
    """How many of them."""
    zones: int = 0
    node: str = ""
    most_priority: int | None = None
    """Pods above it stay. None: those above the pod that is to fit."""
    patience: int = PATIENCE


class _Question(NamedTuple):
    made: Restored
    states: RowStates
    movable: Movable
    goal: Goal


def plan(restored: Callable[[], Restored], wanted: Wanted) -> DefragPlan:
    """`restored`: makes the cluster anew. BadObject if the goal names what is not there."""
    banned: set[tuple[int, int]] = set()
    asked = _asked(restored(), wanted)
    before = boards.total(asked.goal, START, asked.goal.rows().tolist())
    described = _Description(asked, wanted, before)
    if before >= asked.goal.wanted:
        return described.without_steps("nothing-to-do", "")
    why = bounds.disproof(asked.states, asked.movable, asked.goal, asked.movable.on_row())
    if why:
        return described.without_steps("impossible", why)
    for _ in range(MOST_REHEARSALS):
        found = Search(asked.states, asked.movable, asked.goal, banned, wanted.patience).found()
        if found.board is None:
            is_proven = found.exhausted and not banned and not any(unit.group for unit in asked.movable.units)
            why = "every sequence of moves was tried" if is_proven else "no sequence of moves was found"
            return described.without_steps("impossible" if is_proven else "not-found", why)
        goal = (wanted.pod, found.reserved) if wanted.pod is not None else None
        result = rehearsal.rehearsed(asked.made, asked.movable, found.board.moves, goal)
        if isinstance(result, Rehearsed):
            return described.of(found, found.board, result)
        if result.kind is None:
            return described.without_steps("not-found", "the pods would not fit together in every order of arrival")
        banned.add((result.kind, result.row))
        asked = _asked(restored(), wanted)
    return described.without_steps("not-found", "filters refused the pods of every sequence of moves that was found")


def is_reached(made: Restored, wanted: Wanted) -> bool:
    asked = _asked(made, wanted)
    return boards.total(asked.goal, START, asked.goal.rows().tolist()) >= asked.goal.wanted


def broken(
    made: Restored, wanted: Wanted, left: Sequence[Step], lands: Sequence[GoalLanding], now: Mapping[str, str]
) -> str:
    """Why the steps that are left of a plan do not hold in this cluster; empty: they do. `now`: by uid of a pod that
    was moved, the uid of the pod that came in its place."""
    asked = _asked(made, wanted)
    rows, units = made.engine.rows, {each.uid: unit for unit in asked.movable.units for each in unit.members}
    moves = []
    for step in left:
        where = {now.get(each.uid, each.uid): each for each in step.pods}
        unit = units.get(next(iter(where)))
        if unit is None:
            named = step.pods[0].pod
            why = asked.movable.why_kept.get(next(iter(where)), "is not there any more, or has no node")
            return f"step {step.number}: {named} {why}"
        if {each.uid for each in unit.members} != set(where):
            return f"step {step.number}: {step.group or step.pods[0].pod} has other pods now"
        gone = [each.lands.node for each in step.pods if each.lands.node not in rows]
        if gone:
            return f"step {step.number}: node {gone[0]} is gone"
        moves.append(Move(unit.number, tuple(rows[where[each.uid].lands.node] for each in unit.members)))
    reserved = {rows[each.node]: each.count for each in lands if each.node in rows}
    if len(reserved) < len(lands):
        return "a node that was to have room for the goal is gone"
    names = list(made.engine.names)
    goal = (wanted.pod, reserved) if wanted.pod is not None else None
    result = rehearsal.rehearsed(made, asked.movable, moves, goal)
    if not isinstance(result, Rehearsed):
        what = "the pods of the goal" if result.kind is None else "the pods of the plan"
        return f"{names[result.row]} does not take {what} any more"
    for step, landed in zip(left, result.steps, strict=True):
        expected = {now.get(each.uid, each.uid): each.lands.containers for each in step.pods}
        if any(expected[each.member.uid] != each.lands.containers for each in landed):
            return f"step {step.number}: {step.pods[0].pod} would land in other zones"
    return ""


def _asked(made: Restored, wanted: Wanted) -> _Question:
    if made.engine.settings.flavour != "exact":
        why = "predicts no zones, so that moves cannot be planned; use the flavour exact"
        raise BadObject("KubeSchedulerConfiguration", "", "flavour reference", why)
    priority = wanted.most_priority
    if priority is None:
        priority = wanted.pod.spec.priority if wanted.pod is not None else ANY_PRIORITY
    found, states = movable.read(made, priority), RowStates(made)
    for pod in found.kinds:
        states.add_kind(pod)
    return _Question(made, states, found, _goal(made, states, wanted))


def _goal(made: Restored, states: RowStates, wanted: Wanted) -> Goal:
    if wanted.pod is not None:
        return FitPods(states, states.add_kind(wanted.pod), wanted.pods, wanted.text)
    if wanted.zones:
        return FreeZones(states, wanted.zones, wanted.text)
    row = made.world.rows.get(wanted.node)
    if row is None:
        raise BadObject("Node", wanted.node, "", "is not there; write the name of a node")
    leaving = (uid for uid, each in made.world.on_row[row].items() if not movable.is_daemon(each.pod))
    return EmptyNode(row, frozenset(leaving), wanted.text)


class _Description:
    """Puts plans into words."""

    def __init__(self, asked: _Question, wanted: Wanted, before: int) -> None:
        self._goal, self._movable = asked.goal, asked.movable
        self._names, self._units = list(asked.made.engine.names), asked.movable.units
        self._wanted, self._before = wanted, before
        self._budgets = {
            each.uid: asked.made.stock.budgets.names_for(each.pod) for unit in self._units for each in unit.members
        }
        self._snapshot = snapshot_id(asked.made)

    def without_steps(self, verdict: Literal["nothing-to-do", "impossible", "not-found"], why: str) -> DefragPlan:
        return DefragPlan(
            goal=self._wanted.text,
            verdict=verdict,
            snapshot=self._snapshot,
            gain=Gain(self._before, self._before, self._goal.wanted),
            why=why,
            kept=self._movable.kept,
        )

    def of(self, found: Found, board: Board, result: Rehearsed) -> DefragPlan:
        units = [self._units[move.unit] for move in board.moves]
        priorities = Counter(each.pod.spec.priority for unit in units for each in unit.members)
        lands = result.placed or found.reserved
        return DefragPlan(
            goal=self._wanted.text,
            verdict="found",
            snapshot=self._snapshot,
            gain=Gain(self._before, sum(found.reserved.values()), self._goal.wanted),
            cost=Cost(
                pods=priorities.total(),
                groups=sum(bool(unit.group) for unit in units),
                by_priority={str(priority): priorities[priority] for priority in sorted(priorities)},
                at_least=found.at_least,
            ),
            steps=tuple(self._steps(board, found, result)),
            lands=tuple(GoalLanding(self._names[row], number) for row, number in sorted(lands.items())),
            alternatives=self._alternatives(found, {move.unit for move in board.moves}),
            kept=self._movable.kept,
            invalidated_by=self._invalidated_by(board, result),
        )

    def _steps(self, board: Board, found: Found, result: Rehearsed) -> Iterator[Step]:
        left: list[tuple[int, int]] = []
        for number, (move, landed) in enumerate(zip(board.moves, result.steps, strict=True), 1):
            needs = {step for step, row in left for each in landed if self._names[row] == each.lands.node}
            left += [(number, each.source) for each in landed]
            yield Step(
                number=number,
                because=self._because(found, result, number, landed),
                pods=tuple(map(self._moved, landed)),
                group=self._units[move.unit].group,
                needs=tuple(sorted(needs)),
            )

    def _because(self, found: Found, result: Rehearsed, number: int, landed: Sequence[LandedPod]) -> str:
        sources = dict.fromkeys(each.source for each in landed)
        useful = [row for row in sources if row in found.reserved]
        if useful:
            return f"{self._names[useful[0]]} {self._goal.purpose(found.reserved[useful[0]])}"
        rows = {self._names[row] for row in sources}
        for later, pods in enumerate(result.steps[number:], number + 1):
            if any(each.lands.node in rows for each in pods):
                return f"makes room for the pods of step {later}"
        return "belongs to a group of which another pod is in the way"

    def _moved(self, landed: LandedPod) -> MovedPod:
        pod, owner = landed.member.pod, landed.member.pod.metadata.controller
        return MovedPod(
            pod=pod.metadata.full_name,
            uid=pod.metadata.uid,
            owner=f"{owner.kind} {owner.name}" if owner is not None else "",
            priority=pod.spec.priority,
            source=self._names[landed.source],
            lands=landed.lands,
            budgets=self._budgets[landed.member.uid],
        )

    def _alternatives(self, found: Found, moved: Set[int]) -> tuple[Alternative, ...]:
        others = [
            each for own in found.options.values() for each in own if each.blocking and not each.blocking <= moved
        ]
        ranked = sorted(others, key=lambda each: (each.cost / each.gain, each.row))
        return tuple(
            Alternative(
                node=self._names[each.row],
                pods=tuple(
                    one.pod.metadata.full_name for unit in sorted(each.blocking) for one in self._units[unit].members
                ),
                gain=each.gain,
            )
            for each in ranked[:MOST_ALTERNATIVES]
        )

    def _named(self, blocking: Blocking) -> Iterator[str]:
        for number in sorted(blocking):
            yield from (each.pod.metadata.full_name for each in self._units[number].members)

    def _invalidated_by(self, board: Board, result: Rehearsed) -> tuple[str, ...]:
        nodes = sorted({self._names[row] for row in board.states} | {self._names[row] for row in result.placed})
        budgets = sorted(
            {name for landed in result.steps for each in landed for name in self._budgets[each.member.uid]}
        )
        waits = [f"PodDisruptionBudget {name} allowing no eviction when its step comes" for name in budgets]
        return (
            f"another pod that starts, ends or is resized on {_few(nodes)}",
            f"another report, policy, taint or label of {_few(nodes)}",
            "a pod of the plan that is deleted, or that its controller does not create again",
            *waits,
        )


def snapshot_id(made: Restored) -> str:
    """Changes whenever a node, a report or a pod with a node does."""
    digest = xxhash.xxh64()
    for name in sorted(made.world.rows):
        row, report = made.world.rows[name], made.cluster.report_of(name)
        node = made.cluster.node_named(name)
        versions = [each.metadata.resource_version for each in (node, report) if each is not None]
        pods = [(uid, each.pod.metadata.resource_version) for uid, each in sorted(made.world.on_row[row].items())]
        digest.update(repr((name, versions, pods)).encode())
    return digest.hexdigest()


def _few(names: Sequence[str]) -> str:
    if len(names) <= MOST_NAMED:
        return ", ".join(names)
    return f"{', '.join(names[:MOST_NAMED])} and {len(names) - MOST_NAMED:,} more"
