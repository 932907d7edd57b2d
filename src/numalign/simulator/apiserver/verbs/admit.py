"""From an object as a client wrote it to one that may be kept: defaults, rules of its kind, schema of a custom one.

`creating` and `updating` call `admitted` with the object complete but for its version. Built-in kinds go through
admission, custom ones through the schema of their definition, definitions themselves through `customs`."""

from numalign.simulator.apiserver.schemas import causes
from numalign.simulator.apiserver.storage import customs, errors
from numalign.simulator.apiserver.storage.errors import Cause
from numalign.simulator.apiserver.storage.resources import CUSTOMRESOURCEDEFINITIONS, Resource
from numalign.simulator.apiserver.storage.state import State
from numalign.simulator.apiserver.verbs import show
from numalign.simulator.trees import Tree


def admitted(state: State, resource: Resource, tree: Tree, old: Tree | None, part: str = "") -> Tree:
    """Raises StatusError where a rule is broken. The statuses of built-in kinds are not checked."""
    problems = finalizer_errors(tree, old)
    if resource is CUSTOMRESOURCEDEFINITIONS and not part:
        tree, found = customs.completed(tree, old, state.clock.rfc3339())
        problems += found
    elif resource.custom:
        tree, found = customs.fitted(state.registry, resource, tree)
        problems += found
    if not part:
        tree = state.admission.prepare(show.home(resource), tree, old, state.lookup)
        problems += state.admission.errors(show.home(resource), tree, old)
    if problems:
        raise errors.invalid(resource, tree["metadata"].get("name", ""), problems)
    return tree


def finalizer_errors(tree: Tree, old: Tree | None) -> list[Cause]:
    """An object that is being deleted takes no new finalizers."""
    if old is None or "deletionTimestamp" not in old["metadata"]:
        return []
    known = old["metadata"].get("finalizers") or ()
    new = [name for name in tree["metadata"].get("finalizers") or () if name not in known]
    if not new:
        return []
    listed = ", ".join(f'"{name}"' for name in new)
    why = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}"
    return [causes.forbidden("metadata.finalizers", why)]
