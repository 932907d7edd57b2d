"""Runs one controller: changes note keys, a task looks at them one after the other and does what is wanted.

`manager` makes one `Runner` per controller. A key is looked at a moment after it was noted, about as long as a watch
and a write take: changes that come together are looked at once, and a storm of rejected pods moves on in time.

Carries out what a controller wants, one action after the other, over the API.

`runner` calls `perform` after every look at an object. The first action that the API refuses ends the list: the
controller will look again and want what is left. Only refusals that cure themselves are passed over.

Which object a controller looks at next.

`runner` and the controllers' watches put keys in, the runner's task takes them out. A key waits at most once: one that
is added again keeps its place, or gets the earlier of two times. Failures wait longer each time, as in client-go.
Pure: time is an argument, and equal times come out in the order in which they were put in.
"""

import asyncio
import heapq
import logging
from collections.abc import Iterable
from typing import Final, Generic, Protocol, TypeVar

from numalign.kube.backoff import Exponential
from numalign.simulator import trees
from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.verbs.api import Api, Patch
from numalign.simulator.controllers.framework.actions import (
    Action,
    Create,
    Delete,
    MergePatch,
    RecordEvent,
    Requeue,
    Update,
)
from numalign.simulator.controllers.framework.events import EventRecorder
from numalign.simulator.controllers.framework.views import Key, Views
from numalign.simulator.trees import Tree


class ActionPerformer:
    def __init__(self, api: Api, recorder: EventRecorder) -> None:
        self._api = api
        self._recorder = recorder
        self.refused: dict[str, str] = {}
        """By the owner's uid: why its last child was not created."""

    def perform(self, actions: Iterable[Action]) -> float | None:
        """Seconds after which to look again, if anybody asked for it; raises what the API refuses."""
        soonest: float | None = None
        for action in actions:
            match action:
                case Create():
                    self._create(action)
                case Delete():
                    self._remove(action)
                case Requeue(seconds):
                    soonest = seconds if soonest is None else min(soonest, seconds)
                case _:
                    self._write(action)
        return soonest

    def _write(self, action: Update | MergePatch | RecordEvent) -> None:
        match action:
            case Update(resource, tree, part):
                self._api.update(resource, tree, part=part)
            case MergePatch(resource, target, body, part, kind):
                # The server may build the new object of parts of the patch, which everybody else reads too.
                name, namespace = target["metadata"]["name"], target["metadata"].get("namespace", "")
                self._api.patch(resource, name, namespace, Patch(kind, trees.copied(body)), part=part)
            case RecordEvent(regarding, reason, message, gravity):
                self._recorder.record(regarding, gravity, reason, message)

    def _create(self, action: Create) -> None:
        owner = action.owner
        try:
            created = self._api.create(action.resource, action.tree)
        except StatusError as refusal:
            if owner is not None and not _is_namespace_ending(refusal):
                self.refused[owner["metadata"]["uid"]] = refusal.message
                self._recorder.record(owner, "Warning", "FailedCreate", f"Error creating: {refusal.message}")
            raise
        if owner is not None:
            self.refused.pop(owner["metadata"]["uid"], None)
            self._tell(owner, "SuccessfulCreate", f"Created {action.resource.singular}: {created['metadata']['name']}")

    def _remove(self, action: Delete) -> None:
        metadata = action.target["metadata"]
        try:
            self._api.delete(
                action.resource,
                metadata["name"],
                metadata.get("namespace", ""),
                uid=metadata["uid"],
                grace=action.grace,
                propagation=action.propagation,
            )
        except StatusError as refusal:
            # Gone already, or another object of that name by now: nothing is left to remove.
            if refusal.code == 404 or (refusal.code == 409 and "uid" in refusal.message.lower()):
                return
            if action.owner is not None:
                self._recorder.record(action.owner, "Warning", "FailedDelete", f"Error deleting: {refusal.message}")
            raise
        if action.owner is not None:
            self._tell(action.owner, "SuccessfulDelete", f"Deleted {action.resource.singular}: {metadata['name']}")

    def _tell(self, owner: Tree, reason: str, message: str) -> None:
        self._recorder.record(owner, "Normal", reason, message)


def _is_namespace_ending(refusal: StatusError) -> bool:
    return refusal.code == 403 and "being terminated" in refusal.message


K = TypeVar("K")

RETRY: Final = Exponential(first=0.005, longest=1000.0)


class WorkQueue(Generic[K]):
    def __init__(self) -> None:
        self._due: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._failures: dict[K, int] = {}
        self._added = 0

    def __len__(self) -> int:
        return len(self._due)

    def add(self, key: K, due: float) -> None:
        """It is to be looked at from then on."""
        if self._due.get(key, due + 1) <= due:
            return
        self._due[key] = due
        self._added += 1
        heapq.heappush(self._heap, (due, self._added, key))

    def retry(self, key: K, now: float) -> None:
        """It did not work; later, and later still the next time."""
        self._failures[key] = self._failures.get(key, 0) + 1
        self.add(key, now + RETRY.pause(self._failures[key]))

    def forget(self, key: K) -> None:
        """It worked: the next failure is a first one."""
        self._failures.pop(key, None)

    def take(self, now: float) -> K | None:
        """The key that is due the longest, if any is."""
        due = self.next_due()
        if due is None or due > now:
            return None
        _, _, key = heapq.heappop(self._heap)
        del self._due[key]
        return key

    def next_due(self) -> float | None:
        # A key that was moved forward left its old entry behind.
        while self._heap and self._due.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None


LOG: Final = logging.getLogger(__name__)
PROGRAMMING_ERRORS: Final = (LookupError, TypeError, ValueError, AttributeError)
LATENCY: Final = 0.01
"""Seconds from a change to the look at it."""


class ControllerContext:
    """Where a controller sits: what it sees, and the pile of keys that it is to look at."""

    def __init__(self, api: Api, views: Views, component: str) -> None:
        self.api = api
        self.views = views
        self.recorder = EventRecorder(api, component)
        self.performer = ActionPerformer(api, self.recorder)
        self.queue: WorkQueue[Key] = WorkQueue()
        self.wake = asyncio.Event()

    def note(self, key: Key, after: float = LATENCY) -> None:
        self.queue.add(key, self.api.clock.now() + after)
        self.wake.set()


class Controller(Protocol):
    name: str
    """As it signs its events."""

    def sit(self, desk: ControllerContext) -> None:
        """Before anything else: keep the desk, and watch what matters."""

    def look(self, key: Key) -> Iterable[Action]:
        """What is wanted for this object now, by what the views show."""


class Runner:
    def __init__(self, controller: Controller, api: Api, views: Views) -> None:
        self.controller = controller
        self.desk = ControllerContext(api, views, controller.name)
        controller.sit(self.desk)

    async def run(self) -> None:
        while True:
            await self._something_due()
            key = self.desk.queue.take(self.desk.api.clock.now())
            if key is not None:
                self.step(key)
            # Others get their turn between any two looks.
            await asyncio.sleep(0)

    def step(self, key: Key) -> None:
        queue = self.desk.queue
        try:
            again = self.desk.performer.perform(self.controller.look(key))
        except StatusError:
            queue.retry(key, self.desk.api.clock.now())
            return
        except PROGRAMMING_ERRORS:
            # Status can be written by anybody, and says what it likes; one strange object must not stop the others.
            LOG.exception("%s cannot make sense of %s", self.controller.name, "/".join(filter(None, key)))
            queue.retry(key, self.desk.api.clock.now())
            return
        queue.forget(key)
        if again is not None:
            self.desk.note(key, max(again, LATENCY))

    async def _something_due(self) -> None:
        loop, desk = asyncio.get_running_loop(), self.desk
        while (due := desk.queue.next_due()) is None or due > desk.api.clock.now():
            desk.wake.clear()
            timer = loop.call_later(due - desk.api.clock.now(), desk.wake.set) if due is not None else None
            await desk.wake.wait()
            if timer is not None:
                timer.cancel()
