"""Judging a row: our modules beside RTE v0.24.0 and NFD v0.19.0.

`judge` is given to campaigns by `sources`. A row is judged as a recorded one is: equal, or different on purpose by a
rule on its input. Where the real program crashes, a rule has to say that it does, and ours has to answer."""

from __future__ import annotations

from numalign.oracle import opinions, recordedsuites
from numalign.oracle.ask import Case, Finding, Judged
from numalign.oracle.casefiles import Recorded
from numalign.oracle.divergence import Difference
from numalign.oracle.plugin.suites import judging
from numalign.oracle.plugin.suites.judging import Outcome
from numalign.oracle.publishers import publishercrashes

FINDINGS: dict[Outcome, Finding] = {Outcome.EQUAL: "agreed", Outcome.DELIBERATE: "deliberate"}


def judge(case: Case, answer: Case) -> Judged:
    suite = case["suite"]
    if (without := opinions.without(suite, case, answer)) is not None:
        return without
    if "panic" in answer:
        differences = _instead_of_a_crash(case, answer["panic"])
        return Judged(suite, case, answer, "differs" if differences else "deliberate", differences)
    found = judging.judge(recorded(answer))
    return Judged(suite, case, answer, FINDINGS.get(found.outcome, "differs"), found.differences)


def recorded(answer: Case) -> Recorded:
    return Recorded("asked", answer["suite"], answer["id"], {**answer, "fixtures": {}})


def _instead_of_a_crash(case: Case, said: str) -> tuple[Difference, ...]:
    if not publishercrashes.expected(case["suite"], case["input"]):
        return (Difference("", expected=said, answered="no rule says that it crashes"),)
    try:
        recordedsuites.SUITES[case["suite"]].answer(case)
    except Exception as problem:
        return (Difference("", expected=said, answered=f"no answer: {type(problem).__name__}: {problem}"),)
    return ()
