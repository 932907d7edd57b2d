"""Custom resources: from a definition to a resource that is served, and its objects held to their schema.

Definitions take effect in the write that stores them: there is no moment at which one is accepted but not yet
established. The listener that `follower` makes keeps the registry in step with the store."""

from numalign.simulator import trees
from numalign.simulator.apiserver.schemas import crdchecks, crds, structural
from numalign.simulator.apiserver.storage.errors import Cause
from numalign.simulator.apiserver.storage.registry import Registry
from numalign.simulator.apiserver.storage.resources import Resource
from numalign.simulator.apiserver.storage.ring import Event, EventKind
from numalign.simulator.apiserver.storage.state import State
from numalign.simulator.apiserver.storage.store import Listener
from numalign.simulator.trees import Tree


def completed(tree: Tree, old: Tree | None, now: str) -> tuple[Tree, list[Cause]]:
    """A definition with everything filled in, and what is wrong with it."""
    made = crds.completed(tree, old, now)
    return made, list(crdchecks.errors(made))


def fitted(registry: Registry, resource: Resource, tree: Tree) -> tuple[Tree, list[Cause]]:
    """An object without the fields that its schema does not know and with its defaults, and what is wrong with it."""
    schema = registry.schema(resource)
    return (tree, []) if schema is None else structural.fitted(schema, tree)


def follower(state: State) -> Listener:
    def follow(kind: EventKind, event: Event, tree: Tree, before: Tree | None) -> None:
        home = (trees.text(tree, "spec", "group"), trees.text(tree, "spec", "names", "plural"))
        state.registry.define(home, () if kind == "DELETED" else crds.resources(tree))

    return follow


def forget_objects(state: State, definition: Tree) -> None:
    """All objects of a definition that goes."""
    group, plural = trees.text(definition, "spec", "group"), trees.text(definition, "spec", "names", "plural")
    resource = next((each for each in state.registry if each.home == (group, plural)), None)
    if resource is None:
        return
    for entry in list(state.store.shelf(resource).within("")):
        state.store.remove(resource, trees.decoded(entry.data), entry, trees.decoded(entry.data))
