"""Matches pods of podresources, which have names, with checkpoint entries, which have uids.

`inventory` calls `match`. A pod with exclusive CPUs or devices is found by them, because no other container has the
same. The kubelet's pods socket or the API server provides the uids of the others (`UidLookup`). A static pod's uid in
the kubelet is a hash of its manifest, in the API server the uid of its mirror pod. If a pod's uid is unknown, entries
without a pod may be its own. A kubelet that has just started lists no pods, so the API server is asked before an entry
counts as orphaned. A pod that the kubelet knows and podresources do not list is no longer active (exporter spec
2.4)."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Protocol

from msgspec import Struct, structs

from numalign.agent.inventory.readings import Readings
from numalign.agent.sources.podresources import PodResources
from numalign.agent.sources.pods import LocalPod, PodsError
from numalign.api.decode.structs import Wire
from numalign.api.objects.meta import ObjectMeta
from numalign.kube import errors, resources
from numalign.kube.client import Client
from numalign.kube.lists import Unreadable
from numalign.kube.request import Selection
from numalign.kubelet.topologymanager import mask as masks

Name = tuple[str, str]
"""Namespace and name."""
UidsByName = Mapping[Name, str]
STATIC: Final = re.compile("[0-9a-f]{32}")
"""The kubelet's uid of a static pod: a hash of its manifest. The API server has another uid for it."""


class KnownUids(Struct, frozen=True):
    """Uids by pod name, from the kubelet or the API server."""

    public: UidsByName = {}
    """Uids in the API server."""
    kept: UidsByName = {}
    """Uids in the kubelet's checkpoints, where they differ."""
    unsure: bool = False
    """Whether pods may exist that no source lists."""
    finished: frozenset[Name] = frozenset()
    """Finished pods that still exist."""
    local: frozenset[str] = frozenset()
    """Uids in the kubelet's checkpoints that the kubelet itself knows, also of finished pods: the API server learns
    later that they have finished."""

    @property
    def uids(self) -> frozenset[str]:
        return frozenset(self.public.values()) | frozenset(self.kept.values())


class Match(Struct, frozen=True):
    kept: Mapping[Name, str]
    """The uid in the kubelet's checkpoints, by pod; pods without a match are absent."""
    open: frozenset[str]
    """Uids in the checkpoints without a listed pod, which may belong to a pod whose uid is unknown."""
    inactive: frozenset[str] = frozenset()
    """Those of pods that the kubelet knows and does not list: their containers have stopped, and the kubelet frees what
    they hold before it admits the next pod."""


def match(readings: Readings, uids: KnownUids) -> Match:
    written = checkpoint_uids(readings)
    holders = dict(_holders(readings))
    kept: dict[Name, str] = {}
    for pod in readings.pods or ():
        name = (pod.namespace, pod.name)
        found = next((holders[mark] for mark in _marks(pod) if mark in holders), None)
        found = found or uids.kept.get(name) or uids.public.get(name)
        if found:
            kept[name] = found
    matched = readings.pods is not None and len(kept) == len(readings.pods)
    complete = matched and not uids.unsure
    # A kubelet that has just started lists no pods yet, but its checkpoints are valid.
    unlisted = (written & uids.uids if complete else written) - frozenset(kept.values())
    return Match(kept, unlisted, unlisted & uids.local if matched else frozenset())


def checkpoint_uids(readings: Readings) -> frozenset[str]:
    """All uids with an entry in a checkpoint."""
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
"""Container, resource, and what the container holds of it; unique on the node."""


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


LOG: Final = logging.getLogger(__name__)
MIRROR_POD: Final = "kubernetes.io/config.mirror"
CONFIG_HASH: Final = "kubernetes.io/config.hash"
FINISHED: Final = ("Succeeded", "Failed")
AGAIN: Final = 300.0
"""Seconds until a kubelet without a pods socket is asked again: it may have been upgraded."""


class PodsSource(Protocol):
    """What `UidLookup` needs of `pods.PodsClient`."""

    async def list(self) -> tuple[LocalPod, ...]: ...


class Phase(Wire, frozen=True):
    phase: str = ""


class PodHeader(Wire, frozen=True):
    """A pod, decoded only for its identity and phase."""

    metadata: ObjectMeta = ObjectMeta()
    status: Phase = Phase()


PODS: Final = resources.of("v1", "pods", "Pod", PodHeader)


class UidLookup:
    def __init__(self, node: str, kubelet: PodsSource | None, client: Client | None) -> None:
        self._selection = Selection(fields=f"spec.nodeName={node}")
        self._kubelet = kubelet
        self._client = client
        self._ask_kubelet_after = 0.0

    async def known(self, written: frozenset[str], now: float) -> KnownUids:
        """Asks the kubelet, and the API server if the kubelet does not know all of `written`, the uids in the
        checkpoints."""
        kubelet = await self._by_kubelet(now)
        if kubelet is not None and written <= kubelet.uids:
            return kubelet
        server, known = await self._by_api_server(), kubelet or KnownUids()
        if server is None:
            return structs.replace(known, unsure=self._client is not None)
        finished = server.finished | known.finished
        return KnownUids(
            {**server.public, **known.public}, {**server.kept, **known.kept}, finished=finished, local=known.local
        )

    async def _by_kubelet(self, now: float) -> KnownUids | None:
        if self._kubelet is None or now < self._ask_kubelet_after:
            return None
        try:
            return of_kubelet(await self._kubelet.list())
        except PodsError as problem:
            LOG.debug("No uids from the kubelet: %s", problem)
            self._ask_kubelet_after = now + AGAIN if problem.absent else 0.0
            return None

    async def _by_api_server(self) -> KnownUids | None:
        if self._client is None:
            return None
        try:
            found = await self._client.every(PODS.everywhere(), self._selection)
        except errors.KubeError as problem:
            LOG.debug("No uids from the API server: %s", problem)
            return None
        return of_api_server(found)


def of_kubelet(pods: Iterable[LocalPod]) -> KnownUids:
    """Finished pods are not matched by uid: another pod may have the same name."""
    every = list(pods)
    found = {(pod.namespace, pod.name): pod.uid for pod in every if pod.phase not in FINISHED}
    ended = frozenset((pod.namespace, pod.name) for pod in every) - found.keys()
    public = {name: uid for name, uid in found.items() if not STATIC.fullmatch(uid)}
    return KnownUids(public, found, finished=ended, local=frozenset(pod.uid for pod in every))


def of_api_server(pods: Iterable[PodHeader | Unreadable]) -> KnownUids:
    public: dict[Name, str] = {}
    kept: dict[Name, str] = {}
    finished: set[Name] = set()
    for pod in pods:
        name, annotations = (pod.metadata.namespace, pod.metadata.name), pod.metadata.annotations
        if isinstance(pod, PodHeader) and pod.status.phase in FINISHED:
            finished.add(name)
            continue
        public[name] = pod.metadata.uid
        if MIRROR_POD in annotations and CONFIG_HASH in annotations:
            kept[name] = annotations[CONFIG_HASH]
    return KnownUids(public, kept, finished=frozenset(finished))
