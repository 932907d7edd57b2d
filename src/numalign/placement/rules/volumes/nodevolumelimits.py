"""NodeVolumeLimits: a node takes no more volumes of a CSI driver than the driver can attach there.

If a driver requires it, nodes on which it does not run are rejected. A volume counts once per node: those of the
pods there, and those that are attached without a pod (kube-scheduler spec 1.15). `AttachedVolumes` follows cluster
state and storage objects, marks the rows that a change touches, and recounts them when they are next read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from numalign.api.objects.pod import Pod
from numalign.api.objects.volumes import (
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from numalign.placement.rules.clusterstate import AssignedPod, ClusterState
from numalign.placement.rules.pods.podcounts import Counts
from numalign.placement.rules.rowclasses import NO_LABELS, grown
from numalign.placement.rules.rule import FITS, Codes, Refusal, Refusals
from numalign.placement.rules.volumes import intree, volumecatalogue
from numalign.placement.rules.volumes.volumestock import VolumeStock

NO_LIMIT: Final = -1
TO_BE_MADE: Final = "claim:"


class AttachedVolume(Struct, frozen=True):
    """A volume as its driver knows it."""

    driver: str
    handle: str


class NodeAttachments(Struct, frozen=True):
    driver: str
    handle: str
    is_built_in: bool = False


class DriverColumn:
    """One driver, by row."""

    def __init__(self, rows: int) -> None:
        self.attached: Counts = np.zeros(rows, np.int64)
        self.limit: Counts = np.full(rows, NO_LIMIT, np.int64)

    def make_room(self, rows: int) -> None:
        before = len(self.limit)
        if rows > before:
            self.attached, self.limit = grown(self.attached, rows), grown(self.limit, rows)
            self.limit[before:] = NO_LIMIT


class AttachedVolumes:
    def __init__(self, world: ClusterState, stock: VolumeStock) -> None:
        self._world, self._stock = world, stock
        self._drivers: dict[str, DriverColumn] = {}
        self._of_pods: dict[int, frozenset[AttachedVolume]] = {}
        self._claim_rows: dict[str, dict[int, int]] = {}
        self._stale: set[int] = set()
        stock.claims.follow(self._claim_changed)
        stock.volumes.follow(self._volume_changed)
        stock.classes.follow(self._class_changed)
        stock.nodes.follow(self._node_drivers_changed)
        stock.attachments.follow(self._attachment_changed)
        world.follow(self)

    def column(self, driver: str) -> DriverColumn:
        """Up to date, and as long as the world's arrays."""
        while self._stale:
            self._count(self._stale.pop())
        column = self._drivers.setdefault(driver, DriverColumn(self._world.capacity))
        column.make_room(self._world.capacity)
        return column

    def of_pods(self, row: int) -> frozenset[AttachedVolume]:
        """Volumes of pods on the row."""
        return self._of_pods.get(row, frozenset())

    def of_pod(self, pod: Pod, *, built_in: bool = True) -> Iterator[AttachedVolume]:
        """A claim that does not exist is left out, and so is one of another owner. Volumes of built-in plugins
        are a driver's only where the node has CSI drivers at all."""
        for volume in pod.spec.volumes:
            name = volumecatalogue.of_volume(pod, volume)
            found = self._of_claim(name, pod) if name else _of_built_in(volume)
            if found is not None and found.driver and found.handle and (built_in or not found.is_built_in):
                yield AttachedVolume(found.driver, found.handle)

    def attachments(self, node: str) -> frozenset[AttachedVolume]:
        found = set()
        for attachment in self._stock.attachments.among("node", node):
            volume = self._stock.volumes.known(attachment.spec.source.persistent_volume_name)
            if attachment.spec.attacher and volume is not None and volume.spec.csi is not None:
                found.add(AttachedVolume(attachment.spec.attacher, volume.spec.csi.volume_handle))
        return frozenset(found)

    def node_changed(self, row: int) -> None:
        self._stale.add(row)

    def pod_added(self, assigned: AssignedPod) -> None:
        self._use(assigned, 1)

    def pod_removed(self, assigned: AssignedPod) -> None:
        self._use(assigned, -1)

    def _use(self, assigned: AssignedPod, change: int) -> None:
        if not assigned.pod.spec.volumes:
            return
        self._stale.add(assigned.row)
        for name in volumecatalogue.named(assigned.pod):
            rows = self._claim_rows.setdefault(name.full, {})
            rows[assigned.row] = rows.get(assigned.row, 0) + change
            if rows[assigned.row] == 0:
                del rows[assigned.row]
            if not rows:
                del self._claim_rows[name.full]

    def _claim_changed(self, claim: PersistentVolumeClaim) -> None:
        self._stale.update(self._claim_rows.get(claim.metadata.full_name, ()))

    def _volume_changed(self, volume: PersistentVolume) -> None:
        for claim in self._stock.claims.among("volume", volume.metadata.name):
            self._claim_changed(claim)
        for attachment in self._stock.attachments.among("volume", volume.metadata.name):
            self._attachment_changed(attachment)

    def _class_changed(self, _: StorageClass) -> None:
        self._stale.update(self._world.rows.values())

    def _node_drivers_changed(self, node: CSINode) -> None:
        self._touch(node.metadata.name)

    def _attachment_changed(self, attachment: VolumeAttachment) -> None:
        self._touch(attachment.spec.node_name)

    def _touch(self, node: str) -> None:
        if node in self._world.rows:
            self._stale.add(self._world.rows[node])

    def _count(self, row: int) -> None:
        of_pods = {each for assigned in self._world.on_row[row].values() for each in self.of_pod(assigned.pod)}
        self._of_pods[row] = frozenset(of_pods)
        counts = Counter(each.driver for each in of_pods | self.attachments(self._world.names[row]))
        limits = _limits(self._stock.nodes.known(self._world.names[row]))
        for driver in {*limits, *counts, *self._drivers}:
            column = self._drivers.setdefault(driver, DriverColumn(self._world.capacity))
            column.make_room(self._world.capacity)
            column.attached[row] = counts[driver]
            column.limit[row] = limits.get(driver, NO_LIMIT)

    def _of_claim(self, name: volumecatalogue.ClaimName, pod: Pod) -> NodeAttachments | None:
        claim = self._stock.claims.known(name.full)
        if claim is None or (name.is_ephemeral and not volumecatalogue.is_for(claim, pod)):
            return None
        volume = self._stock.volumes.known(claim.spec.volume_name)
        if volume is None:
            return self._to_be_made(claim)
        if volume.spec.csi is not None:
            return NodeAttachments(volume.spec.csi.driver, volume.spec.csi.volume_handle)
        return _of_built_in(volume.spec, volume.metadata.labels)

    def _to_be_made(self, claim: PersistentVolumeClaim) -> NodeAttachments | None:
        """A claim without a volume counts as one of its class's driver."""
        storage_class = self._stock.classes.known(claim.class_name) if claim.class_name else None
        if storage_class is None or storage_class.provisioner in intree.UNCOUNTED:
            return None
        plugin = intree.BY_NAME.get(storage_class.provisioner)
        handle = f"{TO_BE_MADE}{claim.metadata.full_name}"
        return NodeAttachments(
            plugin.driver if plugin else storage_class.provisioner, handle, is_built_in=plugin is not None
        )


def _of_built_in(source: intree.Source, labels: Mapping[str, str] = NO_LABELS) -> NodeAttachments | None:
    plugin = intree.plugin_of(source)
    return NodeAttachments(plugin.driver, intree.handle(source, labels) or "", is_built_in=True) if plugin else None


def _limits(node: CSINode | None) -> dict[str, int]:
    drivers = node.spec.drivers if node else ()
    return {each.name: each.allocatable.count for each in drivers if each.allocatable.count is not None}


TOO_MANY: Final = Refusal(("node(s) exceed max volume count",))
TOO_MANY_CODE, PROBLEM_CODE = 1, 2


class PreparedLimits(Struct, frozen=True):
    world: ClusterState
    new: frozenset[AttachedVolume]
    codes: Codes
    """Refusals that do not depend on attached volumes: missing claims, and drivers that nodes lack."""
    refusals: Refusals
    only: None = None


class NodeVolumeLimits:
    name: Final = "NodeVolumeLimits"

    def __init__(self, stock: VolumeStock, attached: AttachedVolumes) -> None:
        self._stock, self._attached = stock, attached

    def concerns(self, pod: Pod) -> bool:
        return bool(pod.spec.volumes) and volumecatalogue.are_special(pod.spec.volumes)

    def prepare(self, pod: Pod, world: ClusterState) -> PreparedLimits | None:
        if not pod.spec.volumes:
            return None
        if not any(volumecatalogue.of_volume(pod, each) or intree.is_built_in(each) for each in pod.spec.volumes):
            return None
        codes = np.zeros(world.capacity, np.int32)
        problem = self._problem(pod)
        if problem is not None:
            codes[:] = PROBLEM_CODE
            refusals = Refusals(TOO_MANY, Refusal((problem,), unresolvable=True))
            return PreparedLimits(world=world, new=frozenset(), codes=codes, refusals=refusals)
        new = frozenset(self._attached.of_pod(pod))
        demanding = sorted({each.driver for each in new if self._must_run(each.driver)})
        plain = {each.driver for each in self._attached.of_pod(pod, built_in=False)}
        # The first driver that is missing gives the reason.
        for place, driver in reversed(list(enumerate(demanding, start=TOO_MANY_CODE + 1))):
            codes[self._lacking(driver, world, driver in plain)] = place
        return PreparedLimits(world=world, new=new, codes=codes, refusals=Refusals(TOO_MANY, *map(_missing, demanding)))

    def filter(self, prepared: PreparedLimits) -> Codes:
        codes = prepared.codes.copy()
        for driver, count in _by_driver(prepared.new).items():
            column = self._attached.column(driver)
            full = (column.limit >= 0) & (column.attached + count > column.limit)
            for row in np.flatnonzero(full & (codes == FITS)).tolist():
                # Volumes that pods there use already are not new; few rows get this far.
                new = prepared.new - self._attached.of_pods(row)
                more = _by_driver(new).get(driver, 0)
                if more and column.attached[row] + more > column.limit[row]:
                    codes[row] = TOO_MANY_CODE
        return codes

    def filter_row(self, prepared: PreparedLimits, row: int, removed: Collection[str], added: Sequence[Pod]) -> int:
        if prepared.codes[row] != FITS:
            return int(prepared.codes[row])
        there = prepared.world.on_row[row]
        pods = (*(assigned.pod for uid, assigned in there.items() if uid not in removed), *added)
        held = frozenset(each for pod in pods for each in self._attached.of_pod(pod))
        attached = _by_driver(held | self._attached.attachments(prepared.world.names[row]))
        for driver, count in _by_driver(prepared.new - held).items():
            limit = int(self._attached.column(driver).limit[row])
            if 0 <= limit < attached[driver] + count:
                return TOO_MANY_CODE
        return FITS

    def _problem(self, pod: Pod) -> str | None:
        for name in volumecatalogue.named(pod):
            if not name.name:
                return "PersistentVolumeClaim had no name"
            claim = self._stock.claims.known(name.full)
            if claim is None:
                return f"looking up PVC {name.namespace}/{name.name}: {volumecatalogue.not_found(name.name)}"
            if name.is_ephemeral and not volumecatalogue.is_for(claim, pod):
                return volumecatalogue.not_owned(name, pod)
        return None

    def _must_run(self, driver: str) -> bool:
        known = self._stock.drivers.known(driver)
        return known is not None and known.spec.prevent_pod_scheduling_if_missing

    def _lacking(self, driver: str, world: ClusterState, without_node: bool) -> list[int]:
        """Rows whose node lacks the driver. A node that has no drivers at all does not count if the pod's volumes are
        all of a built-in plugin: there they are not taken for the driver's."""
        rows = []
        for name, row in world.rows.items():
            node = self._stock.nodes.known(name)
            has = not without_node if node is None else any(each.name == driver for each in node.spec.drivers)
            if not has:
                rows.append(row)
        return rows


def _missing(driver: str) -> Refusal:
    return Refusal((f"{driver} CSI driver is not installed on the node",))


def _by_driver(volumes: Iterable[AttachedVolume]) -> Counter[str]:
    return Counter(each.driver for each in volumes)
