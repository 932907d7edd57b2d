"""Proves that no sequence of moves reaches a goal, whatever it moves.

`planner` calls `disproof` before it searches. Each bound holds for every sequence: what pods ask of nodes as a whole
has to be somewhere, and a row offers at most what it offers without all pods that may leave it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from numalign.api.objects import resourcenames
from numalign.plan.defrag import options
from numalign.plan.defrag.goals import EmptyNode, FitPods, Goal
from numalign.plan.defrag.movable import Movable, Unit
from numalign.plan.defrag.rowstates import RowStates


def disproof(states: RowStates, movable: Movable, goal: Goal, on_row: Mapping[int, Sequence[Unit]]) -> str:
    """Why the goal cannot be reached; empty: nothing speaks against it."""
    if isinstance(goal, FitPods):
        why = _totals(states, goal)
        if why:
            return why
        if not _is_monotone(states, goal):
            return ""
    there = options.most(goal, movable.units, on_row)
    if there >= goal.wanted or states.unsure:
        return ""
    if isinstance(goal, EmptyNode):
        return _staying(states, movable, goal)
    what = "such pods fit" if isinstance(goal, FitPods) else "zones would be free"
    return f"without all pods that may move, {there:,} {what}; {goal.wanted:,} are wanted"


def _totals(states: RowStates, goal: FitPods) -> str:
    """What is free of each resource, on all nodes together, stays the same when pods move between them."""
    for each in states.rows.free(states.kinds[goal.kind].shape):
        wanted = each.asked * goal.wanted
        if each.free < wanted:
            free, needed = _amount(each.resource, each.free), _amount(each.resource, wanted)
            return f"all nodes together have {free} of {each.resource} free; {needed} are wanted"
    return ""


def _amount(name: str, amount: int) -> str:
    return f"{amount / 1000:,g}" if name == resourcenames.CPU else f"{amount:,}"


def _is_monotone(states: RowStates, goal: FitPods) -> bool:
    """Whether more room never makes a node refuse the pod: its containers do not take from each other, and filters do
    not look at other pods."""
    kind = states.kinds[goal.kind]
    return len(kind.pod.spec.containers) == 1 and not kind.pod.spec.init_containers and not kind.steps


def _staying(states: RowStates, movable: Movable, goal: EmptyNode) -> str:
    staying = [movable.why_kept[uid] for uid in goal.leaving if uid in movable.why_kept]
    return f"{len(staying):,} pods of the node stay; the first one {staying[0]}" if staying else ""
