"""Carries a plan of moves out on a cluster, one step at a time, and plans anew whenever the cluster is another one.

`numalign plan defrag --execute` runs it. Before each step the rest of the plan is rehearsed on the cluster as it is
now. Where pods are to land, the Node holds their room, so that the scheduler keeps it free for their successors. The
next step begins when the successors run where the plan has them, and when reports show their zones. What is under way
is written on Nodes alone: another process goes on where one ended. No pod is evicted whose place is not certain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import product
from typing import Final

from msgspec import Struct, structs

from numalign.api.attributes import heldrooms
from numalign.api.attributes.heldrooms import HeldRoom
from numalign.api.objects.pod import Pod
from numalign.kube.clock import microtime
from numalign.kube.resources import PODS
from numalign.placement.capacity.rowreader import RowReader
from numalign.plan.defrag import planner
from numalign.plan.defrag.clusterhand import ClusterHand, Evicted, Stuck
from numalign.plan.defrag.messages import DefragPlan, Execution, Landing, MadeMove, MovedPod, Step
from numalign.plan.defrag.movable import created_again
from numalign.plan.defrag.planner import Wanted
from numalign.scheduler.snapshot import restore
from numalign.scheduler.snapshot.restore import Restored
from numalign.scheduler.snapshot.snapshot import Snapshot

MOST_SETS: Final = 4096
"""Sets of zones that are compared with what a report shows."""


class Patience(Struct, frozen=True, kw_only=True):
    """Seconds."""

    notice: float = 2.0
    """From the room on a Node to the eviction: by then schedulers have seen it."""
    poll: float = 2.0
    budget: float = 600.0
    """For a PodDisruptionBudget to allow an eviction."""
    landing: float = 600.0
    """For successors to run, after the grace period of their predecessors."""
    report: float = 150.0
    """For a report that shows them."""
    plans: int = 10
    """How many are made at most."""


PATIENT: Final = Patience()


class Surprise(Exception):
    """The cluster is not what the plan was made for; the text says how. Planning anew may help."""


class Executor:
    def __init__(
        self, hand: ClusterHand, wanted: Wanted, say: Callable[[str], None], patience: Patience = PATIENT
    ) -> None:
        """`say`: is called with each thing that was done or found, as a sentence."""
        self._hand, self._wanted, self._say, self._patience = hand, wanted, say, patience
        self._moves: list[MadeMove] = []
        self._evictions = 0
        self._there: set[str] = set()
        """Uids of the pods that had a node when this began."""
        self._successors: set[str] = set()
        self._now: dict[str, str] = {}
        """By uid of a pod of the plan that was moved, the uid of its successor."""

    async def resumed(self) -> None:
        """Brings to an end what another process began: waits for pods that are on their way, and frees their rooms."""
        for node, rooms in (await self._hand.rooms()).items():
            there = {each.metadata.uid: each for each in await self._pods_of(rooms)}
            for room in rooms:
                before = there.get(room.uid)
                name = f"{room.pod.metadata.namespace}/{room.pod.metadata.name}"
                if before is not None and before.metadata.deletion_timestamp is None:
                    self._say(f"{name} was not evicted; its room on {node} is free again")
                else:
                    self._say(f"{name} was evicted; waiting for the pod that comes in its place")
                    await self._awaited_alone(room)
            await self._hand.release(node, {each.uid for each in rooms})

    async def carried_out(self) -> Execution:
        """Until the goal is there, there is no plan, or too many plans came to nothing."""
        begun = 0
        while True:
            try:
                plan = self._planned(await self._hand.look())
                if plan.verdict == "nothing-to-do":
                    return self._ended("done", "", begun)
                if plan.verdict != "found":
                    return self._ended("stopped", plan.why, begun)
                if begun == self._patience.plans:
                    return self._ended("stopped", f"{begun:,} plans did not hold", begun)
                begun += 1
                self._say(f"a plan with {plan.cost.pods:,} evictions in {len(plan.steps):,} steps")
                await self._carry_out(plan)
            except Surprise as surprise:
                self._say(f"{surprise}; planning anew")
            except Stuck as problem:
                return self._ended("stopped", str(problem), begun)

    def _planned(self, taken: Snapshot) -> DefragPlan:
        self._there = self._there or {pod.metadata.uid for pod in taken.every(PODS) if pod.spec.node_name}
        return planner.plan(lambda: restored(taken), self._left(taken))

    def _left(self, taken: Snapshot) -> Wanted:
        """What is wanted still: a pod that waited for the room may have taken it, and counts."""
        wanted = self._wanted
        if wanted.pod is None:
            return wanted
        asked = heldrooms.asked(wanted.pod)
        came = [pod for pod in taken.every(PODS) if pod.spec.node_name and not pod.status.is_finished]
        new = [pod for pod in came if pod.metadata.uid not in self._there | self._successors]
        served = sum(heldrooms.asked(pod) == asked for pod in new)
        return structs.replace(wanted, pods=max(0, wanted.pods - served))

    def _ended(self, verdict: str, why: str, plans: int) -> Execution:
        return Execution(
            goal=self._wanted.text,
            verdict="done" if verdict == "done" else "stopped",
            why=why,
            plans=plans,
            moves=tuple(self._moves),
            evictions=self._evictions,
        )

    async def _carry_out(self, plan: DefragPlan) -> None:
        self._now = {}
        for number, step in enumerate(plan.steps):
            taken = await self._hand.look()
            left = self._left(taken)
            if planner.is_reached(restored(taken), left):
                return
            broken = planner.broken(restored(taken), left, plan.steps[number:], plan.lands, self._now)
            if broken:
                raise Surprise(broken)
            await self._step(step, taken, len(plan.steps))

    async def _step(self, step: Step, taken: Snapshot, steps: int) -> None:
        by_uid = {pod.metadata.uid: pod for pod in taken.every(PODS)}
        moves = [(each, by_uid[self._now.get(each.uid, each.uid)]) for each in step.pods]
        known = {pod.metadata.uid for pod in taken.every(PODS)}
        for node, pods in _by_node(moves).items():
            await self._hand.hold(node, [self._room(pod) for pod in pods])
        await self._hand.clock.sleep(self._patience.notice)
        evicted: list[tuple[MovedPod, Pod]] = []
        try:
            for move, pod in moves:
                if not await self._evicted(pod):
                    break
                evicted.append((move, pod))
            landed = await self._awaited(evicted, known)
            await self._observed(evicted, landed)
        finally:
            for node, pods in _by_node(moves).items():
                await self._hand.release(node, {each.metadata.uid for each in pods})
        for move, pod in evicted:
            successor = landed[pod.metadata.uid]
            self._now[move.uid] = successor.metadata.uid
            where = f"{successor.metadata.full_name} runs on {successor.spec.node_name}"
            self._say(f"step {step.number} of {steps}: {pod.metadata.full_name} left {pod.spec.node_name}; {where}")
        if len(evicted) < len(moves):
            raise Surprise(f"step {step.number}: {moves[len(evicted)][1].metadata.full_name} was gone")
        astray = [(move, landed[pod.metadata.uid]) for move, pod in evicted]
        for move, successor in astray:
            if successor.spec.node_name != move.lands.node:
                raise Surprise(
                    f"{successor.metadata.full_name} is on {successor.spec.node_name} and not on {move.lands.node}"
                )

    async def _evicted(self, pod: Pod) -> bool:
        """Waits for budgets. False: the pod was gone before."""
        clock, begun = self._hand.clock, self._hand.clock.now()
        while True:
            answer = await self._hand.evict(pod)
            if answer is Evicted.DONE:
                self._evictions += 1
                return True
            if answer is Evicted.GONE:
                # An answer that was lost looks the same as an eviction by another program.
                there = {each.metadata.uid: each for each in await self._hand.pods({pod.metadata.namespace})}
                now = there.get(pod.metadata.uid)
                if now is None or now.metadata.deletion_timestamp is not None:
                    self._evictions += 1
                    return True
            elif clock.now() - begun > self._patience.budget:
                raise Stuck(f"{pod.metadata.full_name}: {Evicted.HELD_BACK.value}")
            await clock.sleep(self._patience.poll)

    async def _awaited(self, evicted: Sequence[tuple[MovedPod, Pod]], known: set[str]) -> dict[str, Pod]:
        """By uid of the pod that was evicted, the one that runs in its place."""
        clock, grace = self._hand.clock, max((_grace(pod) for _, pod in evicted), default=0.0)
        until = clock.now() + grace + self._patience.landing
        rooms = {pod.metadata.uid: self._room(pod) for _, pod in evicted}
        nodes = {pod.metadata.uid: move.lands.node for move, pod in evicted}
        while True:
            there = await self._hand.pods({pod.metadata.namespace for _, pod in evicted})
            uids = {each.metadata.uid for each in there}
            found = _matched(rooms, nodes, [each for each in there if each.metadata.uid not in known])
            running = {uid: pod for uid, pod in found.items() if pod.has_started and not pod.has_stopped}
            if len(running) == len(rooms) and not uids & set(rooms):
                self._successors |= {each.metadata.uid for each in running.values()}
                self._remember(evicted, running)
                return running
            if clock.now() > until:
                self._remember(evicted, found)
                waiting = [pod for _, pod in evicted if pod.metadata.uid not in running]
                raise Stuck(
                    f"{waiting[0].metadata.full_name} was evicted, and no pod runs in its place after "
                    f"{grace + self._patience.landing:,.0f} s"
                    if waiting
                    else f"{evicted[0][1].metadata.full_name} was evicted, and does not end"
                )
            await clock.sleep(self._patience.poll)

    def _remember(self, evicted: Sequence[tuple[MovedPod, Pod]], found: Mapping[str, Pod]) -> None:
        for move, pod in evicted:
            successor = found.get(pod.metadata.uid)
            self._moves.append(
                MadeMove(
                    pod=pod.metadata.full_name,
                    source=pod.spec.node_name,
                    planned=move.lands.node,
                    successor=successor.metadata.full_name if successor is not None else "",
                    node=successor.spec.node_name if successor is not None else "",
                )
            )

    async def _observed(self, evicted: Sequence[tuple[MovedPod, Pod]], landed: Mapping[str, Pod]) -> None:
        """Waits for reports that show the pods, and compares the zones. Surprise: they are others."""
        clock, until = self._hand.clock, self._hand.clock.now() + self._patience.report
        waiting = {
            landed[pod.metadata.uid].metadata.uid: (move, landed[pod.metadata.uid])
            for move, pod in evicted
            if landed[pod.metadata.uid].spec.node_name == move.lands.node and _is_aligned(move.lands)
        }
        surprises: list[str] = []
        while waiting and clock.now() < until:
            made = restored(await self._hand.look())
            reader = RowReader(made.engine)
            for uid, (move, pod) in list(waiting.items()):
                zones = _observed(made, reader, pod)
                if zones is None:
                    continue
                del waiting[uid]
                place = next(at for at, each in enumerate(self._moves) if each.successor == pod.metadata.full_name)
                self._moves[place] = structs.replace(self._moves[place], zones=tuple(sorted(zones)))
                if not any(zones <= each for each in _possible(move.lands)):
                    surprises.append(f"{pod.metadata.full_name} is in zones {_listed(zones)} of {pod.spec.node_name}")
            if waiting:
                await clock.sleep(self._patience.poll)
        for _, pod in waiting.values():
            self._say(f"no report of {pod.spec.node_name} shows {pod.metadata.full_name} yet")
        if surprises:
            raise Surprise(surprises[0])

    def _room(self, pod: Pod) -> HeldRoom:
        """Held for as long as the step may take."""
        patience = self._patience
        seconds = patience.notice + patience.budget + _grace(pod) + patience.landing + patience.report
        again = created_again(pod)
        again = structs.replace(again, metadata=structs.replace(again.metadata, name=pod.metadata.name))
        until = self._hand.clock.wall() + timedelta(seconds=seconds)
        return HeldRoom(uid=pod.metadata.uid, until=microtime(until), pod=again)

    async def _pods_of(self, rooms: Sequence[HeldRoom]) -> list[Pod]:
        return await self._hand.pods({each.pod.metadata.namespace for each in rooms})

    async def _awaited_alone(self, room: HeldRoom) -> None:
        """Until no pod of the controller that asks for the same waits, or the room's time is over."""
        while self._hand.clock.wall() < heldrooms.ends(room):
            there = await self._pods_of([room])
            like = [each for each in there if heldrooms.is_successor(each, room) and not each.status.is_finished]
            if like and all(each.has_started for each in like) and not any(e.metadata.uid == room.uid for e in there):
                return
            await self._hand.clock.sleep(self._patience.poll)


def restored(taken: Snapshot) -> Restored:
    made = restore.restored(taken)
    made.engine.warm()
    return made


def _by_node(moves: Sequence[tuple[MovedPod, Pod]]) -> dict[str, list[Pod]]:
    found: dict[str, list[Pod]] = {}
    for move, pod in moves:
        found.setdefault(move.lands.node, []).append(pod)
    return found


def _matched(rooms: Mapping[str, HeldRoom], nodes: Mapping[str, str], new: Sequence[Pod]) -> dict[str, Pod]:
    """By uid of the pod that left, a new pod of its controller, if there is one that has not failed: the one on the
    node that was held for it, if it is there."""
    left = [pod for pod in new if not pod.status.is_finished and pod.metadata.deletion_timestamp is None]
    found: dict[str, Pod] = {}
    for is_there in (True, False):
        for uid, room in rooms.items():
            if uid in found:
                continue
            own = (pod for pod in left if heldrooms.is_successor(pod, room))
            pod = next((each for each in own if not is_there or each.spec.node_name == nodes[uid]), None)
            if pod is not None:
                found[uid] = pod
                left.remove(pod)
    return found


def _observed(made: Restored, reader: RowReader, pod: Pod) -> frozenset[int] | None:
    """The zones in which a report shows the pod; None: none shows it yet."""
    row = made.engine.rows.get(pod.spec.node_name)
    return reader.observed(row).get(pod.metadata.uid) if row is not None else None


def _is_aligned(lands: Landing) -> bool:
    return any(each.zones for each in lands.containers)


def _possible(lands: Landing) -> Iterator[frozenset[int]]:
    """Sets of zones in which the pod may be as a whole; one with all of them if there are very many."""
    choices = [each.zones for each in lands.containers if each.zones]
    count = 1
    for each in choices:
        count *= len(each)
    if count > MOST_SETS:
        yield frozenset(zone for own in choices for zones in own for zone in zones)
        return
    for chosen in product(*choices):
        yield frozenset(zone for zones in chosen for zone in zones)


def _listed(zones: frozenset[int]) -> str:
    return ", ".join(map(str, sorted(zones)))


def _grace(pod: Pod) -> float:
    return float(max(0, pod.spec.termination_grace_period_seconds))
