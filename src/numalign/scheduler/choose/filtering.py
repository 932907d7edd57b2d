"""Filters nodes for a pod by all plugins, and reports for each other node which plugin rejected it first and why.

`choose` calls `filtered` once per pod. Plugins are prepared once and then asked about all nodes at a time. PreFilter
results, which exclude nodes or reject the pod as a whole, are reported as kube-scheduler does (kube-scheduler spec
4.6). The functions for zones ask the engine, unless the profile disables NodeResourceTopologyMatch: then no node is
rejected because of its zones, and all nodes score the same."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from numalign.api.objects.pod import Pod
from numalign.placement.columns.shapes import Shape
from numalign.placement.decisions import SCORES, Certainty, Codes, Decision
from numalign.placement.engine import Engine
from numalign.placement.explain import whatif as engines
from numalign.placement.explain.reasons import Reason
from numalign.placement.explain.whatif import NO_HOLDERS, NO_PODS, Supposition, WhatIf
from numalign.placement.rules.clusterstate import ClusterState
from numalign.placement.rules.rule import FITS, FilterRule, Prepared, Refusal, Rows, span
from numalign.scheduler.profiles import Profile

NO_PLUGIN: Final = -1
LEFT_OUT: Final = -2
"""Instead of a rule's place: refused before the rules were asked."""
FEW: Final = 4
"""Named nodes up to which one by one is quicker than all at once."""

NO_SCORES: Final = np.zeros(len(SCORES), np.int64)
BY_SCORE: Final = np.full(len(SCORES), Certainty.BY_SCORE, np.int64)

Places = NDArray[np.int16]
Said = NDArray[np.int32]


class PreparedFilter(Struct, frozen=True):
    """A rule that has something to say about the pod."""

    rule: FilterRule[Any]
    prepared: Prepared


class Refused(Struct, frozen=True):
    """No node will do, as some rule says before it looks at any."""

    refusal: Refusal
    plugins: tuple[str, ...]


class FirstRefusals(Struct, frozen=True):
    """By node, in the order of `Filtered.rows`."""

    by: Places
    """The place of the first step that refuses the node; `NO_PLUGIN`, `LEFT_OUT`."""
    codes: Said
    """What that step said."""

    def put(self, refusing: NDArray[np.bool_], place: int, said: Said) -> None:
        """A step refuses nodes, of which some may be refused already."""
        refusing &= self.by == NO_PLUGIN
        self.by[refusing] = place
        self.codes[refusing] = said[refusing]


class Filtered(Struct, frozen=True, kw_only=True):
    rows: Rows
    """The nodes that are there."""
    steps: tuple[PreparedFilter, ...]
    fitting: Rows
    """Those that no step refuses, ascending; not to be written to."""
    refused: FirstRefusals | None = None
    """None: no node is refused."""
    left_out: Refused | None = None

    def has(self, row: int) -> bool:
        """Whether no plugin rejects that node."""
        where = int(np.searchsorted(self.fitting, row))
        return where < len(self.fitting) and self.fitting.item(where) == row

    def tallies(self) -> list[tuple[str, Refusal, Rows]]:
        """By plugin and refusal: the rows it holds for."""
        if self.refused is None:
            return []
        by, codes = self.refused.by, self.refused.codes
        left_out = self.rows[by == LEFT_OUT]
        found = [(self.left_out.plugins[0], self.left_out.refusal, left_out)] if self.left_out else []
        for place, step in enumerate(self.steps):
            inside = by == place
            for code in np.unique(codes[inside]).tolist():
                rows = self.rows[inside & (codes == code)]
                found.append((step.rule.name, step.prepared.refusals[code], rows))
        return found


def filtered(pod: Pod, rules: Sequence[FilterRule[Any]], world: ClusterState) -> Filtered | Refused:
    steps = prepared(pod, rules, world)
    if isinstance(steps, Refused):
        return steps
    only = _only(steps)
    if isinstance(only, Refused):
        return only
    if only is not None and len(only.names) <= FEW:
        return _among_few(steps, only, world)
    rows = world.node_rows
    refused = None
    if only is not None:
        refused = _refusing(rows, NO_PLUGIN)
        refused.by[~np.isin(rows, only.rows(world))] = LEFT_OUT
    for place, step in enumerate(steps):
        every = step.rule.filter(step.prepared)
        # Most rules have nothing against any node.
        if not np.count_nonzero(every):
            continue
        refused = refused or _refusing(rows, NO_PLUGIN)
        said = every[span(rows)]
        refused.put(said != FITS, place, said)
    fitting = rows if refused is None else rows[refused.by == NO_PLUGIN]
    left_out = only.refused if only else None
    return Filtered(rows=rows, steps=steps, fitting=fitting, refused=refused, left_out=left_out)


def _refusing(rows: Rows, place: int) -> FirstRefusals:
    """The same of all nodes."""
    return FirstRefusals(np.full(len(rows), place, np.int16), np.zeros(len(rows), np.int32))


def _among_few(steps: tuple[PreparedFilter, ...], only: _Only, world: ClusterState) -> Filtered:
    """The same where a few nodes are named, as by pods of DaemonSets: one by one."""
    rows = world.node_rows
    refused, few = _refusing(rows, LEFT_OUT), np.searchsorted(rows, np.sort(only.rows(world))).tolist()
    for where in few:
        refused.by[where], refused.codes[where] = _with_others(steps, rows.item(where), ())
    fitting = rows[[where for where in few if refused.by[where] == NO_PLUGIN]]
    return Filtered(rows=rows, steps=steps, fitting=fitting, refused=refused, left_out=only.refused)


def respecting(found: Filtered, promised: Mapping[int, Sequence[Pod]], zones: Said | None = None) -> Filtered:
    """Where a node's room is promised to others, the pod has to fit with them there, too (kube-scheduler spec 4.5).

    `zones`: codes of the engine, by row; of nodes that it refuses nothing more need be known."""
    if not promised:
        return found
    asked = found.fitting if zones is None else found.fitting[zones[found.fitting] >= 0]
    answers = {row: _with_others(found.steps, row, promised[row]) for row in asked[_among(asked, promised)].tolist()}
    refusing = [row for row, (place, _) in answers.items() if place != NO_PLUGIN]
    if not refusing:
        return found
    refused = found.refused or _refusing(found.rows, NO_PLUGIN)
    where = np.searchsorted(found.rows, refusing)
    by, codes = refused.by.copy(), refused.codes.copy()
    by[where], codes[where] = zip(*(answers[row] for row in refusing), strict=True)
    fitting = found.fitting[~np.isin(found.fitting, refusing)]
    return structs.replace(found, fitting=fitting, refused=FirstRefusals(by, codes))


def _among(rows: Rows, promised: Mapping[int, object]) -> NDArray[np.bool_]:
    """Which of the rows are promised: by looking through the shorter of the two lists, as both may be long."""
    some = list(islice(promised, len(rows) + 1))
    if len(some) <= len(rows):
        return np.isin(rows, np.array(some, np.intp)) if some else np.zeros(len(rows), np.bool_)
    return np.array([row in promised for row in rows.tolist()], np.bool_)


def _with_others(steps: Sequence[PreparedFilter], row: int, others: Sequence[Pod]) -> tuple[int, int]:
    for place, step in enumerate(steps):
        code = step.rule.filter_row(step.prepared, row, (), others)
        if code != FITS:
            return place, code
    return NO_PLUGIN, FITS


def prepared(pod: Pod, rules: Sequence[FilterRule[Any]], world: ClusterState) -> tuple[PreparedFilter, ...] | Refused:
    steps: list[PreparedFilter] = []
    refusals: list[Refused] = []
    for rule in rules:
        found = rule.prepare(pod, world)
        if isinstance(found, Refusal):
            refusals.append(Refused(found, (rule.name,)))
            # One that nothing can help ends it; after others the rest is asked, and the last word counts.
            if found.unresolvable:
                break
        elif found is not None:
            steps.append(PreparedFilter(rule, found))
    return refusals[-1] if refusals else tuple(steps)


class _Only(Struct, frozen=True):
    names: frozenset[str]
    plugins: tuple[str, ...]

    @property
    def refused(self) -> Refused:
        text = f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(self.plugins))}]"
        return Refused(Refusal((text,), unresolvable=True), self.plugins)

    def rows(self, world: ClusterState) -> Rows:
        return np.array([world.rows[name] for name in self.names if name in world.rows], np.intp)


def _only(steps: Sequence[PreparedFilter]) -> _Only | Refused | None:
    """The nodes that all rules which name any have in common."""
    naming = [(step.rule.name, step.prepared.only) for step in steps if step.prepared.only is not None]
    if not naming:
        return None
    names, plugins = naming[0][1], [naming[0][0]]
    for plugin, named in naming[1:]:
        if names:
            names, plugins = names & named, [*plugins, plugin]
    if names:
        return _Only(names, tuple(plugins))
    listed = f"(s) [{' '.join(sorted(plugins))}] simultaneously" if len(plugins) > 1 else f" {plugins[0]}"
    return Refused(Refusal((f"node(s) didn't satisfy plugin{listed}",), unresolvable=True), tuple(plugins))


def shape(profile: Profile, engine: Engine, pod: Pod) -> Shape:
    """The pod's shape, or BadObject where the profile looks at zones and the pod's annotations make no sense."""
    return engine.shape(read(profile, pod))


def read(profile: Profile, pod: Pod) -> Pod:
    """The pod as the profile reads it: annotations are about zones only."""
    return pod if profile.zones else structs.replace(pod, metadata=structs.replace(pod.metadata, annotations={}))


def survey(profile: Profile, engine: Engine, shape: Shape, rows: Rows) -> Codes:
    """By row, as `Engine.survey` gives it; without the plugin, every row scores the same."""
    return engine.survey(shape, rows) if profile.zones else np.zeros(engine.height, np.int32)


def zone_scores(profile: Profile, engine: Engine, *, aligned: bool) -> NDArray[np.int64]:
    """As `Engine.zone_scores` gives them; without the plugin, nodes do not differ by zones."""
    return engine.zone_scores(profile.zones_weight, aligned=aligned) if profile.zones else NO_SCORES


def certainties(profile: Profile, engine: Engine, *, aligned: bool) -> NDArray[np.int64]:
    """As `Engine.certainties` says; without the plugin, scores alone count."""
    return engine.certainties(aligned=aligned) if profile.zones else BY_SCORE


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
        return NO_HOLDERS

    def is_possible(self, row: int) -> bool:
        return True

    def is_final(self, row: int) -> bool:
        return True

    def reason(self, row: int, supposed: Supposition) -> Reason | None:
        return None

    def pending(self, row: int) -> frozenset[str]:
        return NO_PODS

    def known(self, row: int) -> frozenset[str]:
        return NO_PODS
