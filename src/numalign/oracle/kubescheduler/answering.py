"""Answers a question in the form in which the real scheduler's answer is recorded.

`judging` compares the two. It repeats how the framework combines the answers of plugins (kube-scheduler spec 4.6, 4.7),
so that the order of plugins and the weights of scores are compared too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np

from numalign.api.decode import decode
from numalign.api.objects.pod import Pod
from numalign.oracle.kubescheduler.stages import WEIGHTS, Stage
from numalign.placement.rules.rule import FITS, FilterRule, Refusal

Answer = dict[str, Any]
Raw = Mapping[str, Any]

SUCCESS: Final = "Success"
REFUSED: Final = "Unschedulable"
UNRESOLVABLE: Final = "UnschedulableAndUnresolvable"


class Cycle:
    """One pod in one scheduling cycle through all rules."""

    def __init__(self, stage: Stage, pod: Pod) -> None:
        self.stage, self.pod, self.world = stage, pod, stage.world
        self.pre_filters: Answer = {}
        self.asked: list[tuple[FilterRule[Any], Any]] = []
        for rule in stage.filters:
            self._prepare(rule)

    def _prepare(self, rule: FilterRule[Any]) -> None:
        prepared = rule.prepare(self.pod, self.world)
        if isinstance(prepared, Refusal):
            self.pre_filters[rule.name] = {**_status(prepared), "nodes": None}
        elif prepared is not None:
            self.asked.append((rule, prepared))
            if prepared.only is not None:
                self.pre_filters[rule.name] = _narrowed(prepared.only)

    def filters(self) -> Answer:
        """By node and plugin."""
        said: Answer = {}
        for rule, prepared in self.asked:
            codes = rule.filter(prepared)
            for name, row in self.world.rows.items():
                if codes[row] != FITS:
                    said.setdefault(name, {})[rule.name] = _status(prepared.refusals[int(codes[row])])
        return said

    def what_if(self, change: Raw) -> Answer:
        row, removed = self.world.rows[change["node"]], change.get("removed") or ()
        added = [decode.decode(Pod, raw) for raw in change.get("added") or ()]
        said: Answer = {}
        for rule, prepared in self.asked:
            code = rule.filter_row(prepared, row, removed, added)
            if code != FITS:
                said[rule.name] = _status(prepared.refusals[code])
        return said

    def scores(self, feasible: Iterable[str]) -> Answer:
        names = list(feasible)
        rows = np.array([self.world.rows[name] for name in names], np.intp)
        raw: Answer = {}
        normalized: Answer = {}
        for rule in self.stage.scores:
            prepared = rule.prepare_score(self.pod, self.world, rows)
            if prepared is not None:
                given = rule.score(prepared, rows)
                raw[rule.name] = _by_name(names, given)
                normalized[rule.name] = _by_name(names, rule.normalized(prepared, given))
        return {"raw": raw, "normalized": normalized, "totals": {name: _total(normalized, name) for name in names}}


def answer(stage: Stage, question: Raw) -> Answer:
    cycle = Cycle(stage, decode.decode(Pod, question["pod"]))
    filters, merged = cycle.filters(), _merged(cycle.pre_filters)
    made: Answer = {"pre_filter": merged, "pre_filters": cycle.pre_filters, "filters": filters, "verdicts": {}}
    if merged["code"] != SUCCESS:
        return made
    looked_at = [name for name in cycle.world.rows if merged["nodes"] is None or name in merged["nodes"]]
    made["verdicts"] = {name: _first(filters[name], cycle) for name in looked_at if name in filters}
    if question.get("what_if"):
        made["what_if"] = [cycle.what_if(change) for change in question["what_if"]]
    if feasible := [name for name in looked_at if name not in filters]:
        made["scores"] = cycle.scores(feasible)
    return made


def _merged(pre_filters: Mapping[str, Answer]) -> Answer:
    """The combined result; plugins are in the order in which they ran."""
    nodes: set[str] | None = None
    refusal: Answer | None = None
    plugins: list[str] = []
    for name, said in pre_filters.items():
        if said["code"] == UNRESOLVABLE:
            return {**said, "plugin": name, "plugins": []}
        if said["code"] == REFUSED:
            refusal = {**said, "plugin": name}
            continue
        plugins.append(name)
        nodes = set(said["nodes"]) if nodes is None else nodes & set(said["nodes"])
        if not nodes:
            return {
                "code": UNRESOLVABLE,
                "reasons": [_nowhere(sorted(plugins))],
                "nodes": [],
                "plugins": sorted(plugins),
            }
    left = None if nodes is None else sorted(nodes)
    return {**(refusal or {"code": SUCCESS, "reasons": []}), "nodes": left, "plugins": sorted(plugins)}


def _nowhere(plugins: list[str]) -> str:
    if len(plugins) == 1:
        return f"node(s) didn't satisfy plugin {plugins[0]}"
    return f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}] simultaneously"


def _first(refusals: Mapping[str, Answer], cycle: Cycle) -> Answer:
    name = next(rule.name for rule, _ in cycle.asked if rule.name in refusals)
    return {**refusals[name], "plugin": name}


def _status(refusal: Refusal) -> Answer:
    return {"code": UNRESOLVABLE if refusal.unresolvable else REFUSED, "reasons": sorted(refusal.reasons)}


def _narrowed(only: frozenset[str]) -> Answer:
    return {"code": SUCCESS, "reasons": [], "nodes": sorted(only)}


def _by_name(names: list[str], scores: Iterable[Any]) -> dict[str, int]:
    return {name: int(score) for name, score in zip(names, scores, strict=True)}


def _total(normalized: Mapping[str, Mapping[str, int]], name: str) -> int:
    return sum(WEIGHTS.get(plugin, 1) * scores[name] for plugin, scores in normalized.items())
