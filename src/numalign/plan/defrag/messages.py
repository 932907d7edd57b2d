"""A plan of moves: what is wanted, the steps in order, what they cost and gain, and what would invalidate them.

`planner` makes it, the command line prints it, and a file of it has the same fields."""

from __future__ import annotations

from typing import Final, Literal

from numalign.api.decode.structs import Wire

SCHEMA: Final = "numalign.io/defrag-plan/v1"
EXECUTION: Final = "numalign.io/defrag-execution/v1"

Certainty = Literal["certain", "likely"]
"""`certain`: the kubelet admits the pod, in the zones named, and the scheduler chooses no other node. `likely`: the
kubelet admits it there, but the scheduler may choose another node, or the kubelet one of several sets of zones."""

Verdict = Literal["found", "nothing-to-do", "impossible", "not-found"]
"""`impossible` is proven, `why` says by which bound; `not-found` is not."""


class ContainerLanding(Wire, frozen=True, omit_defaults=False):
    container: str
    zones: tuple[tuple[int, ...], ...] = ()
    """Sets of zones of which the kubelet chooses one; empty: it aligns nothing of the container."""


class Landing(Wire, frozen=True):
    """Where a pod goes."""

    node: str
    certainty: Certainty
    containers: tuple[ContainerLanding, ...] = ()


class MovedPod(Wire, frozen=True, omit_defaults=False):
    """A pod to evict. Its controller creates another one, which has a name of its own."""

    pod: str
    """namespace/name"""
    uid: str
    owner: str
    """Kind and name of the controller."""
    priority: int
    source: str
    """The node that it is on."""
    lands: Landing
    budgets: tuple[str, ...] = ()
    """PodDisruptionBudgets that have to allow the eviction."""


class Step(Wire, frozen=True, omit_defaults=False):
    """Pods that are evicted at the same time: one, or all members of a group."""

    number: int
    because: str
    pods: tuple[MovedPod, ...]
    group: str = ""
    needs: tuple[int, ...] = ()
    """Earlier steps that make the room in which pods of this one land."""


class GoalLanding(Wire, frozen=True):
    """Where what was wanted comes about."""

    node: str
    count: int


class Cost(Wire, frozen=True):
    pods: int
    """Evictions, each of which is a restart."""
    groups: int
    """Groups of several pods that restart as a whole."""
    by_priority: dict[str, int]
    at_least: int
    """No plan evicts fewer pods, as far as that is proven."""


class Gain(Wire, frozen=True):
    """How much of what is wanted there is: pods that fit, or free zones."""

    before: int
    after: int
    wanted: int


class Alternative(Wire, frozen=True):
    """Another choice that was not taken."""

    node: str
    pods: tuple[str, ...]
    gain: int


class Kept(Wire, frozen=True):
    """Why pods stay where they are."""

    why: str
    pods: int
    example: str


class DefragPlan(Wire, frozen=True, omit_defaults=False):
    goal: str
    verdict: Verdict
    snapshot: str
    """Changes whenever a node, a report or a pod with a node does."""
    gain: Gain
    why: str = ""
    cost: Cost = Cost(0, 0, {}, 0)
    steps: tuple[Step, ...] = ()
    lands: tuple[GoalLanding, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    kept: tuple[Kept, ...] = ()
    invalidated_by: tuple[str, ...] = ()
    schema: str = SCHEMA


Ending = Literal["done", "stopped"]


class MadeMove(Wire, frozen=True, omit_defaults=False):
    """A pod that was evicted, and what came of it."""

    pod: str
    """namespace/name of the pod that was evicted."""
    source: str
    planned: str
    """The node where its successor was to land."""
    successor: str = ""
    """namespace/name; empty: none came."""
    node: str = ""
    """Where the successor is; empty: it waits."""
    zones: tuple[int, ...] | None = None
    """In which the report of the node shows it; None: no report shows it, or nothing of it is aligned."""


class Execution(Wire, frozen=True, omit_defaults=False):
    """How far the goal was brought."""

    goal: str
    verdict: Ending
    why: str
    plans: int
    """Plans that were begun."""
    moves: tuple[MadeMove, ...]
    evictions: int
    schema: str = EXECUTION
