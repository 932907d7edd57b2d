"""Carries out what a controller wants, one action after the other, over the API.

`runner` calls `perform` after every look at an object. The first action that the API refuses ends the list: the
controller will look again and want what is left. Only refusals that cure themselves are passed over."""

from collections.abc import Iterable

from numalign.simulator import trees
from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.verbs.api import Api, Patch
from numalign.simulator.controllers.framework.actions import Action, Again, Create, Merge, Note, Remove, Update
from numalign.simulator.controllers.framework.events import Recorder
from numalign.simulator.trees import Tree


class Performer:
    def __init__(self, api: Api, recorder: Recorder) -> None:
        self._api = api
        self._recorder = recorder
        self.refused: dict[str, str] = {}
        """By the owner's uid: why its last child was not created."""

    def perform(self, actions: Iterable[Action]) -> float | None:
        """Seconds after which to look again, if anybody asked for it; raises what the API refuses."""
        soonest: float | None = None
        for action in actions:
            match action:
                case Create():
                    self._create(action)
                case Remove():
                    self._remove(action)
                case Again(seconds):
                    soonest = seconds if soonest is None else min(soonest, seconds)
                case _:
                    self._write(action)
        return soonest

    def _write(self, action: Update | Merge | Note) -> None:
        match action:
            case Update(resource, tree, part):
                self._api.update(resource, tree, part=part)
            case Merge(resource, target, body, part, kind):
                # The server may build the new object of parts of the patch, which everybody else reads too.
                name, namespace = target["metadata"]["name"], target["metadata"].get("namespace", "")
                self._api.patch(resource, name, namespace, Patch(kind, trees.copied(body)), part=part)
            case Note(regarding, reason, message, gravity):
                self._recorder.record(regarding, gravity, reason, message)

    def _create(self, action: Create) -> None:
        owner = action.owner
        try:
            created = self._api.create(action.resource, action.tree)
        except StatusError as refusal:
            if owner is not None and not _is_namespace_ending(refusal):
                self.refused[owner["metadata"]["uid"]] = refusal.message
                self._recorder.record(owner, "Warning", "FailedCreate", f"Error creating: {refusal.message}")
            raise
        if owner is not None:
            self.refused.pop(owner["metadata"]["uid"], None)
            self._tell(owner, "SuccessfulCreate", f"Created {action.resource.singular}: {created['metadata']['name']}")

    def _remove(self, action: Remove) -> None:
        metadata = action.target["metadata"]
        try:
            self._api.delete(
                action.resource,
                metadata["name"],
                metadata.get("namespace", ""),
                uid=metadata["uid"],
                grace=action.grace,
                propagation=action.propagation,
            )
        except StatusError as refusal:
            # Gone already, or another object of that name by now: nothing is left to remove.
            if refusal.code == 404 or (refusal.code == 409 and "uid" in refusal.message.lower()):
                return
            if action.owner is not None:
                self._recorder.record(action.owner, "Warning", "FailedDelete", f"Error deleting: {refusal.message}")
            raise
        if action.owner is not None:
            self._tell(action.owner, "SuccessfulDelete", f"Deleted {action.resource.singular}: {metadata['name']}")

    def _tell(self, owner: Tree, reason: str, message: str) -> None:
        self._recorder.record(owner, "Normal", reason, message)


def _is_namespace_ending(refusal: StatusError) -> bool:
    return refusal.code == 403 and "being terminated" in refusal.message
