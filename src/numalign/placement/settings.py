"""How an engine decides, as its owner configures it.

`scheduler` makes these from its configuration, tests write them down. Nothing in here changes while an engine lives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct, field

from numalign.api.errors import BadObject
from numalign.placement.referenceargs import NodeResourceTopologyMatchArgs, Strategy

Flavour = Literal["exact", "reference"]
CacheMode = Literal["predictive", "passthrough", "discardReserved", "overReserve"]

MODES: Final[Mapping[Flavour, tuple[CacheMode, ...]]] = {
    "exact": ("predictive",),
    "reference": ("overReserve", "discardReserved", "passthrough"),
}
"""Which ways of knowing a node go with a flavour; the first is its default."""


class Settings(Struct, frozen=True, kw_only=True):
    """`exact` says what the kubelet will do, `reference` what NodeResourceTopologyMatch would say."""

    flavour: Flavour = "exact"
    cache_mode: CacheMode | None = None
    """None: the flavour's own."""
    strategy: Strategy = Strategy.LEAST_ALLOCATED
    weights: Mapping[str, int] = field(default_factory=dict)
    """By resource; 1 where nothing is said. Less than 1 is none in the exact flavour and 1 in the reference flavour."""
    trust_bind_order: bool = False
    """Suppose that kubelets admit pods in the order in which they were bound (engine spec R2)."""
    live_shapes: int = 1024
    """Shapes whose verdicts are kept; the one not asked about for longest goes first."""
    keep_deleted_reports: float | None = None
    """Seconds for which a deleted report stays in force in the exact flavour; None: as long as its Node is there."""
    profiles: tuple[str, ...] = ("default-scheduler",)
    """Names under which pods are scheduled by us."""
    reference: NodeResourceTopologyMatchArgs = NodeResourceTopologyMatchArgs()
    """What the reference flavour's cache is set to; strategy and weights above win over the ones in here."""


def cache_mode(settings: Settings) -> CacheMode:
    """The mode in effect, or BadObject where flavour and mode do not go together."""
    known = MODES[settings.flavour]
    mode = settings.cache_mode or known[0]
    if mode not in known:
        why = f'"{mode}" does not go with flavour "{settings.flavour}"; write one of {", ".join(known)} or leave it out'
        raise BadObject("Settings", "", "cacheMode", why)
    return mode
