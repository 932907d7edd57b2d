"""Finds free volumes for claims: the volumes of each class, which nodes reach them, and which claim gets which.

VolumeBinding and VolumeRestrictions call it. Volumes of a class are grouped by what decides whether they suit a
claim, smallest first. Topologies and label selectors become node selectors. On each node, claims are served smallest
first, and each takes the smallest suitable volume within reach, unless one is reserved for it; of equal volumes the
first by name (kube-scheduler spec 1.17). A generic ephemeral volume has a claim of the pod's own, named after both."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from numalign.api.decode import quantity
from numalign.api.objects import selectors
from numalign.api.objects.pod import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, Volume
from numalign.api.objects.selectors import LabelSelector
from numalign.api.objects.volumes import AVAILABLE, PersistentVolume, PersistentVolumeClaim, TopologyTerm
from numalign.placement.rules.clusterstate import ClusterState, Flags
from numalign.placement.rules.nodes import nodeaffinity
from numalign.placement.rules.rule import Rows
from numalign.placement.rules.volumes import intree
from numalign.placement.rules.volumes.volumestock import VolumeStock

NEVER: Final = -1
NO_ROWS: Final[Rows] = np.zeros(0, np.intp)


class VolumeKind(Struct, frozen=True):
    """What decides whether a volume suits a claim, beside its size and labels."""

    mode: str
    attributes: str
    access: frozenset[str]
    is_leaving: bool
    is_free: bool


class CataloguedVolume:
    """A volume with what is known about it; the rows that reach it, as of a generation of the world."""

    __slots__ = ("_generation", "_rows", "kind", "place", "reserved", "volume")

    def __init__(self, volume: PersistentVolume, kind: int) -> None:
        self.volume, self.kind = volume, kind
        self.place = (_nanos(volume.size), volume.metadata.name)
        reference = volume.spec.claim_ref
        self.reserved = None if reference is None else (reference.namespace, reference.name)
        self._rows, self._generation = NO_ROWS, NEVER

    def rows(self, world: ClusterState) -> Rows:
        if self._generation != world.generation:
            self._rows = rows(world, self.volume.spec.node_affinity.required)
            self._generation = world.generation
        return self._rows


class ClassCatalogue:
    def __init__(self, entries: Sequence[CataloguedVolume], kinds: Sequence[VolumeKind]) -> None:
        """Entries, smallest first; kinds by the number that entries have."""
        self.entries = tuple(entries)
        self._sizes = [entry.place[0] for entry in entries]
        self._kinds = tuple(kinds)
        self._kind_of = np.array([entry.kind for entry in entries], np.intp)
        self._reserved: dict[tuple[str, str], list[int]] = {}
        for number, reserved in enumerate([entry.reserved for entry in entries]):
            if reserved is not None:
                self._reserved.setdefault(reserved, []).append(number)

    def first(self, claim: PersistentVolumeClaim, world: ClusterState, taken: Sequence[Choice]) -> Choice:
        """By row, the first volume that suits the claim and that no earlier claim has taken there."""
        smallest = bisect_left(self._sizes, _nanos(claim.size))
        fit = [_is_fit(kind, claim) for kind in self._kinds]
        free = [is_fit and _is_free_for(kind, claim) for is_fit, kind in zip(fit, self._kinds, strict=True)]
        wanted = np.zeros(len(self._sizes), np.bool_)
        wanted[smallest:] = np.array(free, np.bool_)[self._kind_of[smallest:]]
        if claim.spec.selector is not None:
            wanted = self._chosen(wanted, claim)
        reserved = self._reserved.get((claim.metadata.namespace, claim.metadata.name), ())
        own = [
            number
            for number in reserved
            if number >= smallest and fit[self._kind_of[number]] and is_reserved(self.entries[number].volume, claim)
        ]
        return self._own_or(wanted, own, world, taken)

    def _own_or(self, wanted: Flags, own: Sequence[int], world: ClusterState, taken: Sequence[Choice]) -> Choice:
        """A volume that was set aside for the claim is the only one for it; but a pod may name a claim twice, and looks
        further for the second where the first has that volume."""
        if not own:
            return first(self.entries, wanted, world, taken)
        number, *others = own
        choice = first(self.entries, np.arange(len(self.entries)) == number, world, taken)
        has_it = [each == number for each in taken]
        if not np.any(has_it):
            return choice
        return np.where(np.any(has_it, axis=0), self._own_or(wanted, others, world, taken), choice)

    def _chosen(self, wanted: Flags, claim: PersistentVolumeClaim) -> Flags:
        for number in np.flatnonzero(wanted).tolist():
            wanted[number] = selectors.matches(claim.spec.selector, self.entries[number].volume.metadata.labels)
        return wanted


class Catalogues:
    """One for each class; follows the volumes of a stock."""

    def __init__(self, stock: VolumeStock) -> None:
        self._stock = stock
        self._kinds: dict[VolumeKind, int] = {}
        self._by_name: dict[str, CataloguedVolume] = {}
        self._by_class: dict[str, list[CataloguedVolume]] = {}
        self._made: dict[str, ClassCatalogue] = {}
        self._stale: set[str] = set()
        stock.volumes.follow(self._changed)

    def of(self, storage_class: str) -> ClassCatalogue:
        while self._stale:
            self._look_again(self._stale.pop())
        if storage_class not in self._made:
            self._made[storage_class] = ClassCatalogue(self._by_class.get(storage_class, []), tuple(self._kinds))
        return self._made[storage_class]

    def _changed(self, volume: PersistentVolume) -> None:
        self._stale.add(volume.metadata.name)

    def _look_again(self, name: str) -> None:
        before = self._by_name.pop(name, None)
        if before is not None:
            entries = self._of_class(before)
            del entries[bisect_left(entries, before.place, key=_place)]
        volume = self._stock.volumes.get(name)
        if volume is not None:
            kind = self._kinds.setdefault(_kind(volume), len(self._kinds))
            self._by_name[name] = entry = CataloguedVolume(volume, kind)
            insort(self._of_class(entry), entry, key=_place)

    def _of_class(self, entry: CataloguedVolume) -> list[CataloguedVolume]:
        """The entries of the volume's class, for a change; the catalogue is rebuilt afterwards."""
        name = entry.volume.class_name
        self._made.pop(name, None)
        return self._by_class.setdefault(name, [])


def is_reserved(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume was set aside for this claim."""
    reference, meta = volume.spec.claim_ref, claim.metadata
    if reference is None or (reference.namespace, reference.name) != (meta.namespace, meta.name):
        return False
    return reference.uid in ("", meta.uid)


def _kind(volume: PersistentVolume) -> VolumeKind:
    return VolumeKind(
        mode=volume.spec.volume_mode,
        attributes=volume.spec.volume_attributes_class_name,
        access=frozenset(volume.spec.access_modes),
        is_leaving=volume.metadata.deletion_timestamp is not None,
        is_free=volume.spec.claim_ref is None and volume.status.phase == AVAILABLE,
    )


def _is_fit(kind: VolumeKind, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume suits the claim; also checked for a volume that is reserved for the claim."""
    spec = claim.spec
    return (kind.mode, kind.attributes) == (spec.volume_mode, spec.volume_attributes_class_name) and not kind.is_leaving


def _is_free_for(kind: VolumeKind, claim: PersistentVolumeClaim) -> bool:
    return kind.is_free and kind.access.issuperset(claim.spec.access_modes)


def _place(entry: CataloguedVolume) -> tuple[int, str]:
    return entry.place


def _nanos(size: quantity.Quantity | None) -> int:
    return size.nanos if size else 0


class ClaimName(Struct, frozen=True):
    namespace: str
    name: str
    is_ephemeral: bool = False

    @property
    def full(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def named(pod: Pod) -> Iterator[ClaimName]:
    """The pod's claims in the order of its volumes; twice, if two volumes use one."""
    for volume in pod.spec.volumes:
        name = of_volume(pod, volume)
        if name is not None:
            yield name


def are_special(volumes: Iterable[Volume]) -> bool:
    """Whether one of them is more than files that the node's kubelet makes: a claim, or a disk."""
    return any(volume != Volume(name=volume.name, image=volume.image) for volume in volumes)


def of_volume(pod: Pod, volume: Volume) -> ClaimName | None:
    if volume.persistent_volume_claim is not None:
        return ClaimName(pod.metadata.namespace, volume.persistent_volume_claim.claim_name)
    if volume.ephemeral is not None:
        return ClaimName(pod.metadata.namespace, f"{pod.metadata.name}-{volume.name}", is_ephemeral=True)
    return None


def is_for(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    """Whether the claim was made for this pod."""
    controller = claim.metadata.controller
    return controller is not None and controller.uid == pod.metadata.uid


def not_found(name: str) -> str:
    return f'persistentvolumeclaim "{name}" not found'


def not_owned(claim: ClaimName, pod: Pod) -> str:
    whole, meta = f"{claim.namespace}/{claim.name}", pod.metadata
    return f"PVC {whole} was not created for pod {meta.namespace}/{meta.name} (pod is not owner)"


BLOCK: Final = 256
"""Things that are looked at together; many of them may be within reach of every row."""
NONE: Final = -1

Choice = NDArray[np.int32]
"""By row: the number of a thing, or `NONE`."""


class Reachable(Protocol):
    def rows(self, world: ClusterState) -> Rows:
        """Rows that reach it; it is to keep them while the world's generation is the same."""


def first(things: Sequence[Reachable], wanted: Flags, world: ClusterState, taken: Sequence[Choice] = ()) -> Choice:
    """By row, the first of the wanted objects that the row reaches and that is not taken there."""
    choice = np.full(world.capacity, NONE, np.int32)
    numbers = np.flatnonzero(wanted)
    for start in range(0, len(numbers), BLOCK):
        if not np.any(world.present & (choice == NONE)):
            break
        block = numbers[start : start + BLOCK]
        _offer(block, [things[number].rows(world) for number in block.tolist()], choice, taken)
    return choice


def _offer(numbers: Rows, reached: Sequence[Rows], choice: Choice, taken: Sequence[Choice]) -> None:
    rows = np.concatenate(reached)
    offered = np.repeat(numbers, [len(each) for each in reached])
    free = choice[rows] == NONE
    for earlier in taken:
        free &= earlier[rows] != offered
    # Of several things for one row the last that is written stays: the first in order.
    choice[rows[free][::-1]] = offered[free][::-1]


def flags(world: ClusterState, selector: NodeSelector | None) -> Flags:
    """Rows that match the selector; all rows without one."""
    return world.present if selector is None else nodeaffinity.picked(world, selector) & world.present


def rows(world: ClusterState, selector: NodeSelector | None) -> Rows:
    pair = _only_pair(selector)
    if pair is None:
        return np.flatnonzero(flags(world, selector))
    # Nearly all local disks: one look at one column instead of a whole selector.
    column = world.labels.column(pair[0])
    number = column.number(pair[1])
    return np.zeros(0, np.intp) if number is None else np.flatnonzero(column.ids == number)


def of_bound(volume: PersistentVolume, stock: VolumeStock, world: ClusterState) -> Flags:
    """Volumes of built-in plugins are reached as their driver says, on nodes where it serves them."""
    written = flags(world, volume.spec.node_affinity.required)
    plugin = intree.plugin_of(volume.spec)
    if plugin is None:
        return written
    migrated = np.zeros(world.capacity, np.bool_)
    for name, row in world.rows.items():
        node = stock.nodes.known(name)
        migrated[row] = node is not None and plugin.name in node.migrated_plugins
    return np.where(migrated, flags(world, intree.affinity(volume, plugin)), written)


def of_topologies(terms: Iterable[TopologyTerm]) -> NodeSelector | None:
    """The node selector of allowed topologies; None: every node."""
    chosen = tuple(
        NodeSelectorTerm(match_expressions=tuple(_in(each.key, each.values) for each in term.match_label_expressions))
        for term in terms
    )
    return NodeSelector(chosen) if chosen else None


def of_labels(selector: LabelSelector | None) -> NodeSelector | None:
    """The node selector of a label selector; None: every node. A missing selector reaches no node."""
    if selector is None:
        return NodeSelector()
    if selector.is_empty:
        return None
    pairs = (_in(key, (value,)) for key, value in sorted(selector.match_labels.items()))
    others = (NodeSelectorRequirement(each.key, each.operator, each.values) for each in selector.match_expressions)
    return NodeSelector((NodeSelectorTerm(match_expressions=(*pairs, *others)),))


def _only_pair(selector: NodeSelector | None) -> tuple[str, str] | None:
    """The label that a node must have, where that is all that is asked for."""
    if selector is None or len(selector.node_selector_terms) != 1:
        return None
    (term,) = selector.node_selector_terms
    if term.match_fields or len(term.match_expressions) != 1:
        return None
    (only,) = term.match_expressions
    return (only.key, only.values[0]) if only.operator == "In" and len(only.values) == 1 else None


def _in(key: str, values: tuple[str, ...]) -> NodeSelectorRequirement:
    return NodeSelectorRequirement(key=key, operator="In", values=values)


class VolumeMatch(Struct, frozen=True):
    """The volume that a claim gets on each row, by number."""

    claim: PersistentVolumeClaim
    choice: Choice
    catalogue: ClassCatalogue

    def on(self, row: int) -> PersistentVolume | None:
        return self.volume(int(self.choice[row]))

    def volume(self, number: int) -> PersistentVolume | None:
        return None if number == NONE else self.catalogue.entries[number].volume


def matches(claims: Sequence[PersistentVolumeClaim], catalogues: Catalogues, world: ClusterState) -> list[VolumeMatch]:
    """The matches of claims, in the order in which claims are served."""
    found: list[VolumeMatch] = []
    for claim in sorted(claims, key=lambda claim: claim.size or quantity.ZERO):
        catalogue = catalogues.of(claim.class_name)
        taken = [each.choice for each in found if each.catalogue is catalogue]
        found.append(VolumeMatch(claim, catalogue.first(claim, world, taken), catalogue))
    return found
