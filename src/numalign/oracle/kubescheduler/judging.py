"""Judges a case: numalign's rules against the plugins of kube-scheduler v1.37.1.

`sources` passes `judge` to campaigns. Every status, reason and score must be the same. A deliberate difference has an
entry in docs/develop/oracle-scheduler.md and a rule in `exceptions`."""

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
"""No plugin refuses a node."""


def judge(case: Case, answer: Case) -> Judged:
    if (without := opinions.without(FAMILY, case, answer)) is not None:
        return without
    found = opinions.survived(opinion, answer)
    return opinions.judged(FAMILY, _narrowed(case, found.questions), answer, found, len(case["questions"]))


def _narrowed(case: Case, questions: frozenset[int]) -> Case:
    """The case with these questions only, so that an unstable answer to another question does not hide them."""
    kept = [each for place, each in enumerate(case["questions"]) if place in questions]
    return {**case, "questions": kept} if kept else case


def opinion(recorded: Case) -> Opinion:
    """The opinion on a case with its answers."""
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
    """Normal form: a plugin that skips a pod is equal to one that refuses no node and scores nothing."""
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
