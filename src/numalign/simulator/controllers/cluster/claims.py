"""Binds PersistentVolumeClaims to existing PersistentVolumes.

Each claim gets the smallest volume that fits it. A claim of a WaitForFirstConsumer class gets the volume that a
scheduler selected for it. Volumes are not provisioned: a claim without a matching volume stays Pending."""

from collections.abc import Container, Iterable, Sequence
from typing import Final

from numalign.api.decode import quantity
from numalign.simulator.apiserver.storage.resources import PERSISTENTVOLUMECLAIMS, PERSISTENTVOLUMES, STORAGECLASSES
from numalign.simulator.controllers.framework import matching
from numalign.simulator.controllers.framework.actions import Action, MergePatch
from numalign.simulator.controllers.framework.runner import ControllerContext
from numalign.simulator.controllers.framework.views import Key
from numalign.simulator.trees import Tree

EVERY_CLAIM: Final = ("", "")
BOUND: Final = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}


class Claims:
    """Reconciles all claims under one key, because claims compete for volumes."""

    name = "persistentvolume-controller"

    def setup(self, context: ControllerContext) -> None:
        self._context = context
        context.views.watch(PERSISTENTVOLUMECLAIMS, lambda change: self._changed())
        context.views.watch(PERSISTENTVOLUMES, lambda change: self._changed())

    def _changed(self) -> None:
        self._context.enqueue(EVERY_CLAIM)

    def reconcile(self, key: Key) -> Iterable[Action]:
        views = self._context.views
        waiting = {
            each["metadata"]["name"]
            for each in views[STORAGECLASSES]
            if each.get("volumeBindingMode") == "WaitForFirstConsumer"
        }
        return reconcile(list(views[PERSISTENTVOLUMECLAIMS]), list(views[PERSISTENTVOLUMES]), waiting)


def reconcile(claims: Sequence[Tree], volumes: Sequence[Tree], waiting: Container[str] = ()) -> list[Action]:
    """Both lists are in order of creation, and earlier claims are served first. `waiting` holds the
    WaitForFirstConsumer classes, whose claims are not bound to a volume that was not selected for them."""
    free = [volume for volume in volumes if not _claimed_by(volume)]
    actions = [action for volume in volumes for action in _phase(volume, claims)]
    for claim in claims:
        takes_none = _is_bound(claim) or _class(claim) in waiting
        volume = _held(claim, volumes) or (None if takes_none else _best(claim, free))
        if volume is None or _is_bound(claim):
            continue
        free = [each for each in free if each is not volume]
        actions += _bound(claim, volume)
    return actions


def _bound(claim: Tree, volume: Tree) -> list[Action]:
    metadata, spec = claim["metadata"], volume["spec"]
    reference = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "name": metadata["name"],
        "namespace": metadata["namespace"],
        "uid": metadata["uid"],
    }
    status = {"phase": "Bound", "capacity": spec.get("capacity") or {}, "accessModes": spec.get("accessModes") or []}
    spec_change = {"volumeName": volume["metadata"]["name"]}
    return [
        MergePatch(PERSISTENTVOLUMES, volume, {"spec": {"claimRef": reference}}),
        MergePatch(PERSISTENTVOLUMES, volume, {"status": {"phase": "Bound"}}, "status"),
        MergePatch(PERSISTENTVOLUMECLAIMS, claim, {"metadata": {"annotations": BOUND}, "spec": spec_change}),
        MergePatch(PERSISTENTVOLUMECLAIMS, claim, {"status": status}, "status"),
    ]


def _phase(volume: Tree, claims: Sequence[Tree]) -> list[Action]:
    """The phase of a volume without a claim, or of one whose claim is gone."""
    held = _claimed_by(volume)
    there = {each["metadata"]["uid"] for each in claims}
    if held and held.get("uid") in there:
        return []
    wanted = "Released" if held and held.get("uid") else "Available"
    if (volume.get("status") or {}).get("phase") == wanted:
        return []
    return [MergePatch(PERSISTENTVOLUMES, volume, {"status": {"phase": wanted}}, "status")]


def _best(claim: Tree, free: Sequence[Tree]) -> Tree | None:
    fitting = [volume for volume in free if _fits(claim, volume)]
    return min(fitting, key=lambda volume: (_size(volume), volume["metadata"]["name"]), default=None)


def _fits(claim: Tree, volume: Tree) -> bool:
    spec, offered = claim["spec"], volume["spec"]
    asked = ((spec.get("resources") or {}).get("requests") or {}).get("storage", "0")
    selector = spec.get("selector")
    return (
        _class(claim) == (offered.get("storageClassName") or "")
        and set(spec.get("accessModes") or ()) <= set(offered.get("accessModes") or ())
        and spec.get("volumeMode", "Filesystem") == offered.get("volumeMode", "Filesystem")
        and quantity.parse(asked).value <= _size(volume)
        and spec.get("volumeName", volume["metadata"]["name"]) == volume["metadata"]["name"]
        and (not selector or matching.selector(selector)(volume["metadata"].get("labels") or {}))
    )


def _held(claim: Tree, volumes: Sequence[Tree]) -> Tree | None:
    """The volume that is reserved for this claim by name, or that already refers to it."""
    mine = claim["metadata"]["namespace"], claim["metadata"]["name"]
    for volume in volumes:
        held = _claimed_by(volume)
        is_same = held.get("uid") in (None, "", claim["metadata"]["uid"])
        if held and is_same and (held.get("namespace"), held.get("name")) == mine:
            return volume
    return None


def _is_bound(claim: Tree) -> bool:
    return (claim.get("status") or {}).get("phase") == "Bound"


def _claimed_by(volume: Tree) -> Tree:
    return volume["spec"].get("claimRef") or {}


def _class(claim: Tree) -> str:
    return claim["spec"].get("storageClassName") or ""


def _size(volume: Tree) -> int:
    return quantity.parse((volume["spec"].get("capacity") or {}).get("storage", "0")).value
