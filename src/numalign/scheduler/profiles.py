"""Profiles: the filter and score plugins of one scheduler name, with their weights.

`plugins` makes them from the configuration, `choose` runs them. Filters run in kube-scheduler's order, because a
node reports the first reason (kube-scheduler spec 1.1). Zones come last, so that plain shortages are reported as
such."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Final

from msgspec import Struct

from numalign.api.objects.pod import Pod
from numalign.api.schedulerconfig import configuration, plugins
from numalign.api.schedulerconfig.pluginargs import DefaultPreemptionArgs
from numalign.placement.rules.rule import (
    AloneFilter,
    AloneScore,
    AmountsFilter,
    AmountsScore,
    FilterRule,
    LooksAround,
    ScoreRule,
    Surrounded,
)
from numalign.placement.rules.volumes.volumebinding import VolumeBinding

NAME: Final = configuration.NAME
ZONES: Final = plugins.ZONES
"""The name of the zone plugin in kube-scheduler's configuration; the engine implements it."""


class Scored(Struct, frozen=True):
    rule: ScoreRule[Any]
    weight: int


class Around(Struct, frozen=True):
    """A plugin whose result depends on other nodes, as a filter, a score or both."""

    concerns: Callable[[Pod], bool]
    filter: FilterRule[Any] | None
    scored: Scored | None


class Profile(Struct, frozen=True, kw_only=True, dict=True):
    name: str = NAME
    filters: tuple[FilterRule[Any], ...] = ()
    scores: tuple[Scored, ...] = ()
    zones: bool = True
    """Whether NodeResourceTopologyMatch filters; otherwise node totals alone decide."""
    zones_weight: int = 1
    percentage: int = 100
    """Percentage of nodes after which the search ends (kube-scheduler spec 4.3). 0: adapted to the cluster's size."""
    preemption: DefaultPreemptionArgs | None = None
    """Arguments of DefaultPreemption; None: preemption is disabled."""
    volumes: VolumeBinding | None = None
    """The plugin that plans the writes for a pod's claims before the pod is bound."""
    volume_seconds: float = 600.0
    """Seconds after which the attempt fails if volumes are not bound."""

    @cached_property
    def around(self) -> tuple[Around, ...]:
        """The plugins whose result depends on other nodes."""
        filters: dict[int, FilterRule[Any]] = {id(rule): rule for rule in self.filters}
        scored = {id(scored.rule): scored for scored in self.scores}
        rules = {id(rule): rule for rule in (*self.filters, *(each.rule for each in self.scores))}
        return tuple(
            Around(rule.concerns, filters.get(each), scored.get(each))
            for each, rule in rules.items()
            if isinstance(rule, LooksAround)
        )

    @cached_property
    def surrounded(self) -> tuple[Surrounded, ...]:
        """The plugins whose result for an equal pod may differ from attempt to attempt."""
        rules = (*self.filters, *(each.rule for each in self.scores))
        return tuple({id(rule): rule for rule in rules if isinstance(rule, Surrounded)}.values())

    @cached_property
    def alone(self) -> tuple[tuple[FilterRule[Any], AloneFilter[Any]], ...]:
        """The filters that judge each node by its description."""
        return tuple((rule, rule) for rule in self.filters if isinstance(rule, AloneFilter))

    @cached_property
    def amounts_filters(self) -> tuple[tuple[FilterRule[Any], AmountsFilter[Any]], ...]:
        """The filters that judge each node by its amounts."""
        return tuple((rule, rule) for rule in self.filters if isinstance(rule, AmountsFilter))

    @cached_property
    def standing(self) -> tuple[tuple[Scored, AloneScore[Any] | None], ...]:
        """The scores that judge nodes by their description, and whether they may do so one by one."""
        rules = [each for each in self.scores if not isinstance(each.rule, (LooksAround, AmountsScore))]
        return tuple((each, each.rule if isinstance(each.rule, AloneScore) else None) for each in rules)

    @cached_property
    def amounts_scores(self) -> tuple[tuple[Scored, AmountsScore[Any]], ...]:
        """The scores that judge each node by its amounts."""
        return tuple((each, each.rule) for each in self.scores if isinstance(each.rule, AmountsScore))
