"""Deletes objects: at once, after their finalizers, or for pods after the grace period.

`Api`, the HTTP layer and evictions call `delete_object`, which marks or removes one object. The propagation policy only
sets a finalizer, which the garbage collector removes when it has handled the dependents."""

from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from numalign.simulator import clock, trees
from numalign.simulator.apiserver.storage import errors
from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import CUSTOMRESOURCEDEFINITIONS, NAMESPACES, PODS, Resource
from numalign.simulator.apiserver.storage.store import StoredObject, encode_object
from numalign.simulator.apiserver.verbs import strategy, update
from numalign.simulator.apiserver.verbs.state import ServerState
from numalign.simulator.trees import Tree

ORPHAN: Final = "orphan"
FOREGROUND: Final = "foregroundDeletion"
BY_POLICY: Final = {"Orphan": [ORPHAN], "Foreground": [FOREGROUND], "Background": []}
PROTECTED_NAMESPACES: Final = frozenset({"default", "kube-system", "kube-public"})
ENDED: Final = ("Succeeded", "Failed")


class DeleteOptions(Struct, frozen=True):
    grace: int | None = None
    uid: str = ""
    version: str = ""
    propagation: str = ""
    dry_run: bool = False


class DeleteResult(Struct, frozen=True):
    """The object as it is now or its last state, and whether it is gone."""

    entry: StoredObject
    is_gone: bool


def delete_object(
    state: ServerState, resource: Resource, name: str, namespace: str, options: DeleteOptions
) -> DeleteResult:
    entry = state.entry(resource, name, namespace)
    old = trees.decoded(entry.data)
    check_preconditions(resource, entry, old, options)
    new = _marked(state, resource, old, options)
    if not update.is_finished(resource, new):
        return DeleteResult(_kept(state, resource, entry, old, new, options), is_gone=False)
    shown = encode_object(resource, new, 0)
    if not options.dry_run:
        _remove(state, resource, entry, old, new)
    return DeleteResult(shown, is_gone=True)


def _remove(state: ServerState, resource: Resource, entry: StoredObject, old: Tree, new: Tree) -> None:
    """Emits the real server's events: for pods MODIFIED, then DELETED; for other kinds DELETED with the old state."""
    if resource is CUSTOMRESOURCEDEFINITIONS:
        strategy.remove_custom_objects(state, new)
    if resource is PODS and new != old:
        entry, old = state.store.commit(resource, new, entry, old), new
    last = new if resource is NAMESPACES else old
    state.store.remove(resource, last | {"metadata": dict(last["metadata"])}, entry, old)


def _kept(
    state: ServerState, resource: Resource, entry: StoredObject, old: Tree, new: Tree, options: DeleteOptions
) -> StoredObject:
    if new == old or options.dry_run:
        return encode_object(resource, new, 0)
    return state.store.commit(resource, new, entry, old)


def _marked(state: ServerState, resource: Resource, old: Tree, options: DeleteOptions) -> Tree:
    """The object with its deletion timestamp; `old` is not changed."""
    before = old["metadata"]
    metadata = dict(before)
    metadata["finalizers"] = _finalizers(before, options.propagation)
    if not metadata["finalizers"]:
        del metadata["finalizers"]
    new = old | {"metadata": metadata}
    if resource is NAMESPACES:
        new["status"] = (old.get("status") or {}) | {"phase": "Terminating"}
        metadata.setdefault("deletionTimestamp", state.clock.rfc3339())
        return new
    if "deletionTimestamp" in before:
        _shorten(metadata, options.grace)
    else:
        grace = _grace(old, options.grace) if resource is PODS else 0
        moment = clock.text(state.clock.wall() + timedelta(seconds=grace))
        metadata |= {"deletionTimestamp": moment, "deletionGracePeriodSeconds": grace}
        if "generation" in before:
            metadata["generation"] = before["generation"] + 1
    return new


def _grace(pod: Tree, asked: int | None) -> int:
    """The grace period in seconds: 0 for a pod that has no node or has ended."""
    spec = pod.get("spec") or {}
    if not spec.get("nodeName") or trees.text(pod, "status", "phase") in ENDED:
        return 0
    seconds = asked if asked is not None else int(spec.get("terminationGracePeriodSeconds") or 0)
    return seconds if seconds >= 0 else 1


def _shorten(metadata: Tree, asked: int | None) -> None:
    """A running grace period can only be shortened."""
    now = metadata.get("deletionGracePeriodSeconds", 0)
    if asked is None or asked < 0 or asked >= now:
        return
    moment = datetime.fromisoformat(metadata["deletionTimestamp"]) - timedelta(seconds=now - asked)
    metadata |= {"deletionTimestamp": clock.text(moment), "deletionGracePeriodSeconds": asked}


def _finalizers(metadata: Tree, propagation: str) -> list[str]:
    found = list(metadata.get("finalizers") or ())
    if propagation not in BY_POLICY:
        return found
    return [name for name in found if name not in (ORPHAN, FOREGROUND)] + BY_POLICY[propagation]


def check_preconditions(resource: Resource, entry: StoredObject, old: Tree, options: DeleteOptions) -> None:
    """Raises StatusError if a precondition fails or the object may not be deleted."""
    if resource is NAMESPACES and entry.name in PROTECTED_NAMESPACES:
        raise errors.forbidden(resource, entry.name, "this namespace may not be deleted")
    uid = old["metadata"]["uid"]
    if options.uid and options.uid != uid:
        why = f"the UID in the precondition ({options.uid}) does not match the UID in record ({uid})."
        raise _conflict(resource, entry.name, f"{why} The object might have been deleted and then recreated")
    if options.version and options.version != str(entry.version):
        why = f"the ResourceVersion in the precondition ({options.version}) does not match the ResourceVersion in"
        raise _conflict(resource, entry.name, f"{why} record ({entry.version}). The object might have been modified")


def _conflict(resource: Resource, name: str, why: str) -> StatusError:
    # Here the real server writes the kind in place of the plural.
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    details = errors.details(resource, name) | {"kind": resource.kind}
    return StatusError(409, "Conflict", f'Operation cannot be fulfilled on {kind} "{name}": {why}', details)
