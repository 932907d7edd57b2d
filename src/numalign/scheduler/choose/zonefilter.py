"""What NodeResourceTopologyMatch says for a profile: the engine's answers, or no objection where it is disabled.

`choosing`, `preemption`, `explanations` and `advice` ask here instead of the engine, because a profile may disable the
plugin, as kube-scheduler's configuration allows for any plugin. Such a profile places pods by its other rules, which
look at node totals only; the engine charges its pods like those of other schedulers. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from numalign.api.nrt.topologymanager import Policy
from numalign.api.objects.pod import Pod
from numalign.placement.columns.shapes import Shape
from numalign.placement.decisions import Certainty, Codes, Decision
from numalign.placement.engine import Engine
from numalign.placement.explain import whatif as engines
from numalign.placement.explain.whatif import NO_PODS, NOBODY_HOLDS, WhatIf
from numalign.placement.rules.rule import Rows
from numalign.scheduler.choose.profiles import Profile


def shape(profile: Profile, engine: Engine, pod: Pod) -> Shape:
    """The pod's shape, or BadObject where the profile looks at zones and the pod's annotations make no sense."""
    return engine.shape(read(profile, pod))


def read(profile: Profile, pod: Pod) -> Pod:
    """The pod as the profile reads it: annotations are about zones only."""
    return pod if profile.zones else structs.replace(pod, metadata=structs.replace(pod.metadata, annotations={}))


def survey(profile: Profile, engine: Engine, shape: Shape, rows: Rows) -> Codes:
    """By row, as `Engine.survey` gives it; without the plugin, every row scores the same."""
    return engine.survey(shape, rows) if profile.zones else np.zeros(engine.height, np.int32)


def certainty(profile: Profile, engine: Engine, code: int, *, aligned: bool) -> int:
    """As `Engine.certainty` says; without the plugin, scores alone count."""
    return engine.certainty(code, aligned=aligned) if profile.zones else Certainty.BY_SCORE


def certainties(profile: Profile, engine: Engine, codes: Codes, *, aligned: bool) -> NDArray[np.int64]:
    """The same for many rows."""
    if profile.zones:
        return engine.certainties(codes, aligned=aligned)
    return np.full(len(codes), Certainty.BY_SCORE, np.int64)


def place(profile: Profile, engine: Engine, pod: Pod, shape: Shape, row: int, now: float) -> Decision | None:
    return engine.place(pod, shape, row, now) if profile.zones else engine.assign(pod, row, now)


def whatif(profile: Profile, engine: Engine, pod: Pod, shape: Shape) -> WhatIf:
    return engines.of(engine, pod, shape) if profile.zones else NoZones()


class NoZones:
    """Answers for a profile that does not look at zones: the zones of no node are in the way."""

    def has_totals(self, row: int, without: Collection[str], beside: Sequence[Pod] = ()) -> bool:
        """NodeResourcesFit decides this."""
        return True

    def admits(self, row: int, without: Collection[str], beside: Sequence[Pod] = ()) -> bool:
        return True

    def leaves_room(self, row: int, leaving: Collection[str], promised: Sequence[Pod]) -> bool:
        return True

    def holders(self, row: int) -> Mapping[str, int]:
        return NOBODY_HOLDS

    def is_possible(self, row: int) -> bool:
        return True

    def is_final(self, row: int) -> bool:
        return True

    def admits_under(self, row: int, policy: Policy) -> bool:
        return True

    def pending(self, row: int) -> frozenset[str]:
        return NO_PODS

    def known(self, row: int) -> frozenset[str]:
        return NO_PODS
