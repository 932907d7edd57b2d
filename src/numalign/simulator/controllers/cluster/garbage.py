"""Garbage collection of owned objects, and of pods.

`GarbageCollector` deletes objects whose owners are all gone: after the owner (background), before it (foreground), or
never (orphan). `OwnerGraph` holds the owner references of all objects and is always current, so an owner that it does
not know does not exist. References to kinds that the server does not serve are ignored.

`PodGarbageCollector` deletes finished pods above a threshold, pods of nodes that have been gone for 40 s, and deleted
pods that were never bound. It runs every 20 s, like the pod garbage collector of kube-controller-manager."""

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from numalign.simulator.apiserver.storage.resources import CUSTOMRESOURCEDEFINITIONS, EVENTS, NODES, PODS, Resource
from numalign.simulator.apiserver.verbs.api import Change
from numalign.simulator.controllers.framework import conditions, owners, pods, views
from numalign.simulator.controllers.framework.actions import Action, Delete, MergePatch, Requeue
from numalign.simulator.controllers.framework.runner import ControllerContext
from numalign.simulator.controllers.framework.views import Key
from numalign.simulator.trees import Tree

DECISIVE: Final = ("uid", "ownerReferences", "finalizers", "deletionTimestamp")


@dataclass(frozen=True, slots=True)
class OwnedObject:
    uid: str
    resource: Resource
    key: Key
    owners: tuple[Tree, ...]
    finalizers: tuple[str, ...]
    is_deleting: bool

    def waits_for_dependents(self) -> bool:
        return self.is_deleting and "foregroundDeletion" in self.finalizers

    def blocks(self, owner: str) -> bool:
        """Whether the foreground deletion of the owner waits for this object."""
        return any(each["uid"] == owner and each.get("blockOwnerDeletion") for each in self.owners)

    def reference(self) -> Tree:
        """The fields of the object that a delete or a patch needs."""
        namespace = {"namespace": self.key[0]} if self.key[0] else {}
        return {"metadata": {"name": self.key[1], "uid": self.uid} | namespace}


def item(change: Change) -> OwnedObject:
    metadata = change.tree["metadata"]
    return OwnedObject(
        metadata["uid"],
        change.resource,
        change.key,
        tuple(owners.references(change.tree)),
        tuple(metadata.get("finalizers") or ()),
        bool(metadata.get("deletionTimestamp")),
    )


def is_unmoved(change: Change) -> bool:
    """Whether the change leaves ownership as it was. Heartbeats always do."""
    if change.kind != "MODIFIED" or change.old is None:
        return False
    before, after = change.old["metadata"], change.tree["metadata"]
    return all(before.get(name) == after.get(name) for name in DECISIVE)


class OwnerGraph:
    def __init__(self) -> None:
        self._items: dict[str, OwnedObject] = {}
        self._dependents: dict[str, dict[str, None]] = {}

    def __contains__(self, uid: str) -> bool:
        return uid in self._items

    def get(self, uid: str) -> OwnedObject | None:
        return self._items.get(uid)

    def dependents(self, uid: str) -> Iterator[OwnedObject]:
        return iter([self._items[each] for each in self._dependents.get(uid, ())])

    def put(self, new: OwnedObject) -> None:
        self._unlink(self._items.get(new.uid))
        self._items[new.uid] = new
        for owner in new.owners:
            self._dependents.setdefault(owner["uid"], {})[new.uid] = None

    def drop(self, uid: str) -> None:
        self._unlink(self._items.pop(uid, None))

    def _unlink(self, old: OwnedObject | None) -> None:
        for owner in old.owners if old is not None else ():
            group = self._dependents.get(owner["uid"], {})
            group.pop(old.uid if old is not None else "", None)
            if not group:
                self._dependents.pop(owner["uid"], None)


FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"
Serves = Callable[[Tree], bool]
"""Whether the server serves the kind of an owner reference."""


class GarbageCollector:
    """Keys are ("", uid)."""

    name = "garbage-collector-controller"

    def setup(self, context: ControllerContext) -> None:
        self._context = context
        self._graph = OwnerGraph()
        self._seen: set[Resource] = set()
        self._watch_all()
        context.views.watch(CUSTOMRESOURCEDEFINITIONS, lambda change: context.enqueue(("kinds", "")))

    def _watch_all(self) -> None:
        # Events own no objects and have no owners.
        for resource in views.kept(self._context.api):
            if resource not in self._seen and resource != EVENTS:
                self._seen.add(resource)
                self._context.views.listen(resource, self._changed)

    def _changed(self, change: Change) -> None:
        if is_unmoved(change):
            return
        new = item(change)
        if change.kind == "DELETED":
            self._graph.drop(new.uid)
        else:
            self._graph.put(new)
        self._note(change, new)

    def _note(self, change: Change, new: OwnedObject) -> None:
        if change.kind != "DELETED" and (new.owners or new.is_deleting):
            self._context.enqueue(("", new.uid))
        if change.kind == "DELETED" or new.is_deleting:
            for each in self._graph.dependents(new.uid):
                self._context.enqueue(("", each.uid))
            for owner in new.owners:
                self._context.enqueue(("", owner["uid"]))

    def reconcile(self, key: Key) -> Iterable[Action]:
        self._watch_all()
        found = self._graph.get(key[1])
        return reconcile(found, self._graph, self._serves) if found is not None else []

    def _serves(self, reference: Tree) -> bool:
        group, _, version = reference["apiVersion"].rpartition("/")
        return self._context.api.state.registry.of_kind(group, version, reference["kind"]) is not None


def reconcile(item: OwnedObject, graph: OwnerGraph, serves: Serves) -> list[Action]:
    if item.is_deleting and ORPHAN in item.finalizers:
        return [*(_without_owners(each, {item.uid}) for each in graph.dependents(item.uid)), _finalized(item, ORPHAN)]
    if item.waits_for_dependents():
        held = any(each.blocks(item.uid) for each in graph.dependents(item.uid))
        return [] if held else [_finalized(item, FOREGROUND)]
    if item.is_deleting or not item.owners:
        return []
    return _collected(item, graph, serves)


def _collected(item: OwnedObject, graph: OwnerGraph, serves: Serves) -> list[Action]:
    gone = {each["uid"] for each in item.owners if each["uid"] not in graph and serves(each)}
    known = {each["uid"]: graph.get(each["uid"]) for each in item.owners}
    waiting = {uid for uid, owner in known.items() if owner is not None and owner.waits_for_dependents()}
    if len(gone | waiting) < len(known):
        return [_without_owners(item, gone | waiting)] if gone or waiting else []
    if waiting and any(graph.dependents(item.uid)):
        return [Delete(item.resource, item.reference(), propagation="Foreground")]
    return [Delete(item.resource, item.reference(), propagation=_propagation(item))]


def _propagation(item: OwnedObject) -> str:
    if ORPHAN in item.finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in item.finalizers else "Background"


def _without_owners(item: OwnedObject, uids: set[str]) -> Action:
    left = [each for each in item.owners if each["uid"] not in uids]
    body = {"metadata": {"uid": item.uid, "ownerReferences": left or None}}
    return MergePatch(item.resource, item.reference(), body)


def _finalized(item: OwnedObject, finalizer: str) -> Action:
    left = [each for each in item.finalizers if each != finalizer]
    return MergePatch(item.resource, item.reference(), {"metadata": {"uid": item.uid, "finalizers": left or None}})


PERIOD: Final = 20.0
QUARANTINE: Final = 40.0
THRESHOLD: Final = 12_500
"""Number of finished pods that are kept."""
EVERY_POD: Final = ("", "")


class PodGarbageCollector:
    name = "pod-garbage-collector-controller"

    def __init__(self, threshold: int = THRESHOLD) -> None:
        self._threshold = threshold
        self._missing: dict[str, float] = {}

    def setup(self, context: ControllerContext) -> None:
        self._context = context
        context.enqueue(EVERY_POD)

    def reconcile(self, key: Key) -> Iterable[Action]:
        views, clock = self._context.views, self._context.api.clock
        every = list(views[PODS])
        gone = self._gone(every, clock.now())
        return [*collect_pods(every, gone, self._threshold, clock.wall()), Requeue(PERIOD)]

    def _gone(self, every: Sequence[Tree], now: float) -> set[str]:
        named = {pod["spec"].get("nodeName") for pod in every}
        missing = {name for name in named if name and self._context.views[NODES].get(("", name)) is None}
        self._missing = {name: self._missing.get(name, now) for name in sorted(missing)}
        return {name for name, since in self._missing.items() if now - since >= QUARANTINE}


def collect_pods(every: Sequence[Tree], gone: Set[str], threshold: int, now: datetime) -> list[Action]:
    finished = sorted(filter(pods.is_finished, every), key=_expendable)
    surplus = finished[: max(0, len(finished) - threshold)] if threshold > 0 else []
    orphaned = [pod for pod in every if pod["spec"].get("nodeName") in gone]
    unborn = [pod for pod in every if pods.is_terminating(pod) and not pod["spec"].get("nodeName")]
    reason = conditions.made("DisruptionTarget", "True", "DeletionByPodGC", "PodGC: node no longer exists")
    return [
        *(action for pod in surplus for action in _removed(pod, None, now)),
        *(action for pod in orphaned for action in _removed(pod, reason, now)),
        *(action for pod in unborn for action in _removed(pod, None, now)),
    ]


def _expendable(pod: Tree) -> tuple[bool, str, str]:
    metadata, status = pod["metadata"], pod.get("status") or {}
    return status.get("reason") != "Evicted", metadata.get("creationTimestamp") or "", metadata["name"]


def _removed(pod: Tree, reason: Tree | None, now: datetime) -> list[Action]:
    """No kubelet reports the end of this pod, so the controller sets its phase."""
    failed: list[Action] = []
    if not pods.is_finished(pod):
        listed = conditions.listed(pod)
        status = {"phase": "Failed", "conditions": conditions.put(listed, reason, now) if reason else listed}
        failed.append(MergePatch(PODS, pod, {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}, "status"))
    return [*failed, Delete(PODS, pod, grace=0)]
