"""Caches of all objects of a resource, with indexes by controller, namespace and node.

One `Views` per cluster subscribes once to each resource that a controller uses. Cached objects are shared and read
only. The API delivers a change before the write returns, so a view is never stale. Controllers therefore need no
expectations, unlike those of kube-controller-manager. `kept` lists the resources for namespace deletion and garbage
collection."""

from collections.abc import Callable, Iterator, Sequence

from numalign.simulator.apiserver.storage.resources import PODS, Resource
from numalign.simulator.apiserver.verbs.api import Api, Change, Handler, Subscription
from numalign.simulator.controllers.framework import owners, pods
from numalign.simulator.trees import Tree

Key = tuple[str, str]
"""Namespace and name; the namespace of cluster-scoped objects is empty."""


def key_of(tree: Tree) -> Key:
    return tree["metadata"].get("namespace", ""), tree["metadata"]["name"]


def full_name(tree: Tree) -> str:
    """namespace/name, as in messages."""
    return "/".join(filter(None, key_of(tree)))


class Index:
    """Objects by one property, in order of arrival."""

    def __init__(self, property_of: Callable[[Tree], str]) -> None:
        self._property_of = property_of
        self._groups: dict[str, dict[Key, Tree]] = {}

    def __getitem__(self, value: str) -> Sequence[Tree]:
        return list(self._groups.get(value, {}).values())

    def replace(self, key: Key, old: Tree | None, new: Tree | None) -> None:
        before = self._property_of(old) if old is not None else None
        after = self._property_of(new) if new is not None else None
        if before is not None and before != after:
            group = self._groups[before]
            del group[key]
            if not group:
                del self._groups[before]
        if after is not None and new is not None:
            self._groups.setdefault(after, {})[key] = new


class View:
    """All objects of one resource."""

    def __init__(self) -> None:
        self._objects: dict[Key, Tree] = {}
        self._by_controller = Index(_controller_or_stray)
        self._by_namespace = Index(lambda tree: key_of(tree)[0])
        self._by_node = Index(lambda tree: (tree.get("spec") or {}).get("nodeName") or "")
        self._unfinished = Index(lambda tree: "" if pods.is_finished(tree) else _controller_or_stray(tree))
        self._indexes = [self._by_controller, self._by_namespace]
        self.handlers: list[Handler] = []

    def is_of_pods(self) -> None:
        """Adds the indexes by node and of unfinished pods."""
        self._indexes += [self._by_node, self._unfinished]

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[Tree]:
        return iter(list(self._objects.values()))

    def get(self, key: Key) -> Tree | None:
        return self._objects.get(key)

    def owned_by(self, owner: Tree) -> Sequence[Tree]:
        """The objects that the owner controls."""
        return self._by_controller[owner["metadata"]["uid"]]

    def candidates_of(self, owner: Tree) -> Sequence[Tree]:
        """The objects that the owner controls, and those without a controller in its namespace."""
        return [*self.owned_by(owner), *self._by_controller[_stray(owner)]]

    def unfinished_of(self, owner: Tree) -> Sequence[Tree]:
        """The unfinished pods that the owner controls. An owner may have thousands of finished ones."""
        return self._unfinished[owner["metadata"]["uid"]]

    def unfinished_candidates_of(self, owner: Tree) -> Sequence[Tree]:
        return [*self.unfinished_of(owner), *self._unfinished[_stray(owner)]]

    def within(self, namespace: str) -> Sequence[Tree]:
        return self._by_namespace[namespace]

    def on_node(self, node: str) -> Sequence[Tree]:
        return self._by_node[node]

    def take(self, change: Change) -> None:
        old = self._objects.get(change.key)
        new = None if change.kind == "DELETED" else change.tree
        for index in self._indexes:
            index.replace(change.key, old, new)
        if new is None:
            self._objects.pop(change.key, None)
        else:
            self._objects[change.key] = new
        for handler in self.handlers:
            handler(change)


class Views:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._views: dict[Resource, View] = {}
        self._subscriptions: list[Subscription] = []

    def __getitem__(self, resource: Resource) -> View:
        if resource not in self._views:
            view = self._views[resource] = View()
            if resource is PODS:
                view.is_of_pods()
            self._subscriptions.append(self._api.subscribe(resource, view.take))
        return self._views[resource]

    def watch(self, resource: Resource, handler: Handler) -> None:
        """Calls the handler for every existing object, then for every change after the view has applied it."""
        view = self[resource]
        for tree in view:
            handler(Change("ADDED", resource, key_of(tree), tree, None, 0))
        view.handlers.append(handler)

    def listen(self, resource: Resource, handler: Handler) -> None:
        """Calls the handler for every change, without caching the objects."""
        self._subscriptions.append(self._api.subscribe(resource, handler))

    def close(self) -> None:
        """Ends all subscriptions."""
        for subscription in self._subscriptions:
            subscription.cancel()
        self._subscriptions.clear()
        self._views.clear()


def _stray(tree: Tree) -> str:
    return "/" + key_of(tree)[0]


def _controller_or_stray(tree: Tree) -> str:
    return owners.controller_uid(tree) or _stray(tree)


def kept(api: Api) -> Sequence[Resource]:
    """One resource per stored kind, whichever versions serve it."""
    homes: dict[tuple[str, str], Resource] = {}
    for resource in api.state.registry:
        if "list" in resource.verbs:
            homes.setdefault(resource.group_resource, resource)
    return list(homes.values())
