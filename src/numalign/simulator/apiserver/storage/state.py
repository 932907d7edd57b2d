"""What the verbs work on: the objects, the resources that are served, time, chance, and admission.

`api.Api` makes one `State`; every module of verbs takes it first. Admission is a seam, so that tests of the verbs can
run without the rules of any kind."""

import random
from dataclasses import dataclass, field
from typing import Final, Protocol

from msgspec import Struct

from numalign.simulator import trees
from numalign.simulator.apiserver.storage import errors as refusals
from numalign.simulator.apiserver.storage.errors import Cause
from numalign.simulator.apiserver.storage.registry import Registry
from numalign.simulator.apiserver.storage.resources import EVENTS, Resource
from numalign.simulator.apiserver.storage.ring import Entry
from numalign.simulator.apiserver.storage.store import Store
from numalign.simulator.apiserver.verbs.expire import Expiry
from numalign.simulator.clock import Clock
from numalign.simulator.trees import Tree


class Lookup(Protocol):
    """How admission reads other objects: one by name, or None; or all of a resource. READ ONLY."""

    def __call__(self, resource: Resource, name: str, namespace: str = "") -> Tree | None: ...

    def all(self, resource: Resource) -> list[Tree]: ...


class Admission(Protocol):
    def prepare(self, resource: Resource, tree: Tree, old: Tree | None, lookup: Lookup) -> Tree:
        """With defaults filled in; raises StatusError. May change `tree`."""

    def errors(self, resource: Resource, tree: Tree, old: Tree | None) -> list[Cause]: ...


class NoAdmission:
    """Everything is welcome as it is."""

    def prepare(self, resource: Resource, tree: Tree, old: Tree | None, lookup: Lookup) -> Tree:
        return tree

    def errors(self, resource: Resource, tree: Tree, old: Tree | None) -> list[Cause]:
        return []


class WriteOptions(Struct, frozen=True):
    manager: str = ""
    dry_run: bool = False
    force: bool = False
    needs_version: bool = False
    """Whether kinds that want to be told which version is replaced insist on it, as they do over HTTP."""
    applied: bool = False
    """Whether server-side apply has kept the books of ownership already."""


PLAIN: Final = WriteOptions()
REMEMBERED: Final = 1000


@dataclass
class State:
    clock: Clock
    chance: random.Random
    admission: Admission = field(default_factory=NoAdmission)
    store: Store = field(default_factory=Store)
    registry: Registry = field(default_factory=Registry)

    def __post_init__(self) -> None:
        self.lookup = _Reader(self.store)
        self.expiry = Expiry(self.clock)
        self.store.shelf(EVENTS).listeners[self.expiry.note] = None

    def entry(self, resource: Resource, name: str, namespace: str) -> Entry:
        """Raises StatusError 404."""
        found = self.store.entry(resource, name, namespace)
        if found is None:
            raise refusals.not_found(resource, name)
        return found


class _Reader:
    """Remembers what it decoded: most lookups are of the same few namespaces, accounts and classes."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._decoded: dict[bytes, Tree] = {}
        self._all: dict[tuple[str, str], tuple[int, list[Tree]]] = {}

    def __call__(self, resource: Resource, name: str, namespace: str = "") -> Tree | None:
        found = self._store.entry(resource, name, namespace)
        if found is None:
            return None
        tree = self._decoded.get(found.data)
        if tree is None:
            if len(self._decoded) >= REMEMBERED:
                self._decoded.clear()
            tree = self._decoded[found.data] = trees.decoded(found.data)
        return tree

    def all(self, resource: Resource) -> list[Tree]:
        shelf = self._store.shelf(resource)
        version, found = self._all.get(resource.home, (-1, []))
        if version != shelf.version:
            found = [trees.decoded(entry.data) for entry in shelf.within("")]
            self._all[resource.home] = (shelf.version, found)
        return found
