"""Binds and provisions the volumes of a pod before the pod is bound.

`cycle` makes the plan when a node is chosen, and the rules see volumes as the plan leaves them from then on.
`binder` has the plan carried out and waits for the volume controllers. After a failure the plan is reverted
(kube-scheduler spec 1.17)."""

from __future__ import annotations

from typing import Final

from numalign.api.objects.pod import Pod
from numalign.api.objects.volumes import PersistentVolume, PersistentVolumeClaim
from numalign.kube import errors, resources
from numalign.kube.client import Client
from numalign.placement.rules.clusterstate import ClusterState
from numalign.placement.rules.rule import Refusal
from numalign.placement.rules.volumes import volumeactions
from numalign.placement.rules.volumes.volumeactions import VolumeFailure, VolumePlan, VolumeProgress
from numalign.placement.rules.volumes.volumestock import VolumeStock
from numalign.scheduler.profiles import Profile

LOOK: Final = 0.5
"""Seconds between two looks at how far others are."""
NOTHING: Final = ""

VOLUMES: Final = resources.of("v1", "persistentvolumes", "PersistentVolume", PersistentVolume)
CLAIMS: Final = resources.of("v1", "persistentvolumeclaims", "PersistentVolumeClaim", PersistentVolumeClaim)


def planned(pod: Pod, profile: Profile, world: ClusterState, node: str) -> VolumePlan | None:
    """What the pod's claims need on that node; None: nothing."""
    if profile.volumes is None or not pod.spec.volumes:
        return None
    prepared = profile.volumes.prepare(pod, world)
    if prepared is None or isinstance(prepared, Refusal):
        return None
    plan = profile.volumes.plan(prepared, world.rows[node], node)
    return None if plan.is_empty else plan


class VolumeBinder:
    def __init__(self, client: Client, stock: VolumeStock, world: ClusterState) -> None:
        self._client = client
        self._stock = stock
        self._world = world

    def assume(self, plan: VolumePlan) -> None:
        volumeactions.assume(plan, self._stock)

    def take_back(self, plan: VolumePlan) -> None:
        volumeactions.take_back(plan, self._stock)

    async def carried_out(self, plan: VolumePlan, seconds: float) -> str:
        """Why not; `NOTHING` if all is done."""
        try:
            await self._write(plan)
        except errors.KubeError as problem:
            return str(problem)
        clock = self._client.sender.clock
        until = clock.now() + seconds
        while True:
            match volumeactions.of(plan, self._stock, self._world):
                case VolumeProgress.DONE:
                    return NOTHING
                case VolumeFailure(why):
                    return why
            if clock.now() >= until:
                return "timed out waiting for volumes"
            await clock.sleep(LOOK)

    async def _write(self, plan: VolumePlan) -> None:
        for bind in plan.binds:
            if bind.bound != bind.volume:
                await self._client.patch(VOLUMES.at(bind.volume.metadata.name), "merge", bind.patch)
        for selection in plan.selections:
            if selection.selected != selection.claim:
                meta = selection.claim.metadata
                await self._client.patch(CLAIMS.at(meta.name, meta.namespace), "merge", selection.patch)
