"""Who is who: podresources names pods, checkpoints know their uids, and nobody tells both.

`inventory` asks. Exclusive CPUs and devices belong to one container alone, so that a pod which has some is found in the
checkpoints by them; a static pod too, which the API server knows by another uid. Others need to be told by somebody who
knows. A pod that stays without a uid leaves open whose the remaining entries are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from numalign.agent.inventory.readings import Readings
from numalign.agent.sources.podresources import PodResources
from numalign.kubelet import mask as masks

Name = tuple[str, str]
"""Namespace and name."""
Uids = Mapping[Name, str]
STATIC: Final = re.compile("[0-9a-f]{32}")
"""The kubelet's own uid of a static pod: a hash of its manifest. The API server knows the pod by another one."""


class Told(Struct, frozen=True):
    """Uids by name, as far as somebody told them."""

    public: Uids = {}
    """By which others know the pods."""
    kept: Uids = {}
    """Under which the kubelet keeps its books, where that is another one."""
    unsure: bool = False
    """Whether pods may exist of which nobody could tell."""
    finished: frozenset[Name] = frozenset()
    """Pods that have ended, and are still there."""

    @property
    def uids(self) -> frozenset[str]:
        return frozenset(self.public.values()) | frozenset(self.kept.values())


class Match(Struct, frozen=True):
    kept: Mapping[Name, str]
    """By pod, the uid under which the kubelet keeps its books; pods that were not found are left out."""
    open: frozenset[str]
    """Uids in the checkpoints that are nobody's, and may be somebody's whose uid is not known."""


def of(readings: Readings, told: Told) -> Match:
    written = uids(readings)
    holders = dict(_holders(readings))
    kept: dict[Name, str] = {}
    for pod in readings.pods or ():
        name = (pod.namespace, pod.name)
        found = next((holders[mark] for mark in _marks(pod) if mark in holders), None)
        found = found or told.kept.get(name) or told.public.get(name)
        if found:
            kept[name] = found
    everybody = readings.pods is not None and len(kept) == len(readings.pods) and not told.unsure
    # A kubelet that has just started lists nobody yet, and keeps what pods hold all the same.
    return Match(kept, (written & told.uids if everybody else written) - frozenset(kept.values()))


def uids(readings: Readings) -> frozenset[str]:
    """Everybody who has an entry in a checkpoint."""
    cpu, memory, devices = readings.cpu_checkpoint, readings.memory_checkpoint, readings.device_checkpoint
    found: set[str] = set()
    if cpu is not None:
        found.update(cpu.state.assignments, cpu.state.pods)
    if memory is not None:
        found.update(memory.state.blocks, memory.state.pods)
    if devices is not None:
        found.update(devices.state.pods)
    return frozenset(found)


Mark = tuple[str, str, object]
"""Container, resource, and what of it the container has: nobody else has the same."""


def _holders(readings: Readings) -> Iterator[tuple[Mark, str]]:
    if readings.cpu_checkpoint is not None:
        for uid, containers in readings.cpu_checkpoint.state.assignments.items():
            yield from (((name, "cpu", cpus), uid) for name, cpus in containers.items())
    if readings.device_checkpoint is not None:
        for uid, held in readings.device_checkpoint.state.pods.items():
            for name, devices in held.items():
                yield from (((name, resource, ids), uid) for resource, ids in devices.items())


def _marks(pod: PodResources) -> Iterator[Mark]:
    for container in pod.containers:
        if container.cpus:
            yield container.name, "cpu", masks.of(container.cpus)
        by_resource: dict[str, set[str]] = {}
        for entry in container.devices:
            by_resource.setdefault(entry.resource, set()).update(entry.ids)
        yield from ((container.name, resource, frozenset(ids)) for resource, ids in by_resource.items())
