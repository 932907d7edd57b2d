"""Garbage: what is owned only by objects that are gone goes too.

In the background after its owner, in the foreground before it, or never when the owner leaves orphans. The graph here
is never behind, so an owner that it does not know does not exist; one of a kind that is not served is left in peace."""

from collections.abc import Callable, Iterable
from typing import Final

from numalign.simulator.apiserver.storage.resources import CUSTOMRESOURCEDEFINITIONS, EVENTS, Resource
from numalign.simulator.apiserver.verbs.api import Change
from numalign.simulator.controllers.cluster import ownership
from numalign.simulator.controllers.cluster.ownership import Graph, Item
from numalign.simulator.controllers.framework import views
from numalign.simulator.controllers.framework.actions import Action, Merge, Remove
from numalign.simulator.controllers.framework.runner import Desk
from numalign.simulator.controllers.framework.views import Key
from numalign.simulator.trees import Tree

FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"
Serves = Callable[[Tree], bool]
"""Whether the kind of an owner reference is one that the server has."""


class Garbage:
    """Keys are uids: ("", uid)."""

    name = "garbage-collector-controller"

    def sit(self, desk: Desk) -> None:
        self._desk = desk
        self._graph = Graph()
        self._seen: set[Resource] = set()
        self._watch_all()
        desk.views.watch(CUSTOMRESOURCEDEFINITIONS, lambda change: desk.note(("kinds", "")))

    def _watch_all(self) -> None:
        # Events own nothing and are owned by nothing.
        for resource in views.kept(self._desk.api):
            if resource not in self._seen and resource != EVENTS:
                self._seen.add(resource)
                self._desk.views.listen(resource, self._changed)

    def _changed(self, change: Change) -> None:
        if ownership.is_unmoved(change):
            return
        new = ownership.item(change)
        if change.kind == "DELETED":
            self._graph.drop(new.uid)
        else:
            self._graph.put(new)
        self._note(change, new)

    def _note(self, change: Change, new: Item) -> None:
        if change.kind != "DELETED" and (new.owners or new.is_deleting):
            self._desk.note(("", new.uid))
        if change.kind == "DELETED" or new.is_deleting:
            for each in self._graph.dependents(new.uid):
                self._desk.note(("", each.uid))
            for owner in new.owners:
                self._desk.note(("", owner["uid"]))

    def look(self, key: Key) -> Iterable[Action]:
        self._watch_all()
        found = self._graph.get(key[1])
        return reconcile(found, self._graph, self._serves) if found is not None else []

    def _serves(self, reference: Tree) -> bool:
        group, _, version = reference["apiVersion"].rpartition("/")
        return self._desk.api.state.registry.of_kind(group, version, reference["kind"]) is not None


def reconcile(item: Item, graph: Graph, serves: Serves) -> list[Action]:
    if item.is_deleting and ORPHAN in item.finalizers:
        return [*(_without_owners(each, {item.uid}) for each in graph.dependents(item.uid)), _finalized(item, ORPHAN)]
    if item.waits_for_dependents():
        held = any(each.blocks(item.uid) for each in graph.dependents(item.uid))
        return [] if held else [_finalized(item, FOREGROUND)]
    if item.is_deleting or not item.owners:
        return []
    return _collected(item, graph, serves)


def _collected(item: Item, graph: Graph, serves: Serves) -> list[Action]:
    gone = {each["uid"] for each in item.owners if each["uid"] not in graph and serves(each)}
    known = {each["uid"]: graph.get(each["uid"]) for each in item.owners}
    waiting = {uid for uid, owner in known.items() if owner is not None and owner.waits_for_dependents()}
    if len(gone | waiting) < len(known):
        return [_without_owners(item, gone | waiting)] if gone or waiting else []
    if waiting and any(graph.dependents(item.uid)):
        return [Remove(item.resource, item.reference(), propagation="Foreground")]
    return [Remove(item.resource, item.reference(), propagation=_propagation(item))]


def _propagation(item: Item) -> str:
    if ORPHAN in item.finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in item.finalizers else "Background"


def _without_owners(item: Item, uids: set[str]) -> Action:
    left = [each for each in item.owners if each["uid"] not in uids]
    body = {"metadata": {"uid": item.uid, "ownerReferences": left or None}}
    return Merge(item.resource, item.reference(), body)


def _finalized(item: Item, finalizer: str) -> Action:
    left = [each for each in item.finalizers if each != finalizer]
    return Merge(item.resource, item.reference(), {"metadata": {"uid": item.uid, "finalizers": left or None}})
