"""VolumeBinding: nodes must reach a pod's bound volumes, and must have or get volumes for its unbound claims.

Claims with WaitForFirstConsumer get a free volume or one to be provisioned; `plan` lists the writes for the chosen
node. Other unbound claims reject every node, and preemption does not help (kube-scheduler spec 1.17). The score
compares the requested space with the size of the volumes, or with the capacity that the driver reports, along the
profile's shape; a node has the mean over its classes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from numalign.api.decode import quantity
from numalign.api.objects.pod import Pod
from numalign.api.objects.volumes import LOST, WAIT_FOR_FIRST_CONSUMER, PersistentVolumeClaim
from numalign.api.schedulerconfig.pluginargs import VolumeBindingArgs
from numalign.placement.rules.clusterstate import ClusterState, Flags
from numalign.placement.rules.resources import strategies
from numalign.placement.rules.resources.strategies import FULL
from numalign.placement.rules.rule import Codes, Refusal, Refusals, Rows, Scores, StaticFilter
from numalign.placement.rules.volumes import volumecatalogue
from numalign.placement.rules.volumes.volumeactions import BindVolume, SelectNode, VolumePlan
from numalign.placement.rules.volumes.volumecatalogue import NONE, Catalogues, ClaimName, VolumeMatch
from numalign.placement.rules.volumes.volumeprovisioning import Provision, Provisioning
from numalign.placement.rules.volumes.volumestock import VolumeStock


class ClassUse:
    """What is asked for of one class, and what there is, by row."""

    def __init__(self, rows: int) -> None:
        self._asked: Scores = np.zeros(rows, np.int64)
        self._there: Scores = np.zeros(rows, np.int64)
        self.counts: Flags = np.zeros(rows, np.bool_)

    def add(self, where: Flags, asked: int, there: Scores) -> None:
        self._there += np.where(where, there, 0)
        self._ask(where, asked)

    def share(self, where: Flags, asked: int, there: Scores) -> None:
        """Several volumes are to be made of the same space."""
        self._there = np.where(where, there, self._there)
        self._ask(where, asked)

    def score(self, line: Scores) -> Scores:
        over = (self._there == 0) | (self._asked > self._there)
        used: Scores = np.where(over, FULL, self._asked * FULL // np.maximum(self._there, 1))
        return np.where(self.counts, line[used], 0)

    def _ask(self, where: Flags, asked: int) -> None:
        self._asked += np.where(where, asked, 0)
        self.counts |= where


def score(line: Scores, matches: Sequence[VolumeMatch], provisions: Sequence[Provision], rows: Rows) -> Scores:
    uses: dict[str, ClassUse] = {}
    exists = np.zeros(len(rows), np.bool_)
    for match in matches:
        exists |= match.choice[rows] != NONE
        for name, where, sizes in _by_class(match, rows):
            uses.setdefault(name, ClassUse(len(rows))).add(where, _value(match.claim.size), sizes)
    for each in provisions:
        report = each.report[rows]
        # The last place is for rows without a report.
        space = np.append(each.space, 0)[report]
        where = each.wanted[rows] & (report != NONE) & ~exists
        uses.setdefault(each.claim.spec.storage_class_name, ClassUse(len(rows))).share(
            where, _value(each.claim.size), space
        )
    return _mean([use.score(line) for use in uses.values()], [use.counts for use in uses.values()], len(rows))


def _by_class(match: VolumeMatch, rows: Rows) -> Iterator[tuple[str, Flags, Scores]]:
    """Rows that get a volume, and its size, by the class that the volume says it is of."""
    numbers, places = np.unique(match.choice[rows], return_inverse=True)
    volumes = list(map(match.volume, numbers.tolist()))
    sizes = np.array([_value(volume.size) if volume else 0 for volume in volumes], np.int64)[places]
    names = [volume.spec.storage_class_name if volume else None for volume in volumes]
    for name in sorted({name for name in names if name is not None}):
        yield name, np.array([each == name for each in names], np.bool_)[places], sizes


def _value(size: quantity.Quantity | None) -> int:
    return size.value if size else 0


def _mean(scores: Sequence[Scores], counts: Sequence[Flags], rows: int) -> Scores:
    total, classes = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    for each, counted in zip(scores, counts, strict=True):
        total += each
        classes += counted
    # Rounded to the nearest, halves up.
    return np.where(classes > 0, (2 * total + classes) // np.maximum(2 * classes, 1), 0)


NOT_IN_REACH: Final = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME: Final = "node(s) didn't find available persistent volumes to bind"
NO_SPACE: Final = "node(s) did not have enough free storage"
VOLUME_GONE: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
REASONS: Final = (NOT_IN_REACH, NO_VOLUME, NO_SPACE, VOLUME_GONE)
"""Reasons in the order in which a node with several reports them."""
UNBOUND: Final = "pod has unbound immediate PersistentVolumeClaims"
DEFAULTS: Final = VolumeBindingArgs()


def _given(code: int) -> tuple[str, ...]:
    return tuple(reason for place, reason in enumerate(REASONS) if code >> place & 1)


REFUSALS: Final = Refusals(*(Refusal(_given(code), unresolvable=True) for code in range(1, 1 << len(REASONS))))
"""A code has a bit for each reason."""


Moment = tuple[Pod, int, int]
"""The pod, and the generations of world and stock."""


class PreparedVolumes(Struct, frozen=True):
    """A pod's claims by what is to be done about them, and what was found for those without a volume."""

    bound: list[PersistentVolumeClaim]
    matches: list[VolumeMatch]
    provisions: list[Provision]
    codes: Codes
    refusals: Refusals = REFUSALS
    only: None = None


class VolumeBinding(StaticFilter):
    name: Final = "VolumeBinding"

    def __init__(self, stock: VolumeStock, args: VolumeBindingArgs = DEFAULTS) -> None:
        self._stock, self._catalogues, self._provisioning = stock, Catalogues(stock), Provisioning(stock)
        self._line = np.array(strategies.line(args.shape), np.int64)
        self._last: tuple[Moment, PreparedVolumes | Refusal | None] | None = None

    def concerns(self, pod: Pod) -> bool:
        return bool(pod.spec.volumes) and volumecatalogue.are_special(pod.spec.volumes)

    def prepare(self, pod: Pod, world: ClusterState) -> PreparedVolumes | Refusal | None:
        if not pod.spec.volumes:
            return None
        # Filter and score ask one after the other, with nothing in between.
        moment = (pod, world.generation, self._stock.generation)
        if self._last is None or self._last[0] != moment:
            self._last = (moment, self._prepared(pod, world))
        return self._last[1]

    def prepare_score(self, pod: Pod, world: ClusterState, rows: Rows) -> PreparedVolumes | None:
        prepared = self.prepare(pod, world)
        return prepared if isinstance(prepared, PreparedVolumes) else None

    def score(self, prepared: PreparedVolumes, rows: Rows) -> Scores:
        return score(self._line, prepared.matches, prepared.provisions, rows)

    def normalized(self, prepared: PreparedVolumes, raw: Scores) -> Scores:
        return raw

    def plan(self, prepared: PreparedVolumes, row: int, node: str) -> VolumePlan:
        """The writes for the pod's claims if the pod is placed on the row."""
        found = ((match.on(row), match.claim) for match in prepared.matches)
        binds = tuple(BindVolume(volume, claim) for volume, claim in found if volume is not None)
        made = tuple(SelectNode(each.claim, node) for each in prepared.provisions if each.wanted[row])
        return VolumePlan(node=node, binds=binds, selections=made)

    def _prepared(self, pod: Pod, world: ClusterState) -> PreparedVolumes | Refusal | None:
        names = list(volumecatalogue.named(pod))
        problem = next((each for each in (self._problem(name, pod) for name in names) if each), None)
        if problem is not None:
            return Refusal((problem,), unresolvable=True)
        claims = [claim for claim in (self._stock.claims.get(name.full) for name in names) if claim is not None]
        bound, waiting = [each for each in claims if each.is_bound], [each for each in claims if not each.is_bound]
        problem = next((each for each in map(self._why_not_waiting, waiting) if each), None)
        if problem is not None:
            return Refusal((problem,), unresolvable=True)
        return self._volumes(bound, waiting, world) if claims else None

    def _problem(self, name: ClaimName, pod: Pod) -> str | None:
        claim = self._stock.claims.known(name.full)
        if claim is None and name.is_ephemeral:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name.name}"'
        if claim is None:
            return volumecatalogue.not_found(name.name)
        if claim.status.phase == LOST:
            gone = claim.spec.volume_name
            return f'persistentvolumeclaim "{name.name}" bound to non-existent persistentvolume "{gone}"'
        if claim.metadata.deletion_timestamp is not None:
            return f'persistentvolumeclaim "{name.name}" is being deleted'
        if name.is_ephemeral and not volumecatalogue.is_for(claim, pod):
            return volumecatalogue.not_owned(name, pod)
        return None

    def _why_not_waiting(self, claim: PersistentVolumeClaim) -> str | None:
        """None: it waits for its first pod, as its class wants it."""
        storage_class = self._stock.classes.known(claim.class_name) if claim.class_name else None
        if storage_class is not None and not storage_class.volume_binding_mode:
            return f'VolumeBindingMode not set for StorageClass "{claim.class_name}"'
        waits = storage_class is not None and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
        return None if waits and not claim.spec.volume_name else UNBOUND

    def _volumes(
        self, bound: list[PersistentVolumeClaim], waiting: list[PersistentVolumeClaim], world: ClusterState
    ) -> PreparedVolumes:
        selected = [claim for claim in waiting if claim.selected_node is not None]
        searching = [claim for claim in waiting if claim.selected_node is None]
        matches = volumecatalogue.matches(searching, self._catalogues, world)
        provisions = list(self._provisions(selected, matches, world))
        codes = np.zeros(world.capacity, np.int32)
        self._judge_bound(bound, world, codes)
        _judge_waiting(selected, provisions, world, codes)
        return PreparedVolumes(bound=bound, matches=matches, provisions=provisions, codes=codes)

    def _provisions(
        self, selected: Sequence[PersistentVolumeClaim], matches: Sequence[VolumeMatch], world: ClusterState
    ) -> Iterator[Provision]:
        for claim in selected:
            yield self._provisioning.provision(claim, world.present, world)
        for match in matches:
            wanted = np.equal(match.choice, NONE) & world.present
            if wanted.any():
                yield self._provisioning.provision(match.claim, wanted, world)

    def _judge_bound(self, bound: Sequence[PersistentVolumeClaim], world: ClusterState, codes: Codes) -> None:
        """A node gives the reason of the first claim that it cannot serve."""
        for claim in bound:
            volume = self._stock.volumes.get(claim.spec.volume_name)
            bit = _bit(VOLUME_GONE if volume is None else NOT_IN_REACH)
            nowhere = np.zeros(world.capacity, np.bool_)
            reached = nowhere if volume is None else volumecatalogue.of_bound(volume, self._stock, world)
            codes[~reached & (codes == 0)] = bit


def _judge_waiting(
    selected: Sequence[PersistentVolumeClaim], provisions: Sequence[Provision], world: ClusterState, codes: Codes
) -> None:
    """The first claim that cannot be served on a node gives its reason, beside that of bound claims."""
    open_rows = world.present.copy()
    for claim in selected:
        elsewhere = open_rows.copy()
        if claim.selected_node in world.rows:
            elsewhere[world.rows[claim.selected_node]] = False
        _refuse(codes, open_rows, elsewhere, NO_VOLUME)
    for each in provisions:
        _refuse(codes, open_rows, each.wanted & ~each.possible, NO_VOLUME)
        _refuse(codes, open_rows, each.wanted & ~each.roomy, NO_SPACE)


def _refuse(codes: Codes, open_rows: Flags, where: Flags, reason: str) -> None:
    refused = open_rows & where
    codes[refused] |= _bit(reason)
    open_rows &= ~refused


def _bit(reason: str) -> int:
    return 1 << REASONS.index(reason)
