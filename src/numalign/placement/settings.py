"""How an engine decides, as its owner configures it.

`scheduler` makes these from its configuration. They do not change while an engine exists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct, field

from numalign.api.errors import BadObject
from numalign.api.objects.pod import Pod
from numalign.placement.referenceargs import NodeResourceTopologyMatchArgs, Strategy

Flavour = Literal["exact", "reference"]
CacheMode = Literal["predictive", "passthrough", "discardReserved", "overReserve"]

MODES: Final[Mapping[Flavour, tuple[CacheMode, ...]]] = {
    "exact": ("predictive",),
    "reference": ("overReserve", "discardReserved", "passthrough"),
}
"""The cache modes of each flavour; the first is its default."""


class Settings(Struct, frozen=True, kw_only=True):
    """Engine settings. Flavour `exact` predicts the kubelet, `reference` repeats NodeResourceTopologyMatch."""

    flavour: Flavour = "exact"
    cache_mode: CacheMode | None = None
    """None: the default of the flavour."""
    strategy: Strategy = Strategy.LEAST_ALLOCATED
    weights: Mapping[str, int] = field(default_factory=dict)
    """Weights by resource; default 1. Less than 1 counts as 0 in the exact flavour and as 1 in the reference one."""
    typical: tuple[tuple[Pod, float], ...] = ()
    """For the strategy LeastFragmentation: pods with weights. Empty: those that were placed so far are typical."""
    trust_bind_order: bool = False
    """Whether to assume that kubelets admit pods in the order in which they were bound (engine spec R2)."""
    koordinator_annotations: bool = False
    """Whether Koordinator's annotations of pods count on nodes in direct mode, and its agent can read decisions."""
    live_shapes: int = 1024
    """Number of shapes whose verdicts are kept; the least recently used is dropped first."""
    keep_deleted_reports: float | None = None
    """Seconds for which a deleted report stays in force in the exact flavour; None: as long as its Node is there."""
    profiles: tuple[str, ...] = ("default-scheduler",)
    """Scheduler names of our profiles."""
    reference: NodeResourceTopologyMatchArgs = NodeResourceTopologyMatchArgs()
    """Settings of the reference flavour's cache; strategy and weights above override the ones in here."""


def check_strategy(settings: Settings) -> None:
    """BadObject where the flavour does not know the strategy."""
    if settings.flavour == "reference" and settings.strategy is Strategy.LEAST_FRAGMENTATION:
        why = "the plugin does not have it; use flavour exact, or another strategy"
        raise BadObject("Settings", "", "scoringStrategy.type", f"{Strategy.LEAST_FRAGMENTATION}: {why}")


def cache_mode(settings: Settings) -> CacheMode:
    """The mode in effect, or BadObject where flavour and mode do not go together."""
    known = MODES[settings.flavour]
    mode = settings.cache_mode or known[0]
    if mode not in known:
        why = f'"{mode}" does not go with flavour "{settings.flavour}"; write one of {", ".join(known)} or leave it out'
        raise BadObject("Settings", "", "cacheMode", why)
    return mode
