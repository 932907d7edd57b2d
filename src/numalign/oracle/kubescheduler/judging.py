"""Judging a case: our rules beside the plugins of kube-scheduler v1.37.1.

`judge` is given to campaigns by `sources`. Every status, reason and score has to be the same; what differs on purpose
has an entry in docs/oracle-scheduler.md and a rule in `exceptions`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import structs

from numalign.oracle import divergence, opinions
from numalign.oracle.ask import Case, Judged
from numalign.oracle.divergence import Difference
from numalign.oracle.kubescheduler import answering, exceptions, stages
from numalign.oracle.kubescheduler.generate.cases import FAMILY
from numalign.oracle.opinions import Opinion

Raw = Mapping[str, Any]

NOBODY: Final[Raw] = {}
"""Has anything against a node."""


def judge(case: Case, answer: Case) -> Judged:
    if (without := opinions.without(FAMILY, case, answer)) is not None:
        return without
    found = opinions.survived(opinion, answer)
    asked = len(case["questions"])
    if found.differences:
        return Judged(FAMILY, _narrowed(case, found.questions), answer, "differs", found.differences, asked)
    return Judged(FAMILY, case, answer, "deliberate" if found.entries else "agreed", asked=asked)


def _narrowed(case: Case, questions: frozenset[int]) -> Case:
    """With these questions only, so that another one that has no certain answer does not hide them."""
    kept = [each for place, each in enumerate(case["questions"]) if place in questions]
    return {**case, "questions": kept} if kept else case


def opinion(recorded: Case) -> Opinion:
    """Of a case with its answers."""
    if "panic" in recorded or "init_error" in recorded:
        return Opinion((Difference("", expected=recorded.get("panic") or recorded["init_error"]),))
    stage = stages.build(recorded)
    differences: list[Difference] = []
    entries: set[str] = set()
    wrong: set[int] = set()
    for place, question in enumerate(recorded["questions"]):
        for each in between(question["answer"], answering.answer(stage, question)):
            entry = exceptions.entry(recorded, question, each)
            if entry is None:
                wrong.add(place)
                differences.append(structs.replace(each, path=f"questions[{place}].answer.{each.path}"))
            else:
                entries.add(entry)
    return Opinion(tuple(differences), frozenset(entries), frozenset(wrong))


def between(real: Raw, ours: Raw) -> tuple[Difference, ...]:
    expected, answered = _comparable(real), _comparable(ours)
    nodes = dict.fromkeys((*real["filters"], *ours["filters"]), NOBODY)
    for each in (expected, answered):
        each["filters"] = nodes | each["filters"]
    return divergence.between(divergence.canonical(expected), divergence.canonical(answered))


def _comparable(answer: Raw) -> dict[str, Any]:
    """In one form: a plugin that skips a pod is one that refuses no node and scores nothing, and only that counts."""
    made = {key: value for key, value in answer.items() if key not in ("skipped", "scores")}
    if "scores" in answer:
        made["scores"] = _scores(answer["scores"])
    return made


def _scores(scores: Raw) -> dict[str, Any]:
    if "error" in scores:
        return {"error": scores["error"]}
    return {
        "totals": scores["totals"],
        "raw": _of_something(scores["raw"]),
        "normalized": _of_something(scores["normalized"]),
    }


def _of_something(by_plugin: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    return {plugin: scores for plugin, scores in by_plugin.items() if any(scores.values())}
