"""On which nodes a volume could be provisioned for a claim.

`volumebinding` asks for the claims without a free volume. The class must have a provisioner and allow the node's
topology; a driver that reports storage capacity must have enough of it within reach of the node. Of several
sufficient CSIStorageCapacity objects the first by name counts (kube-scheduler spec 1.17)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
from msgspec import Struct

from numalign.api.objects.volumes import CSIStorageCapacity, PersistentVolumeClaim, StorageClass
from numalign.placement.rules.clusterstate import ClusterState, Flags
from numalign.placement.rules.rule import Rows, Scores
from numalign.placement.rules.volumes import volumecatalogue
from numalign.placement.rules.volumes.volumecatalogue import NEVER, NO_ROWS, NONE, Choice
from numalign.placement.rules.volumes.volumestock import VolumeStock

NO_PROVISIONER: Final = frozenset({"", "kubernetes.io/no-provisioner"})


class CapacityReport:
    """What a driver says, and the rows that it says it for, as of a generation of the world."""

    def __init__(self, capacity: CSIStorageCapacity) -> None:
        self._selector = volumecatalogue.of_labels(capacity.node_topology)
        # A report that says nothing has room for nothing, not even for an empty volume.
        self.largest = capacity.largest_volume.value if capacity.largest_volume else NONE
        self.space = capacity.capacity.value if capacity.capacity else 0
        self._rows, self._generation = NO_ROWS, NEVER

    def rows(self, world: ClusterState) -> Rows:
        if self._generation != world.generation:
            self._rows, self._generation = volumecatalogue.rows(world, self._selector), world.generation
        return self._rows


class CapacityReports:
    """All of one class, by name."""

    def __init__(self, capacities: Iterable[CSIStorageCapacity], generation: int) -> None:
        self.generation = generation
        self.each = [
            CapacityReport(capacity) for capacity in sorted(capacities, key=lambda each: each.metadata.full_name)
        ]
        self.largest: Scores = np.array([report.largest for report in self.each], np.int64)
        self.space: Scores = np.array([report.space for report in self.each], np.int64)


class Provision(Struct, frozen=True):
    """A claim whose volume would be made on some rows, and what they offer for it."""

    claim: PersistentVolumeClaim
    wanted: Flags
    """Rows where no volume was found for it."""
    possible: Flags
    """Rows that the class allows."""
    roomy: Flags
    """Rows with enough capacity, as far as the driver reports it."""
    report: Choice
    """By row: the number of the capacity report that applies."""
    space: Scores
    """Capacities by report."""


class Provisioning:
    def __init__(self, stock: VolumeStock) -> None:
        self._stock = stock
        self._by_class: dict[str, CapacityReports] = {}

    def provision(self, claim: PersistentVolumeClaim, wanted: Flags, world: ClusterState) -> Provision:
        storage_class = self._stock.classes.known(claim.class_name)
        reports = self._reports(claim, storage_class) if storage_class else None
        report = np.full(world.capacity, NONE, np.int32)
        if reports is not None and claim.size is not None:
            report = volumecatalogue.first(reports.each, reports.largest >= claim.size.value, world)
        return Provision(
            claim=claim,
            wanted=wanted,
            possible=_possible(storage_class, world),
            roomy=np.ones(world.capacity, np.bool_) if reports is None else np.not_equal(report, NONE),
            report=report,
            space=np.zeros(0, np.int64) if reports is None else reports.space,
        )

    def _reports(self, claim: PersistentVolumeClaim, storage_class: StorageClass) -> CapacityReports | None:
        """None: the driver does not report its space, or nothing is asked for."""
        driver = self._stock.drivers.known(storage_class.provisioner)
        if claim.size is None or driver is None or not driver.spec.storage_capacity:
            return None
        name, shelf = storage_class.metadata.name, self._stock.capacities
        if name not in self._by_class or self._by_class[name].generation != shelf.generation:
            self._by_class[name] = CapacityReports(shelf.among("storage_class", name), shelf.generation)
        return self._by_class[name]


def _possible(storage_class: StorageClass | None, world: ClusterState) -> Flags:
    if storage_class is None or storage_class.provisioner in NO_PROVISIONER:
        return np.zeros(world.capacity, np.bool_)
    return volumecatalogue.flags(world, volumecatalogue.of_topologies(storage_class.allowed_topologies))
