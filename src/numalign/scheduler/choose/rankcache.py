"""Nodes by rank, kept from pod to pod of one kind: what most pods are placed by.

`choosing` asks here before it goes the long way. Most rules judge a node by that node alone, and the last pod changed
one node: its rank is worked out again, and the best one is at hand. Where rules look around (spreading, affinity,
preferences), their part is worked out for all nodes and put on top. The answer is the long way's, down to the draw
among equals. Kinds of pods that are met for the first time, and pods that fit nowhere, go the long way."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from numalign.api.caches import LruCache
from numalign.api.objects import noderequests
from numalign.api.objects.pod import Pod
from numalign.placement.columns.shapes import Shape
from numalign.placement.decisions import Decision, Randomness
from numalign.placement.engine import Engine
from numalign.placement.rules.clusterstate import World
from numalign.placement.rules.rowtables import Follows
from numalign.placement.rules.rule import FITS, AloneScore, Fixed, LooksAround, Refusal, Rows, Scores
from numalign.scheduler.choose import certainty, podkind
from numalign.scheduler.choose.noderanks import TIER_BITS, Ranks, Terms
from numalign.scheduler.choose.podkind import Likenesses
from numalign.scheduler.choose.profiles import Around, Profile, Scored

MOST_KINDS: Final = 64
MOST_MET: Final = 1024
LARGEST_SCORE: Final = 256
"""Of one rule or the zones, before weights: more than any."""

Stamp = tuple[int, int, int]


class Asked(Struct, frozen=True):
    pod: Pod
    shape: Shape
    profile: Profile
    now: float


class Placed(Struct, frozen=True):
    decision: Decision
    fitting: int
    """How many nodes would do."""


class Standing(Struct, frozen=True):
    """As long as nodes are described as they were."""

    stamp: Stamp
    ranks: Ranks | None
    """None: pods of the kind always go the long way."""
    relative: Sequence[Scored] = ()
    """Scores of rules that do not look around, but are normalised over all nodes that would do."""


class Familiar(Struct, frozen=True):
    """What is known of pods that share their parts, as long as their surroundings are as they were."""

    shape: Shape
    profile: Profile
    surroundings: int
    around: Sequence[Around]
    """Rules that have something to say about them."""
    standing: list[Standing]
    """One, or none so far."""

    def holds(self, asked: Asked, surroundings: int) -> bool:
        return self.surroundings == surroundings and self.shape is asked.shape and self.profile is asked.profile


class Standings:
    def __init__(self, engine: Engine, world: World) -> None:
        self._engine, self._world = engine, world
        self._known: LruCache[Hashable, list[Standing]] = LruCache(MOST_KINDS)
        self._met: LruCache[Hashable, list[bool]] = LruCache(MOST_MET)
        self._familiar: Likenesses[Familiar] = Likenesses(MOST_KINDS)

    def placed(self, asked: Asked, rng: Randomness) -> Placed | None:
        """The pod on the best node, charged; None: it has to go the long way."""
        familiar = self._recognised(asked)
        standing = self._standing(asked, familiar.standing) if familiar is not None else None
        if familiar is None or standing is None or standing.ranks is None:
            return None
        if familiar.around or standing.relative:
            return self._placed_among(asked, standing, familiar.around, rng)
        decision = standing.ranks.placed(asked.pod, asked.now, rng)
        return Placed(decision, standing.ranks.fitting) if decision is not None else None

    def _placed_among(
        self, asked: Asked, standing: Standing, around: Sequence[Around], rng: Randomness
    ) -> Placed | None:
        ranks = standing.ranks
        assert ranks is not None
        ranks.refresh()
        rows = self._fitting(asked.pod, ranks, around)
        if rows is None:
            return None
        scored = [*standing.relative, *(each.scored for each in around if each.scored is not None)]
        totals = ranks.at(rows) + self._added(asked.pod, rows, scored)
        decision = ranks.placed_among(asked.pod, asked.now, (rows, totals), rng)
        return Placed(decision, len(rows)) if decision is not None else None

    def _fitting(self, pod: Pod, ranks: Ranks, around: Sequence[Around]) -> Rows | None:
        fits = ranks.open_rows()
        for each in around:
            prepared = each.filter.prepare(pod, self._world) if each.filter is not None else None
            if each.filter is None or prepared is None:
                continue
            if isinstance(prepared, Refusal) or prepared.only is not None:
                return None
            fits &= each.filter.filter(prepared) == FITS
        return np.flatnonzero(fits)

    def _added(self, pod: Pod, rows: Rows, scored: Sequence[Scored]) -> Scores:
        total = np.zeros(len(rows), np.int64)
        for each in scored if len(rows) > 1 else ():
            prepared = each.rule.prepare_score(pod, self._world, rows)
            if prepared is not None:
                total += each.weight * each.rule.normalized(prepared, each.rule.score(prepared, rows))
        return total

    # What is kept

    def _recognised(self, asked: Asked) -> Familiar | None:
        """None: pods of its kind were not met before."""
        pod, profile = asked.pod, asked.profile
        parts, surroundings = podkind.parts(pod), 0
        for each in profile.surrounded:
            surroundings += each.surroundings
        found = self._familiar.find(parts)
        if found is not None and found.holds(asked, surroundings):
            return found
        kind = _kind(asked)
        if self._is_new(kind):
            return None
        around = [each for each in profile.around if each.concerns(pod)]
        found = Familiar(asked.shape, profile, surroundings, around, self._known.get(kind, list))
        self._familiar.keep(parts, found)
        return found

    def _standing(self, asked: Asked, holder: list[Standing]) -> Standing:
        world = self._world
        stamp = world.description, world.capacity, len(world.totals.columns)
        if not holder or holder[0].stamp != stamp:
            holder[:] = [self._made(asked, stamp)]
        return holder[0]

    def _is_new(self, kind: Hashable) -> bool:
        met = self._met.get(kind, list)
        if met:
            return False
        met.append(True)
        return True

    def _made(self, asked: Asked, stamp: Stamp) -> Standing:
        profile = asked.profile
        weights = profile.zones_weight + sum(scored.weight for scored in profile.scores)
        filters = self._filters(asked.pod, profile)
        if self._engine.follow(asked.shape) is None:
            return Standing(stamp, None)
        if filters is None or weights * LARGEST_SCORE >= 1 << TIER_BITS or noderequests.is_resized(asked.pod):
            return Standing(stamp, None)
        relative: list[Scored] = []
        scores = list(self._scores(asked.pod, profile, relative))
        aligned = certainty.is_aligned(asked.shape)
        terms = Terms(filters=filters, scores=scores, zones_weight=profile.zones_weight, aligned=aligned)
        return Standing(stamp, Ranks(terms, asked.shape, self._engine, self._world), relative)

    def _filters(self, pod: Pod, profile: Profile) -> list[Follows] | None:
        found: list[Follows] = [Fixed((~self._world.present).astype(np.int32))]
        for rule, alone in profile.alone:
            prepared = rule.prepare(pod, self._world)
            if isinstance(prepared, Refusal) or (prepared is not None and prepared.only is not None):
                return None
            if prepared is not None:
                found.append(alone.filter_alone(prepared))
        return found

    def _scores(self, pod: Pod, profile: Profile, relative: list[Scored]) -> Iterator[tuple[int, Follows]]:
        """Those that are relative to other nodes are put aside."""
        rows = np.flatnonzero(self._world.present)
        for scored in profile.scores:
            rule = scored.rule
            prepared = None if isinstance(rule, LooksAround) else rule.prepare_score(pod, self._world, rows)
            if prepared is None:
                continue
            follows = rule.score_alone(prepared) if isinstance(rule, AloneScore) else None
            if follows is None:
                relative.append(scored)
            else:
                yield scored.weight, follows


def _kind(asked: Asked) -> Hashable:
    """All that rules which do not look around read of a pod; the shape has what it asks for."""
    spec = asked.pod.spec
    return (
        asked.profile.name,
        asked.shape.number,
        spec.tolerations,
        tuple(spec.node_selector.items()) if spec.node_selector else (),
        spec.affinity.node_affinity if spec.affinity is not None else None,
        tuple([container.image for container in spec.containers]),
        tuple([container.image for container in spec.init_containers]) if spec.init_containers else (),
        tuple([volume.image for volume in spec.volumes if volume.image is not None]) if spec.volumes else (),
    )
