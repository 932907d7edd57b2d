"""Pods whose devices are to be allocated dynamically are left alone, with a reason that says so.

They ask by resource claims, or for an extended resource that a DeviceClass stands for. Under the name of the stock
scheduler's plugin, because that is where people look. Whoever needs such devices names a scheduler that allocates
them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import numpy as np

from numalign.api.objects.dynamicresources import IMPLICIT, DeviceClass
from numalign.api.objects.pod import Pod
from numalign.placement.rules.clusterstate import World
from numalign.placement.rules.rule import FITS, Coded, Codes, Refusal
from numalign.placement.rules.volumes.volumestock import Shelf

LEFT_ALONE: Final = Refusal(
    ("pod uses resource claims, which this scheduler does not allocate; name another scheduler for it",),
    unresolvable=True,
)
BACKED: Final = (
    "pod asks for {resource}, which DeviceClass {name} stands for and this scheduler does not allocate; "
    "name another scheduler for it"
)


def shelf() -> Shelf[DeviceClass]:
    """The cluster's classes, by the resource that each stands for."""
    return Shelf(resource=lambda each: each.spec.extended_resource_name)


class DynamicResources:
    name: Final = "DynamicResources"

    def __init__(self, classes: Shelf[DeviceClass] | None = None) -> None:
        self._classes = shelf() if classes is None else classes

    def concerns(self, pod: Pod) -> bool:
        return self._refusal(pod) is not None

    @property
    def surroundings(self) -> int:
        return self._classes.generation

    def prepare(self, pod: Pod, world: World) -> Refusal | None:
        return self._refusal(pod)

    def filter(self, prepared: Coded) -> Codes:
        return np.zeros(len(prepared.codes), np.int32)

    def filter_row(self, prepared: Coded, row: int, removed: Collection[str], added: Sequence[Pod]) -> int:
        return FITS

    def _refusal(self, pod: Pod) -> Refusal | None:
        if pod.spec.resource_claims:
            return LEFT_ALONE
        for container in (*pod.spec.init_containers, *pod.spec.containers):
            for resource, amount in container.resources.requests.items():
                # Nearly all are CPU and memory; names with a slash are somebody's own.
                backing = self._backing(resource) if "/" in resource and amount.nanos else ""
                if backing:
                    return Refusal((BACKED.format(resource=resource, name=backing),), unresolvable=True)
        return None

    def _backing(self, resource: str) -> str:
        """The class that stands for the resource; empty: none."""
        found = next(iter(self._classes.among("resource", resource)), None)
        if found is not None:
            return found.metadata.name
        implied = self._classes.get(resource.removeprefix(IMPLICIT)) if resource.startswith(IMPLICIT) else None
        return implied.metadata.name if implied is not None else ""
