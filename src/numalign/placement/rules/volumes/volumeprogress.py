"""How far the binding of a pod's volumes is, once its plan is written: done, not yet, or failed for good.

The scheduler asks again and again while it waits, up to the profile's timeout. What others may do meanwhile: take a
volume back, fail to make one, make it elsewhere, delete the claim; the pod then has to be scheduled again
(kube-scheduler spec 1.17)."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from numalign.api.objects.volumes import PersistentVolume
from numalign.placement.rules.clusterstate import ClusterState
from numalign.placement.rules.volumes import claims, volumereach
from numalign.placement.rules.volumes.volumeactions import BindVolume, SelectNode, VolumePlan
from numalign.placement.rules.volumes.volumestock import VolumeStock


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
        return VolumeFailure(f"failed to check binding: {claims.not_found(bind.claim.metadata.full_name)}")
    if bind.bound != bind.volume and volume.metadata.resource_version == meta.resource_version:
        # What was written has not come back yet.
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
        return VolumeFailure(f"failed to check provisioning pvc: {claims.not_found(meta.full_name)}")
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
    return bool(volumereach.of_bound(volume, stock, world)[world.rows[node]])


def _out_of_reach(volume: PersistentVolume, node: str) -> VolumeFailure:
    why = "no matching NodeSelectorTerms"
    return VolumeFailure(f'pv "{volume.metadata.name}" node affinity doesn\'t match node "{node}": {why}')
