"""Takes a snapshot of the node: reads the sources, corrects what old kubelets list, and builds the inventory.

The agent's cycle and the command line call `look`. If the kubelet's answers contradict its checkpoints, it reads once
more; remaining contradictions are counted, and `inventory` assumes the smaller amount. A snapshot without an inventory
says why; one that rests on assumptions is marked and not published. Kubelets before 1.34 list finished pods; those
before 1.23 list shared CPUs for containers without exclusive ones (exporter spec 2.3 and 4.2)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from msgspec import Struct, structs

from numalign.agent.inventory import inventory, podidentity, readings
from numalign.agent.inventory.inventory import Inventory, PlacementCache
from numalign.agent.inventory.podidentity import KnownUids, Name, UidLookup
from numalign.agent.inventory.readings import Readings, Sources
from numalign.agent.sources import kubeletconfig
from numalign.agent.sources.podresources import ContainerResources, PodResources
from numalign.api import errors
from numalign.api.nrt.placementcodec import ContainerRef
from numalign.kubelet import versions
from numalign.kubelet.machine.machine import Machine
from numalign.kubelet.refusals import StartRefusal, Undecided
from numalign.kubelet.topologymanager import mask as masks
from numalign.kubelet.versions import Minor

ACTIVE_ONLY: Final = Minor(1, 34)
"""From this minor on, finished pods are not listed."""
EXCLUSIVE_ONLY: Final = Minor(1, 23)
"""From this minor on, shared CPUs are not listed."""


def corrected(read: Readings, finished: Collection[Name], reference: ContainerRef | None = None) -> Readings:
    minor = versions.parse(read.kubelet_version) or versions.NEWEST
    pods = read.pods
    if pods is None or minor >= ACTIVE_ONLY:
        return read
    pods = unfinished(pods, finished)
    if minor < EXCLUSIVE_ONLY:
        written = read.cpu_checkpoint
        pool = masks.members(written.state.default) if written is not None else pool_of(pods, reference)
        pods = without_pool(pods, pool)
    return structs.replace(read, pods=pods)


def unfinished(pods: Iterable[PodResources], finished: Collection[Name]) -> tuple[PodResources, ...]:
    return tuple(pod for pod in pods if (pod.namespace, pod.name) not in finished)


def pool_of(pods: Iterable[PodResources], reference: ContainerRef | None) -> tuple[int, ...]:
    """The CPUs of the reference container, which has no exclusive ones; empty where it is not listed."""
    named = ((ContainerRef(pod.namespace, pod.name, each.name), each) for pod in pods for each in pod.containers)
    return next((container.cpus for ref, container in named if ref == reference), ())


def without_pool(pods: Iterable[PodResources], pool: Iterable[int]) -> tuple[PodResources, ...]:
    """Exclusive CPUs only, in ascending order."""
    shared = frozenset(pool)
    return tuple(structs.replace(pod, containers=_without(pod, shared)) for pod in pods)


def _without(pod: PodResources, shared: frozenset[int]) -> tuple[ContainerResources, ...]:
    return tuple(structs.replace(each, cpus=tuple(sorted(set(each.cpus) - shared))) for each in pod.containers)


def reference(text: str) -> ContainerRef | None:
    """Parses namespace/pod/container; None for empty text."""
    if not text:
        return None
    parts = tuple(part.strip() for part in text.split("/"))
    if len(parts) != len(ContainerRef._fields):
        why = f"{errors.echo(text)} is not namespace/pod/container"
        raise errors.BadObject("Agent", "settings", "reference container", why)
    return ContainerRef(*parts)


TRIES: Final = 2
YOUNG: Final = 60.0
"""Seconds after its start in which a kubelet may not list all pods yet."""


class Snapshot(Struct, frozen=True):
    readings: Readings
    inventory: Inventory | None = None
    unknown: tuple[str, ...] = ()
    """Why the snapshot is not published."""
    doubt: str = ""
    """Why it is not published unless the same configuration was published before."""

    @property
    def contradictions(self) -> tuple[str, ...]:
        return self.inventory.contradictions if self.inventory is not None else ()


class SnapshotReader:
    def __init__(self, sources: Sources, uids: UidLookup | None = None, reference: ContainerRef | None = None) -> None:
        self.sources = sources
        self._uids = uids
        self._reference = reference
        self._placing = PlacementCache()

    def set_kubelet_version(self, kubelet: str) -> None:
        """Sets the version that the Node's status has, such as v1.37.1."""
        self.sources.kubelet_version = kubelet

    async def look(self, *, fresh: bool = False) -> Snapshot:
        """Takes a snapshot. `fresh`: read hardware and configuration again, too."""
        if fresh:
            self.sources.forget()
        for _ in range(TRIES):
            found = await self._once()
            if found.readings.consistent and not found.contradictions:
                break
        return found

    async def _once(self) -> Snapshot:
        read = await readings.read(self.sources)
        uids = await self._known_uids(read)
        read = corrected(read, uids.finished, self._reference)
        if read.machine is None:
            return Snapshot(read, unknown=("/sys describes no machine",))
        try:
            found = inventory.of(read, read.machine, uids, self._placing)
            return Snapshot(read, found, (*_unknown(read), *self._unlisted(found)), _doubt(read))
        except (StartRefusal, Undecided) as refusal:
            why = f"the kubelet would not start with {read.settings_source} on this machine: {refusal}"
            return Snapshot(read, _hardware(read, read.machine), (*_unknown(read), why))

    def _unlisted(self, found: Inventory) -> tuple[str, ...]:
        """A kubelet that has just started lists its pods one by one."""
        young = self.sources.clock.now() - self.sources.kubelet_since < YOUNG
        if not (young and found.answered and found.unlisted):
            return ()
        return ("the kubelet does not list all pods with allocations yet",)

    async def _known_uids(self, read: Readings) -> KnownUids:
        written = podidentity.checkpoint_uids(read)
        if self._uids is None or not (read.pods or written):
            return KnownUids()
        return await self._uids.known(written, self.sources.clock.now())


def _hardware(read: Readings, machine: Machine) -> Inventory:
    """The hardware alone, for a node whose kubelet cannot be modelled."""
    bare = Readings(
        machine=machine,
        settings=kubeletconfig.assumed(machine, read.settings.minor).settings,
        settings_source=read.settings_source,
        settings_assumed=True,
    )
    return inventory.of(bare, machine, KnownUids())


def _unknown(read: Readings) -> tuple[str, ...]:
    found = []
    if read.pods is None:
        found.append("the kubelet's podresources do not answer")
    if read.checkpoint_lost:
        found.append("a kubelet checkpoint is broken")
    if read.settings_assumed:
        found.append("the kubelet's configuration is unknown")
    return tuple(found)


def _doubt(read: Readings) -> str:
    if not read.settings_unread:
        return ""
    return (
        f"{read.settings_source} changed after the kubelet started, and the kubelet still uses the previous content;"
        " restart the kubelet, or read its configuration with --configz"
    )
