"""The state that the verbs share: store, registry, clock, random source and admission.

`Api` makes one `ServerState`, the first argument of every verb. Admission is an interface, so that tests of the verbs
run without defaulting and validation.

Events expire an hour after their last write, as in a real cluster. `EventTTL` listens to the store; the create verb
removes expired events when the next event is created, so no timer is needed in virtual time."""

import random
from collections import deque
from dataclasses import dataclass, field
from typing import Final, Protocol

from msgspec import Struct

from numalign.simulator.apiserver.schemas.registry import Registry
from numalign.simulator.apiserver.storage import errors
from numalign.simulator.apiserver.storage.errors import StatusCause
from numalign.simulator.apiserver.storage.resources import EVENTS, Resource
from numalign.simulator.apiserver.storage.store import (
    EventKind,
    ObjectReader,
    Store,
    StoredObject,
    StoreEvent,
    StoreReader,
)
from numalign.simulator.clock import Clock
from numalign.simulator.trees import Tree

EVENT_TTL_SECONDS: Final = 3600.0


class EventTTL:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._deadlines: dict[str, float] = {}
        self._queue: deque[tuple[float, str]] = deque()

    def note(self, kind: EventKind, event: StoreEvent, tree: Tree, before: Tree | None) -> None:
        key = event.entry.key
        if kind == "DELETED":
            self._deadlines.pop(key, None)
            return
        deadline = self._clock.now() + EVENT_TTL_SECONDS
        self._deadlines[key] = deadline
        self._queue.append((deadline, key))

    def due(self) -> list[str]:
        """The keys of the events that have expired, each once."""
        now, found = self._clock.now(), []
        while self._queue and self._queue[0][0] <= now:
            deadline, key = self._queue.popleft()
            # A later write appends the key again, possibly with the same deadline.
            if self._deadlines.get(key) == deadline:
                del self._deadlines[key]
                found.append(key)
        return found


class Admission(Protocol):
    def prepare(self, resource: Resource, tree: Tree, old: Tree | None, lookup: ObjectReader) -> Tree:
        """Returns the object with its defaults. Raises StatusError; may change `tree`."""

    def errors(self, resource: Resource, tree: Tree, old: Tree | None) -> list[StatusCause]: ...


class NoAdmission:
    """Accepts every object unchanged."""

    def prepare(self, resource: Resource, tree: Tree, old: Tree | None, lookup: ObjectReader) -> Tree:
        return tree

    def errors(self, resource: Resource, tree: Tree, old: Tree | None) -> list[StatusCause]:
        return []


class WriteOptions(Struct, frozen=True):
    manager: str = ""
    dry_run: bool = False
    force: bool = False
    needs_version: bool = False
    """Whether kinds that require a resourceVersion in updates insist on it, as they do over HTTP."""
    applied: bool = False
    """Whether server-side apply has already updated managedFields."""


PLAIN: Final = WriteOptions()


@dataclass
class ServerState:
    clock: Clock
    chance: random.Random
    admission: Admission = field(default_factory=NoAdmission)
    store: Store = field(default_factory=Store)
    registry: Registry = field(default_factory=Registry)

    def __post_init__(self) -> None:
        self.lookup = StoreReader(self.store)
        self.expiry = EventTTL(self.clock)
        self.store.collection(EVENTS).listeners[self.expiry.note] = None

    def entry(self, resource: Resource, name: str, namespace: str) -> StoredObject:
        """Raises StatusError 404."""
        found = self.store.entry(resource, name, namespace)
        if found is None:
            raise errors.not_found(resource, name)
        return found
