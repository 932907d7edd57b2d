"""What the controllers see: every object of a resource, by name and by the questions that are asked about it.

One `Views` per cluster subscribes once to each resource that anybody asks for. The trees are those of the changes, read
only and shared. Since the API delivers a change before the write returns, a view is never behind: that is why the
controllers here need none of the expectations that their models keep against stale caches.

Everything that the server keeps at this moment, custom resources included.

Namespaces are emptied and garbage is collected over all of it.
"""

from collections.abc import Callable, Iterator, Sequence

from numalign.simulator.apiserver.storage.resources import PODS, Resource
from numalign.simulator.apiserver.verbs.api import Api, Change, Handler, Subscription
from numalign.simulator.controllers.framework import owners
from numalign.simulator.controllers.workloads import pods
from numalign.simulator.trees import Tree

Key = tuple[str, str]
"""Namespace and name; the namespace is empty where there is none."""


def key_of(tree: Tree) -> Key:
    return tree["metadata"].get("namespace", ""), tree["metadata"]["name"]


def full_name(tree: Tree) -> str:
    """namespace/name, as messages write it."""
    return "/".join(filter(None, key_of(tree)))


class Index:
    """Objects by one of their properties, each group in the order in which they came."""

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
        """Asked what is on a node, and what of an owner's is not over yet."""
        self._indexes += [self._by_node, self._unfinished]

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[Tree]:
        return iter(list(self._objects.values()))

    def get(self, key: Key) -> Tree | None:
        return self._objects.get(key)

    def owned_by(self, owner: Tree) -> Sequence[Tree]:
        """What the owner controls."""
        return self._by_controller[owner["metadata"]["uid"]]

    def candidates_of(self, owner: Tree) -> Sequence[Tree]:
        """What the owner controls, and what nobody does in its namespace."""
        return [*self.owned_by(owner), *self._by_controller[_stray(owner)]]

    def unfinished_of(self, owner: Tree) -> Sequence[Tree]:
        """Of what the owner controls, the pods that run or may: there can be thousands that are over."""
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
        """The handler hears of every object that is there, then of every change, after the view has it."""
        view = self[resource]
        for tree in view:
            handler(Change("ADDED", resource, key_of(tree), tree, None, 0))
        view.handlers.append(handler)

    def listen(self, resource: Resource, handler: Handler) -> None:
        """The same without a view: for what is many and of which nobody asks anything."""
        self._subscriptions.append(self._api.subscribe(resource, handler))

    def close(self) -> None:
        """No handler hears of anything any more."""
        for subscription in self._subscriptions:
            subscription.cancel()
        self._subscriptions.clear()
        self._views.clear()


def _stray(tree: Tree) -> str:
    return "/" + key_of(tree)[0]


def _controller_or_stray(tree: Tree) -> str:
    return owners.controller_uid(tree) or _stray(tree)


def kept(api: Api) -> Sequence[Resource]:
    """One resource for each set of objects, however many versions show it."""
    homes: dict[tuple[str, str], Resource] = {}
    for resource in api.state.registry:
        if "list" in resource.verbs:
            homes.setdefault(resource.home, resource)
    return list(homes.values())
