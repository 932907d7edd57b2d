"""Actions that controllers return, as data.

`runner.ActionPerformer` performs them in order. A tree in an action may share parts with cached objects: it is never
modified."""

from typing import Literal

from msgspec import Struct

from numalign.simulator.apiserver.storage.resources import Resource
from numalign.simulator.apiserver.verbs.patch import PatchKind
from numalign.simulator.trees import Tree

EventType = Literal["Normal", "Warning"]


class Create(Struct, frozen=True):
    """Creates an object. Success and failure are recorded as events of `owner`. After a failure, the remaining actions
    of the list are not performed."""

    resource: Resource
    tree: Tree
    owner: Tree | None = None


class Update(Struct, frozen=True):
    """Updates an object, with the observed resourceVersion as precondition."""

    resource: Resource
    tree: Tree
    part: str = ""


class MergePatch(Struct, frozen=True):
    """Patches fields of an object, without a precondition on its version."""

    resource: Resource
    target: Tree
    body: Tree
    part: str = ""
    kind: PatchKind = "merge"


class Delete(Struct, frozen=True):
    """Deletes the observed object, with its uid as precondition. An object that is already gone is not an error."""

    resource: Resource
    target: Tree
    owner: Tree | None = None
    grace: int | None = None
    propagation: str = ""


class RecordEvent(Struct, frozen=True):
    """Records an event about an object."""

    regarding: Tree
    reason: str
    message: str
    event_type: EventType = "Normal"


class Requeue(Struct, frozen=True):
    """Reconciles the same object again after this many seconds."""

    seconds: float


Action = Create | Update | MergePatch | Delete | RecordEvent | Requeue


def status(resource: Resource, tree: Tree, wanted: Tree) -> list[Action]:
    """The write that sets the object's status; none if the status is equal."""
    return [] if tree.get("status", {}) == wanted else [Update(resource, {**tree, "status": wanted}, "status")]
