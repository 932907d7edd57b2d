"""The writes that bind a pod's volumes before the pod is bound, and their progress.

`VolumeBinding.plan` makes a `VolumePlan` for the chosen row. The scheduler assumes it while it sends the patches,
and reverts it after a failure. The volume controller and the provisioners do the rest; `VolumeProgress` says done,
pending or failed. A volume that is taken away, not provisioned or provisioned elsewhere, or a deleted claim, fails
the plan (kube-scheduler spec 1.17)."""

from __future__ import annotations

from enum import Enum
from typing import Any

import msgspec
from msgspec import Struct

from numalign.api.objects.volumes import (
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    ClaimReference,
    PersistentVolume,
    PersistentVolumeClaim,
)
from numalign.placement.rules.clusterstate import ClusterState
from numalign.placement.rules.volumes import volumecatalogue
from numalign.placement.rules.volumes.volumestock import VolumeStock

Patch = dict[str, Any]


class BindVolume(Struct, frozen=True):
    """Set the volume aside for the claim."""

    volume: PersistentVolume
    """The volume as found; `bound` is its version after the write."""
    claim: PersistentVolumeClaim

    @property
    def bound(self) -> PersistentVolume:
        meta, annotations = self.claim.metadata, self.volume.metadata.annotations
        if not volumecatalogue.is_reserved(self.volume, self.claim):
            annotations = {BOUND_BY_CONTROLLER: "yes"} | annotations
        reference = self.volume.spec.claim_ref
        if reference is None or reference.uid != meta.uid or not volumecatalogue.is_reserved(self.volume, self.claim):
            reference = _reference(self.claim)
        return msgspec.structs.replace(
            self.volume,
            metadata=msgspec.structs.replace(self.volume.metadata, annotations=annotations),
            spec=msgspec.structs.replace(self.volume.spec, claim_ref=reference),
        )

    @property
    def patch(self) -> Patch:
        """A merge patch of the volume that fails if the object has changed meanwhile."""
        bound = self.bound
        return {
            "metadata": {
                "resourceVersion": self.volume.metadata.resource_version,
                "annotations": bound.metadata.annotations,
            },
            "spec": {"claimRef": msgspec.to_builtins(bound.spec.claim_ref)},
        }


class SelectNode(Struct, frozen=True):
    """Have the claim's volume made for this node."""

    claim: PersistentVolumeClaim
    node: str

    @property
    def selected(self) -> PersistentVolumeClaim:
        annotations = self.claim.metadata.annotations | {SELECTED_NODE: self.node}
        metadata = msgspec.structs.replace(self.claim.metadata, annotations=annotations)
        return msgspec.structs.replace(self.claim, metadata=metadata)

    @property
    def patch(self) -> Patch:
        """A merge patch of the claim that fails if the object has changed meanwhile."""
        version = self.claim.metadata.resource_version
        return {"metadata": {"resourceVersion": version, "annotations": {SELECTED_NODE: self.node}}}


class VolumePlan(Struct, frozen=True):
    """Empty when all claims of the pod are bound already."""

    node: str
    binds: tuple[BindVolume, ...] = ()
    selections: tuple[SelectNode, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.binds or self.selections)


def assume(plan: VolumePlan, stock: VolumeStock) -> None:
    """Assumes volumes and claims as the plan will leave them, so that plugins see the result."""
    for bind in plan.binds:
        if bind.bound != bind.volume:
            stock.volumes.assume(bind.bound)
    for selection in plan.selections:
        stock.claims.assume(selection.selected)


def take_back(plan: VolumePlan, stock: VolumeStock) -> None:
    for bind in plan.binds:
        stock.volumes.restore(bind.volume.metadata.full_name)
    for selection in plan.selections:
        stock.claims.restore(selection.claim.metadata.full_name)


def _reference(claim: PersistentVolumeClaim) -> ClaimReference:
    meta = claim.metadata
    return ClaimReference(
        kind="PersistentVolumeClaim",
        api_version="v1",
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
    )


class VolumeProgress(Enum):
    DONE = 1
    WAITING = 2


class VolumeFailure(Struct, frozen=True):
    why: str


Step = VolumeProgress | VolumeFailure


def of(plan: VolumePlan, stock: VolumeStock, world: ClusterState) -> Step:
    """The first part of the plan that is not done decides."""
    if plan.node not in world.rows:
        return VolumeFailure(f'failed to get node "{plan.node}": node "{plan.node}" not found')
    for bind in plan.binds:
        step = _bound(bind, plan.node, stock, world)
        if step is not VolumeProgress.DONE:
            return step
    for selection in plan.selections:
        step = _made(selection, stock, world)
        if step is not VolumeProgress.DONE:
            return step
    return VolumeProgress.DONE


def _bound(bind: BindVolume, node: str, stock: VolumeStock, world: ClusterState) -> Step:
    meta = bind.volume.metadata
    volume, claim = stock.volumes.known(meta.name), stock.claims.known(bind.claim.metadata.full_name)
    if volume is None:
        return VolumeFailure(f'failed to check binding: persistentvolume "{meta.name}" not found')
    if claim is None:
        return VolumeFailure(f"failed to check binding: {volumecatalogue.not_found(bind.claim.metadata.full_name)}")
    if bind.bound != bind.volume and volume.metadata.resource_version == meta.resource_version:
        # The watch has not shown the written version yet.
        return VolumeProgress.WAITING
    if not _reaches(node, volume, stock, world):
        return _out_of_reach(volume, node)
    if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
        return VolumeFailure(f'ClaimRef got reset for pv "{meta.name}"')
    return VolumeProgress.DONE if claim.is_bound else VolumeProgress.WAITING


def _made(selection: SelectNode, stock: VolumeStock, world: ClusterState) -> Step:
    meta = selection.claim.metadata
    claim = stock.claims.known(meta.full_name)
    if claim is None:
        return VolumeFailure(f"failed to check provisioning pvc: {volumecatalogue.not_found(meta.full_name)}")
    if selection.selected != selection.claim and claim.metadata.resource_version == meta.resource_version:
        return VolumeProgress.WAITING
    if not claim.metadata.annotations:
        return VolumeFailure(f'selectedNode annotation reset for PVC "{meta.name}"')
    if claim.selected_node != selection.node:
        return VolumeFailure(f'provisioning failed for PVC "{meta.name}"')
    volume = stock.volumes.known(claim.spec.volume_name)
    if volume is not None and not _reaches(selection.node, volume, stock, world):
        return _out_of_reach(volume, selection.node)
    return VolumeProgress.DONE if volume is not None and claim.is_bound else VolumeProgress.WAITING


def _reaches(node: str, volume: PersistentVolume, stock: VolumeStock, world: ClusterState) -> bool:
    return bool(volumecatalogue.of_bound(volume, stock, world)[world.rows[node]])


def _out_of_reach(volume: PersistentVolume, node: str) -> VolumeFailure:
    why = "no matching NodeSelectorTerms"
    return VolumeFailure(f'pv "{volume.metadata.name}" node affinity doesn\'t match node "{node}": {why}')
