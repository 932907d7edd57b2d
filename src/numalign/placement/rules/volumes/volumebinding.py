"""VolumeBinding: pods go where their volumes are, or where volumes for them can be found or made.

Bound claims must be within the node's reach. Claims that wait for their first pod get a volume that is free
(`volumematching`) or one to be made (`volumeprovisioning`); what to write for the node that was chosen comes out of
`plan`. Claims that should be bound already refuse every node, and nothing here is for preemption to solve
(kube-scheduler spec 1.17)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from numalign.api.objects.pod import Pod
from numalign.api.objects.volumes import LOST, WAIT_FOR_FIRST_CONSUMER, PersistentVolumeClaim
from numalign.api.schedulerconfig.podruleargs import VolumeBindingArgs
from numalign.placement.rules.clusterstate import ClusterState, Flags
from numalign.placement.rules.resources import strategies
from numalign.placement.rules.rule import Codes, Refusal, Refusals, Rows, Scores, StaticFilter
from numalign.placement.rules.volumes import claims as podclaims
from numalign.placement.rules.volumes import volumematching, volumereach, volumescore
from numalign.placement.rules.volumes.claims import ClaimName
from numalign.placement.rules.volumes.volumeactions import BindVolume, SelectNode, VolumePlan
from numalign.placement.rules.volumes.volumecatalogue import Catalogues
from numalign.placement.rules.volumes.volumematching import VolumeMatch
from numalign.placement.rules.volumes.volumeprovisioning import Provision, Provisioning
from numalign.placement.rules.volumes.volumereach import NONE
from numalign.placement.rules.volumes.volumestock import VolumeStock

NOT_IN_REACH: Final = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME: Final = "node(s) didn't find available persistent volumes to bind"
NO_SPACE: Final = "node(s) did not have enough free storage"
VOLUME_GONE: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
REASONS: Final = (NOT_IN_REACH, NO_VOLUME, NO_SPACE, VOLUME_GONE)
"""In the order in which a node that has several gives them."""
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
        self._line = strategies.line(args.shape)
        self._last: tuple[Moment, PreparedVolumes | Refusal | None] | None = None

    def concerns(self, pod: Pod) -> bool:
        return bool(pod.spec.volumes) and podclaims.are_special(pod.spec.volumes)

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
        return volumescore.score(self._line, prepared.matches, prepared.provisions, rows)

    def normalized(self, prepared: PreparedVolumes, raw: Scores) -> Scores:
        return raw

    def plan(self, prepared: PreparedVolumes, row: int, node: str) -> VolumePlan:
        """What to write for the pod's claims when it goes to that row."""
        found = ((match.on(row), match.claim) for match in prepared.matches)
        binds = tuple(BindVolume(volume, claim) for volume, claim in found if volume is not None)
        made = tuple(SelectNode(each.claim, node) for each in prepared.provisions if each.wanted[row])
        return VolumePlan(node=node, binds=binds, selections=made)

    def _prepared(self, pod: Pod, world: ClusterState) -> PreparedVolumes | Refusal | None:
        names = list(podclaims.named(pod))
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
            return podclaims.not_found(name.name)
        if claim.status.phase == LOST:
            gone = claim.spec.volume_name
            return f'persistentvolumeclaim "{name.name}" bound to non-existent persistentvolume "{gone}"'
        if claim.metadata.deletion_timestamp is not None:
            return f'persistentvolumeclaim "{name.name}" is being deleted'
        if name.is_ephemeral and not podclaims.is_for(claim, pod):
            return podclaims.not_owned(name, pod)
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
        matches = volumematching.matches(searching, self._catalogues, world)
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
            reached = nowhere if volume is None else volumereach.of_bound(volume, self._stock, world)
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
