"""Profiles: under one scheduler name, which rules filter, which score, and by which weight.

`main` makes them from the configuration, `choosing` uses them. The order of filters is the order of the stock
scheduler's plugins: a node tells the first reason it meets (kube-scheduler spec 1.1). Zones come last, so that plain
shortages are told as such."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from numalign.api.schedulerconfig import configuration, plugins
from numalign.placement.rules.rule import FilterRule, ScoreRule
from numalign.placement.rules.volumebinding import VolumeBinding

NAME: Final = configuration.NAME
ZONES: Final = plugins.ZONES
"""The plugin's name that users know from the Go scheduler; the engine answers for it."""


class Scored(Struct, frozen=True):
    rule: ScoreRule[Any]
    weight: int


class Profile(Struct, frozen=True, kw_only=True):
    name: str = NAME
    filters: tuple[FilterRule[Any], ...] = ()
    scores: tuple[Scored, ...] = ()
    zones_weight: int = 1
    percentage: int = 100
    """Of nodes to score; the search ends when so many are found (kube-scheduler spec 4.3). 0: as stock adapts it."""
    volumes: VolumeBinding | None = None
    """Whoever plans what is to be written for a pod's claims, before the pod is bound."""
    volume_seconds: float = 600.0
    """How long volumes may take until the attempt is given up."""
