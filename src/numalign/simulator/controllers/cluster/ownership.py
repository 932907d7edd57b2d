"""Who owns whom, over all objects of the cluster: the graph that the garbage collector reads.

`garbage` feeds it every change. It keeps of each object only what deletion looks at."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from numalign.simulator.apiserver.storage.resources import Resource
from numalign.simulator.apiserver.verbs.api import Change
from numalign.simulator.controllers.framework import owners
from numalign.simulator.controllers.framework.views import Key
from numalign.simulator.trees import Tree

DECISIVE: Final = ("uid", "ownerReferences", "finalizers", "deletionTimestamp")


@dataclass(frozen=True, slots=True)
class Item:
    uid: str
    resource: Resource
    key: Key
    owners: tuple[Tree, ...]
    finalizers: tuple[str, ...]
    is_deleting: bool

    def waits_for_dependents(self) -> bool:
        return self.is_deleting and "foregroundDeletion" in self.finalizers

    def blocks(self, owner: str) -> bool:
        """Whether the owner, deleted in the foreground, waits for this one."""
        return any(each["uid"] == owner and each.get("blockOwnerDeletion") for each in self.owners)

    def reference(self) -> Tree:
        """As much of the object as it takes to remove or patch it."""
        namespace = {"namespace": self.key[0]} if self.key[0] else {}
        return {"metadata": {"name": self.key[1], "uid": self.uid} | namespace}


def item(change: Change) -> Item:
    metadata = change.tree["metadata"]
    return Item(
        metadata["uid"],
        change.resource,
        change.key,
        tuple(owners.references(change.tree)),
        tuple(metadata.get("finalizers") or ()),
        bool(metadata.get("deletionTimestamp")),
    )


def is_unmoved(change: Change) -> bool:
    """Whether nothing changed that ownership looks at: of heartbeats, nothing ever does."""
    if change.kind != "MODIFIED" or change.old is None:
        return False
    before, after = change.old["metadata"], change.tree["metadata"]
    return all(before.get(name) == after.get(name) for name in DECISIVE)


class Graph:
    def __init__(self) -> None:
        self._items: dict[str, Item] = {}
        self._dependents: dict[str, dict[str, None]] = {}

    def __contains__(self, uid: str) -> bool:
        return uid in self._items

    def get(self, uid: str) -> Item | None:
        return self._items.get(uid)

    def dependents(self, uid: str) -> Iterator[Item]:
        return iter([self._items[each] for each in self._dependents.get(uid, ())])

    def put(self, new: Item) -> None:
        self._unlink(self._items.get(new.uid))
        self._items[new.uid] = new
        for owner in new.owners:
            self._dependents.setdefault(owner["uid"], {})[new.uid] = None

    def drop(self, uid: str) -> None:
        self._unlink(self._items.pop(uid, None))

    def _unlink(self, old: Item | None) -> None:
        for owner in old.owners if old is not None else ():
            group = self._dependents.get(owner["uid"], {})
            group.pop(old.uid if old is not None else "", None)
            if not group:
                self._dependents.pop(owner["uid"], None)
