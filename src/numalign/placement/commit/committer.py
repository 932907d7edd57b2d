"""Places a pod on one row with everything that the ledger knows about the node.

The exact flavour calls it with pods that numbers alone do not place, and the ledger with pods that others have bound.
`place` decides; this module gives it the row, the programs of pending pods and, where a complete report allows it, the
kubelet's own managers. It never writes to the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from types import MappingProxyType
from typing import Final

from msgspec import Struct, structs

from numalign.api.caches import BoundedCache
from numalign.api.objects.pod import Pod
from numalign.kubelet import admission, demand
from numalign.kubelet.state import KubeletState
from numalign.placement.columns import requests
from numalign.placement.columns.holdings import ContainerZones, Entry, Holding, Source
from numalign.placement.columns.noderules import NodeRules
from numalign.placement.columns.requests import Program
from numalign.placement.columns.shapes import Shape, Shapes
from numalign.placement.commit import anyorder, askkubelet, place, restorekubelet
from numalign.placement.commit.askkubelet import AdmissionQuestion
from numalign.placement.commit.place import Newcomer, Path, Placement
from numalign.placement.commit.restorekubelet import RestoredKubelet
from numalign.placement.ledger import rows, unobserved
from numalign.placement.ledger.charges import Cover, PodLife
from numalign.placement.ledger.nodeledger import NodeLedger, Row
from numalign.placement.ledger.sync import LedgerSync
from numalign.placement.rowmodel.evaluate import RowVerdict, Verdict

NOT_DECIDED = RowVerdict(code=Verdict.NOT_DECIDED)
NONE_COMING: Final[Mapping[str, Pod]] = MappingProxyType({})
MOST_ALONE: Final = 4096
"""Placements that are cached."""
Looks = tuple[object, ...]


class CommittedPod(Struct, frozen=True):
    """What the pod holds, and the changed holdings of pods that are pending on the node."""

    holding: Holding
    revised: tuple[Holding, ...] = ()


class Committer:
    """Places pods on rows of the ledger. `paths` counts how placements were found."""

    def __init__(self, mirror: LedgerSync, shapes: Shapes, *, trust_bind_order: bool) -> None:
        self.paths: Counter[str] = Counter()
        self._mirror = mirror
        self._shapes = shapes
        self._trusting = trust_bind_order
        self._alone: BoundedCache[Looks, Placement] = BoundedCache(MOST_ALONE)
        """Where no pod is pending, and numbers alone decide."""

    def place(self, pod: Pod, shape: Shape, row: Row, coming: Mapping[str, Pod] = NONE_COMING) -> CommittedPod | None:
        """The pod's placement; None: it is not certain that the kubelet admits it in every order of arrival.

        `coming`: pods by uid that the row has as pending and that the ledger does not have."""
        placement = self.placement(pod, shape, row, coming)
        return committed(pod, shape, placement) if placement.verdict.fits else None

    def placement(self, pod: Pod, shape: Shape, row: Row, coming: Mapping[str, Pod] = NONE_COMING) -> Placement:
        """The same with the verdict of a row that does not fit."""
        # At a start the same pods are placed on thousands of equal nodes.
        alone = looks(shape, row) if not row.pending else None
        known = self._alone.get(alone) if alone is not None else None
        placement = known or self._found(pod, shape, row, coming)
        if alone is not None and placement.path is Path.ALONE:
            self._alone.keep(alone, placement)
        self.paths[placement.path] += 1
        return placement

    def _found(self, pod: Pod, shape: Shape, row: Row, coming: Mapping[str, Pod]) -> Placement:
        rules = row.facts.rules
        return place.place(
            rows.settled(row, self._mirror.columns.resources),
            [each if each.promised else _as_far_as_known(each) for each in row.pending],
            Newcomer(shape.number, lambda: self._answer(pod, shape, row, coming)),
            lambda number: self.program(number, rules),
            trust_bind_order=self._trusting,
        )

    def revised(self, row: Row) -> Sequence[Holding]:
        """Pending pods that may get other zones, because the row has more free than when they were placed."""
        rules, resources = row.facts.rules, self._mirror.columns.resources
        settled = rows.settled(row, resources)
        pending = [_as_far_as_known(each) for each in row.pending]
        found = anyorder.place(settled, pending, Program(()), lambda number: self.program(number, rules))
        if found is None:
            return [self._anywhere(each, row) for each in row.pending]
        before = {each.uid: each for each in row.pending}
        return [_either(before[each.uid], each) for each in found.revised]

    def _anywhere(self, holding: Holding, row: Row) -> Holding:
        program = self.program(holding.shape, row.facts.rules)
        if program is None:
            return holding
        every = (row.facts.rules.every_zone,)
        return structs.replace(
            holding,
            source=Source.UNKNOWN,
            promised=holding.promised or holding.source is Source.PREDICTED,
            entries=unobserved.anywhere(program, row.facts, self._mirror.columns.resources),
            containers=tuple(ContainerZones(each.container, every) for each in holding.containers),
        )

    def program(self, number: int, rules: NodeRules) -> Program | None:
        """The program of a shape under these rules; None: the pod's spec was not seen."""
        if number < 0:
            return None
        return requests.program(self._shapes.all[number], rules, self._mirror.columns.resources)

    def forget_shapes(self) -> None:
        """Drops cached placements, because some shapes are no longer kept."""
        self._alone.clear()

    def _answer(self, pod: Pod, shape: Shape, row: Row, coming: Mapping[str, Pod]) -> RowVerdict:
        """The answer of the restored managers (engine spec R9)."""
        topology, node_ledger = self._mirror.topology(row.facts.node), self._mirror.ledger.node(row.facts.node)
        program = self.program(shape.number, row.facts.rules)
        if topology is None or node_ledger is None or program is None or _has_left(node_ledger):
            return NOT_DECIDED
        resources = self._mirror.columns.resources
        pods = {**{uid: record.pod for uid, record in node_ledger.records.items()}, **coming}
        restored = restorekubelet.restored(topology, {each.metadata.full_name: each for each in pods.values()})
        if restored is None:
            return NOT_DECIDED
        return askkubelet.answer(
            AdmissionQuestion(
                kubelet=restored.kubelet,
                state=_without(restored, [uid for uid, record in node_ledger.records.items() if record.absent]),
                pending=[pods[each.uid] for each in row.pending],
                pod=pod,
                program=program,
                row=rows.charged(row, resources),
                resources=resources,
            )
        )


def committed(pod: Pod, shape: Shape, placement: Placement) -> CommittedPod:
    """What the pod holds by a placement that fits."""
    return CommittedPod(_holding(pod, shape, placement), placement.revised)


def looks(shape: Shape, row: Row) -> Looks:
    """Equal for rows without pending pods on which pods of this shape get the same zones, unless ids decide."""
    facts = row.facts
    return (
        shape.number,
        facts.rules,
        facts.supplies,
        facts.classes,
        facts.free_full_core_cpus,
        facts.cores,
        tuple(facts.unknown_size.items()),
        tuple(row.settled),
        tuple(row.settled_homeless),
        row.settled_entries,
        row.settled_groups,
    )


def _has_left(node_ledger: NodeLedger) -> bool:
    """Whether a pod that the report still shows has ended.

    An ended pod that no report covered holds nothing, and its record may stay for minutes."""
    return any(
        record.life is not PodLife.LIVE and record.cover is not Cover.NO for record in node_ledger.records.values()
    )


def _without(restored: RestoredKubelet, uids: Iterable[str]) -> KubeletState:
    """The restored kubelet as if these pods had ended."""
    state = restored.state
    for uid in uids:
        state = state.without_pod(uid)
    return admission.collect(restored.kubelet, state) if state is not restored.state else state


def _as_far_as_known(holding: Holding) -> Holding:
    """Drops the shape of a holding with unknown zones, because the model cannot narrow these."""
    return holding if holding.source is not Source.UNKNOWN else structs.replace(holding, shape=-1)


def _either(before: Holding, now: Holding) -> Holding:
    """The holding of a pod that has the predicted zones or those that it would get now."""
    masks = {each.container: each.possible for each in before.containers}
    containers = tuple(
        ContainerZones(each.container, tuple(sorted({*each.possible, *masks.get(each.container, ())})))
        for each in now.containers
    )
    return structs.replace(now, entries=_joined(before.entries, now.entries), containers=containers)


def _joined(before: Sequence[Entry], now: Sequence[Entry]) -> tuple[Entry, ...]:
    """Joins entries: by column the larger amount, in the zones of both."""
    found = []
    for column in sorted({entry.column for entry in (*before, *now)}):
        parts = [[entry for entry in half if entry.column == column] for half in (before, now)]
        amounts = [sum(entry.amount for entry in part) for part in parts]
        zones = reduce(or_, (entry.zones for part in parts for entry in part))
        sure = amounts[0] == amounts[1] and all(entry.certain and entry.zones for part in parts for entry in part)
        found.append(Entry(column, max(amounts), zones, certain=sure))
    return tuple(found)


def _holding(pod: Pod, shape: Shape, placement: Placement) -> Holding:
    names: Sequence[str] = [container.name for container in pod.in_admission_order()]
    possible = placement.verdict.possible
    return Holding(
        uid=demand.identity(pod),
        name=pod.metadata.full_name,
        source=Source.PREDICTED,
        entries=placement.verdict.everything,
        containers=tuple(ContainerZones(name, masks) for name, masks in zip(names, possible, strict=False)),
        shape=shape.number,
        interchangeable=placement.interchangeable,
        unsteady=not placement.verdict.steady,
    )
