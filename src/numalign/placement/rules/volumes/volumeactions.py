"""What has to be written before a pod with unbound claims can be bound to its node, as data.

`VolumeBinding.plan` makes a plan for the chosen row; the scheduler assumes it in the stock while it writes, sends the
patches, and takes it back if anything fails. The volume controller and the provisioners do the rest; `volumeprogress`
tells how far they are (kube-scheduler spec 1.17)."""

from __future__ import annotations

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
from numalign.placement.rules.volumes import volumecatalogue
from numalign.placement.rules.volumes.volumestock import VolumeStock

Patch = dict[str, Any]


class BindVolume(Struct, frozen=True):
    """Set the volume aside for the claim."""

    volume: PersistentVolume
    """As found; `bound` is how it is to look."""
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
        """A merge patch of the volume that fails if somebody else has changed it."""
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
        """A merge patch of the claim that fails if somebody else has changed it."""
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
    """From now on, rules see volumes and claims as the plan will leave them."""
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
