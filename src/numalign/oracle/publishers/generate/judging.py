"""Judges a row: the agent's modules against RTE v0.24.0 and NFD v0.19.0.

`sources` passes `judge` to campaigns. A row is judged as a recorded one: equal, or different on purpose by a rule on
its input. Where the real program panics, a rule must predict it, and ours must answer."""

from __future__ import annotations

from numalign.oracle import divergence, opinions
from numalign.oracle.ask import Case, Finding, Judged
from numalign.oracle.divergence import Difference
from numalign.oracle.plugin.suites import suite as suites
from numalign.oracle.plugin.suites.suite import Outcome
from numalign.oracle.publishers import (
    formats,
    nodetexts,
    publisheracts,
    publishercrashes,
    publisherparts,
    publishers,
    publisherscans,
)

MODULES = (formats, nodetexts, publishers, publisherparts, publisherscans, publisheracts)
SUITES = {suite.name: suite for module in MODULES for suite in module.SUITES}

FINDINGS: dict[Outcome, Finding] = {Outcome.EQUAL: "agreed", Outcome.DELIBERATE: "deliberate"}


def judge(case: Case, answer: Case) -> Judged:
    suite = case["suite"]
    if (without := opinions.without(suite, case, answer)) is not None:
        return without
    if "panic" in answer:
        differences = _instead_of_a_crash(case, answer["panic"])
        return Judged(suite, case, answer, "differs" if differences else "deliberate", differences)
    found = suites.judged(SUITES[suite], {**answer, "fixtures": {}})
    return Judged(suite, case, answer, FINDINGS.get(found.outcome, "differs"), found.differences)


def _instead_of_a_crash(case: Case, said: str) -> tuple[Difference, ...]:
    if not publishercrashes.expected(case["suite"], case["input"]):
        return (Difference("", expected=said, answered="no rule says that it crashes"),)
    try:
        SUITES[case["suite"]].answer(case)
    except Exception as problem:
        return (divergence.no_answer(problem, said),)
    return ()
