"""Runs one controller: a work queue of keys, reconciliation, and the performance of actions.

`manager` creates one `Runner` per controller. Watches enqueue keys, and a task reconciles one key at a time. A key is
reconciled `LATENCY` seconds after it was enqueued, about as long as a watch event and a write take, so that changes
which arrive together are handled once and rejection storms advance in virtual time. `ActionPerformer` performs the
actions of one reconciliation; the first rejected action ends the list, and the key is retried. `WorkQueue` holds each
key at most once, with exponential back-off after failures as in client-go. The queue is pure."""

import asyncio
import heapq
import logging
from collections.abc import Iterable
from typing import Final, Generic, Protocol, TypeVar

from numalign.kube.backoff import Exponential
from numalign.simulator import trees
from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import Resource
from numalign.simulator.apiserver.verbs.api import Api, Change, Patch
from numalign.simulator.controllers.framework import owners
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
        """Why the last creation of a child failed, by the uid of its owner."""

    def perform(self, actions: Iterable[Action]) -> float | None:
        """Seconds after which to reconcile again, if an action requires it. Raises StatusError where the API rejects an
        action."""
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
                self._api.update(resource, tree, subresource=part)
            case MergePatch(resource, target, body, part, kind):
                # The server may reuse parts of the patch in the stored object, which other components read.
                name, namespace = target["metadata"]["name"], target["metadata"].get("namespace", "")
                self._api.patch(resource, name, namespace, Patch(kind, trees.copied(body)), subresource=part)
            case RecordEvent(regarding, reason, message, event_type):
                self._recorder.record(regarding, event_type, reason, message)

    def _create(self, action: Create) -> None:
        owner = action.owner
        try:
            created = self._api.create(action.resource, action.tree)
        except StatusError as refusal:
            if owner is not None and not (refusal.code == 403 and "being terminated" in refusal.message):
                self.refused[owner["metadata"]["uid"]] = refusal.message
                self._recorder.record(owner, "Warning", "FailedCreate", f"Error creating: {refusal.message}")
            raise
        if owner is not None:
            self.refused.pop(owner["metadata"]["uid"], None)
            self._record(
                owner, "SuccessfulCreate", f"Created {action.resource.singular}: {created['metadata']['name']}"
            )

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
            # The object is gone, or another object has its name.
            if refusal.code == 404 or (refusal.code == 409 and "uid" in refusal.message.lower()):
                return
            if action.owner is not None:
                self._recorder.record(action.owner, "Warning", "FailedDelete", f"Error deleting: {refusal.message}")
            raise
        if action.owner is not None:
            self._record(action.owner, "SuccessfulDelete", f"Deleted {action.resource.singular}: {metadata['name']}")

    def _record(self, owner: Tree, reason: str, message: str) -> None:
        self._recorder.record(owner, "Normal", reason, message)


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
        """Enqueues the key for this time, unless it is already queued for an earlier one."""
        if self._due.get(key, due + 1) <= due:
            return
        self._due[key] = due
        self._added += 1
        heapq.heappush(self._heap, (due, self._added, key))

    def retry(self, key: K, now: float) -> None:
        """Enqueues the key again after a failure, with back-off."""
        self._failures[key] = self._failures.get(key, 0) + 1
        self.add(key, now + RETRY.pause(self._failures[key]))

    def forget(self, key: K) -> None:
        """Resets the back-off of the key."""
        self._failures.pop(key, None)

    def take(self, now: float) -> K | None:
        """The key that has been due for the longest time, if any is due."""
        due = self.next_due()
        if due is None or due > now:
            return None
        _, _, key = heapq.heappop(self._heap)
        del self._due[key]
        return key

    def next_due(self) -> float | None:
        # A key that was moved to an earlier time leaves its old heap entry behind.
        while self._heap and self._due.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None


LOG: Final = logging.getLogger(__name__)
PROGRAMMING_ERRORS: Final = (LookupError, TypeError, ValueError, AttributeError)
LATENCY: Final = 0.01
"""Seconds from a change to its reconciliation."""


class ControllerContext:
    """What a controller works with: the API, cached objects, its event recorder and its work queue."""

    def __init__(self, api: Api, views: Views, component: str) -> None:
        self.api = api
        self.views = views
        self.recorder = EventRecorder(api, component)
        self.performer = ActionPerformer(api, self.recorder)
        self.queue: WorkQueue[Key] = WorkQueue()
        self.wake = asyncio.Event()

    def enqueue(self, key: Key, after: float = LATENCY) -> None:
        self.queue.add(key, self.api.clock.now() + after)
        self.wake.set()

    def enqueue_controller(self, change: Change, resource: Resource) -> None:
        """Enqueues the controller of the changed object, if it is of this resource."""
        held = owners.controller(change.tree)
        if held is not None and held["kind"] == resource.kind:
            self.enqueue((change.key[0], held["name"]))


class Controller(Protocol):
    name: str
    """The component in its events."""

    def setup(self, context: ControllerContext) -> None:
        """Called once before `reconcile`: keeps the context and registers watches."""

    def reconcile(self, key: Key) -> Iterable[Action]:
        """The actions that bring this object to its desired state."""


class Runner:
    def __init__(self, controller: Controller, api: Api, views: Views) -> None:
        self.controller = controller
        self.context = ControllerContext(api, views, controller.name)
        controller.setup(self.context)

    async def run(self) -> None:
        while True:
            await self._something_due()
            key = self.context.queue.take(self.context.api.clock.now())
            if key is not None:
                self.step(key)
            # Other tasks run between two reconciliations.
            await asyncio.sleep(0)

    def step(self, key: Key) -> None:
        queue = self.context.queue
        try:
            again = self.context.performer.perform(self.controller.reconcile(key))
        except StatusError:
            queue.retry(key, self.context.api.clock.now())
            return
        except PROGRAMMING_ERRORS:
            # Any client can write a status, so an unexpected value in one object must not stop the others.
            LOG.exception(
                "Reconciliation failed controller=%s object=%s", self.controller.name, "/".join(filter(None, key))
            )
            queue.retry(key, self.context.api.clock.now())
            return
        queue.forget(key)
        if again is not None:
            self.context.enqueue(key, max(again, LATENCY))

    async def _something_due(self) -> None:
        loop, context = asyncio.get_running_loop(), self.context
        while (due := context.queue.next_due()) is None or due > context.api.clock.now():
            context.wake.clear()
            timer = loop.call_later(due - context.api.clock.now(), context.wake.set) if due is not None else None
            await context.wake.wait()
            if timer is not None:
                timer.cancel()
