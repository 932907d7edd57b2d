"""What a controller wants done, as data: the only thing that a `wanted` function gives back.

`performing` carries them out in order. A tree in here may share parts with trees that are read only: whoever performs
it writes it out and changes nothing."""

from typing import Literal

from msgspec import Struct

from numalign.simulator.apiserver.storage.resources import Resource
from numalign.simulator.apiserver.verbs.patch import PatchKind
from numalign.simulator.trees import Tree

EventType = Literal["Normal", "Warning"]


class Create(Struct, frozen=True):
    """`owner` is told in an event whether it worked; the actions after a failed one are left for another time."""

    resource: Resource
    tree: Tree
    owner: Tree | None = None


class Update(Struct, frozen=True):
    """Only if nobody has changed the object since it was observed."""

    resource: Resource
    tree: Tree
    part: str = ""


class MergePatch(Struct, frozen=True):
    """Part of an object, whatever the rest of it has become meanwhile."""

    resource: Resource
    target: Tree
    body: Tree
    part: str = ""
    kind: PatchKind = "merge"


class Delete(Struct, frozen=True):
    """The very object that was observed, by its uid; one that is gone is as good."""

    resource: Resource
    target: Tree
    owner: Tree | None = None
    grace: int | None = None
    propagation: str = ""


class RecordEvent(Struct, frozen=True):
    """An event about an object, for people."""

    regarding: Tree
    reason: str
    message: str
    gravity: EventType = "Normal"


class Requeue(Struct, frozen=True):
    """Look at the same object once more after so many seconds, even if nothing happens."""

    seconds: float


Action = Create | Update | MergePatch | Delete | RecordEvent | Requeue


def status(resource: Resource, tree: Tree, wanted: Tree) -> list[Action]:
    """The write that gives the object this status; none if it has it."""
    return [] if tree.get("status", {}) == wanted else [Update(resource, {**tree, "status": wanted}, "status")]
