"""The nodes in direct mode: facts go in, and every pod is decided on one of them or refused.

The exact flavour holds one `DirectNodes`: it passes facts on, asks for the code of a row, and places pods. `answers`
and `whatif` ask why and what if."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from msgspec import Struct

from numalign.api.attributes import directresult
from numalign.api.attributes.directresult import DirectResult
from numalign.api.errors import BadObject
from numalign.api.objects.pod import Pod
from numalign.kubelet import demand as demands
from numalign.placement.columns.directmachine import DirectMachine, FreeState
from numalign.placement.columns.holdings import Aligned
from numalign.placement.columns.resources import Resources
from numalign.placement.columns.shapes import Shape
from numalign.placement.direct import decider
from numalign.placement.direct.decider import Decider, Placed
from numalign.placement.direct.ledger import DirectLedger, DirectProblem
from numalign.placement.direct.scope import Unplaced
from numalign.placement.facts import BindFailed, Fact, PodAssumed, PodGone, PodSeen, Tick
from numalign.placement.referenceargs import Strategy
from numalign.placement.rowmodel.causes import Shortfall


class DirectDecision(Struct, frozen=True):
    """A pod on its node."""

    result: DirectResult
    aligned: tuple[Aligned, ...]


class DirectNodes:
    def __init__(self, strategy: Strategy, charges: Callable[[str], bool]) -> None:
        """`charges`: whether a pod that is gone may still run."""
        self.ledger = DirectLedger()
        self.decider = Decider(strategy)
        self._charges = charges
        self._bound: set[str] = set()
        """Pods that were seen on their nodes."""
        self._lingering: set[str] = set()

    def apply(self, fact: Fact) -> list[str]:
        """Nodes on which something changed."""
        match fact:
            case PodSeen(pod=pod) | PodAssumed(pod=pod):
                return self._seen(pod)
            case PodGone(pod=pod):
                uid = demands.identity(pod)
                self._lingering.add(uid)
                return self._end_gone((uid,)) if uid in self.ledger else []
            case BindFailed(uid=uid) if uid not in self._bound:
                return self._drop(uid)
            case Tick():
                return self._end_gone(tuple(self._lingering))
        return []

    def score(self, shape: Shape, node: str, machine: DirectMachine) -> int | None:
        """None: the node refuses the pod."""
        found = self.decider.answer(shape, machine, self.ledger.free(node, machine))
        return found.score if isinstance(found, Placed) else None

    def place(self, pod: Pod, shape: Shape, node: str, machine: DirectMachine) -> DirectDecision | None:
        """Decides the pod on the node, and charges it."""
        uid = demands.identity(pod)
        self._drop(uid)
        free = self.ledger.free(node, machine)
        found = self.decider.answer(shape, machine, free)
        if isinstance(found, Unplaced):
            return None
        result = decider.result(pod, node, self.decider.ask(shape, machine), machine, free, found)
        self.ledger.decided(uid, result, machine, found.assignment.after)
        return DirectDecision(result, decider.aligned(pod, machine, found))

    def shortfall(
        self, shape: Shape, machine: DirectMachine, free: FreeState, resources: Resources
    ) -> Shortfall | None:
        """Why a node in this state refuses the pod; None: it does not."""
        found = self.decider.answer(shape, machine, free)
        if isinstance(found, Placed):
            return None
        return decider.shortfall(self.decider.ask(shape, machine), machine, free, found, resources)

    def admits(self, node: str, machine: DirectMachine, shapes: Sequence[Shape], without: Collection[str] = ()) -> bool:
        """Whether the node has room for these pods one after the other, if others were gone."""
        free = self.ledger.without(node, machine, frozenset(without))
        for shape in shapes:
            found = self.decider.answer(shape, machine, free)
            if isinstance(found, Unplaced):
                return False
            free = found.assignment.after
        return True

    def _seen(self, pod: Pod) -> list[str]:
        uid, node = demands.identity(pod), pod.spec.node_name
        if pod.status.is_finished or not node:
            return self._drop(uid) if pod.status.is_finished else []
        moved = self._drop(uid) if self.ledger.node_of(uid) not in (None, node) else []
        if directresult.RESULT in pod.metadata.annotations:
            try:
                result = directresult.of_pod(pod)
            except BadObject:
                self.ledger.problems[DirectProblem.UNREADABLE] += 1
                return moved
            if result is not None and self.ledger.found(uid, result):
                moved = [*moved, node]
        if uid in self.ledger:
            self._bound.add(uid)
        return moved

    def _drop(self, uid: str) -> list[str]:
        self._bound.discard(uid)
        self._lingering.discard(uid)
        node = self.ledger.drop(uid)
        return [node] if node is not None else []

    def _end_gone(self, uids: Collection[str]) -> list[str]:
        return [node for uid in uids if not self._charges(uid) for node in self._drop(uid)]
