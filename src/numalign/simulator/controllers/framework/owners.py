"""Owner references, and the adoption and release of children by controllers.

Workload controllers call `claimed` first in every reconciliation. The garbage collector reads references itself."""

from collections.abc import Iterable, Sequence

from numalign.simulator.apiserver.storage.resources import Resource
from numalign.simulator.controllers.framework import matching
from numalign.simulator.controllers.framework.actions import Action, MergePatch
from numalign.simulator.trees import Tree


def references(tree: Tree) -> list[Tree]:
    return tree["metadata"].get("ownerReferences") or []


def controller(tree: Tree) -> Tree | None:
    """The owner reference with `controller: true`."""
    return next((each for each in references(tree) if each.get("controller")), None)


def controller_uid(tree: Tree) -> str:
    found = controller(tree)
    return found["uid"] if found else ""


def reference(resource: Resource, owner: Tree) -> Tree:
    """A controller reference with blockOwnerDeletion."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def claimed(resource: Resource, owner: Tree, children: Resource, candidates: Iterable[Tree]) -> list[Action]:
    """Adopts matching objects without a controller, and releases children that the selector no longer matches."""
    if owner["metadata"].get("deletionTimestamp"):
        return []
    uid, selects = owner["metadata"]["uid"], matching.selector(owner["spec"].get("selector"))
    actions: list[Action] = []
    for child in candidates:
        matches = selects(child["metadata"].get("labels") or {})
        held = controller_uid(child)
        if not held and matches and not child["metadata"].get("deletionTimestamp"):
            actions.append(_refer(children, child, [*references(child), reference(resource, owner)]))
        elif held == uid and not matches:
            actions.append(_refer(children, child, [each for each in references(child) if each["uid"] != uid]))
    return actions


def _refer(resource: Resource, child: Tree, owners: Sequence[Tree]) -> Action:
    # The patch carries uid and resourceVersion, so it fails if another controller adopted the object meanwhile.
    precondition = {key: child["metadata"][key] for key in ("uid", "resourceVersion")}
    return MergePatch(resource, child, {"metadata": precondition | {"ownerReferences": list(owners)}})
