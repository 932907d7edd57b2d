"""A suite of recorded cases: how numalign answers a case, and how the answer is compared.

`recorded` and the publishers' `cases` run the suites. A suite receives a case as read, with the file's `fixtures`
added. A deliberate difference is a rule on the input, never on a case's name, with an entry in
docs/compatibility/plugin.md."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct

from numalign.oracle.harness import divergence
from numalign.oracle.harness.divergence import Case, Difference

Compare = Callable[[Any, Any], Sequence[Difference]]


def always(_: Any) -> bool:
    return True


class DeliberateDifference(Struct, frozen=True):
    """A difference on purpose: the inputs that it applies to, and what the recording shows then."""

    anchor: str
    """The entry in docs/compatibility/plugin.md."""
    reason: str
    applies: Callable[[Any], bool]
    """Whether the defect can show for this input."""
    shows: Callable[[Case], bool] = always
    """Whether the recording shows the defect. A recording of anything else is a mismatch."""


def exactly(expected: Any, answered: Any) -> Sequence[Difference]:
    """All differences: every key, item and type counts."""
    return divergence.between(divergence.canonical(expected), divergence.canonical(answered))


class Suite(Struct, frozen=True):
    """One suite: its name in the files, our answer to a case in the form of `expect`, and the comparison."""

    name: str
    answer: Callable[[Case], object]
    compare: Compare = exactly
    deliberate: tuple[DeliberateDifference, ...] = ()


class Outcome(StrEnum):
    EQUAL = "equal"
    DELIBERATE = "deliberate"
    MISMATCH = "mismatch"
    NOT_APPLICABLE = "not applicable"


class SuiteVerdict(Struct, frozen=True):
    """The outcome of one case; `why` and `anchor` explain a deliberate difference or a suite that does not apply."""

    outcome: Outcome
    differences: tuple[Difference, ...] = ()
    why: str = ""
    anchor: str = ""


def judged(suite: Suite, case: Case) -> SuiteVerdict:
    """Compare our answer with the recorded one. A case that cannot be answered is a mismatch."""
    differences = _differences(suite, case)
    if not differences:
        return SuiteVerdict(Outcome.EQUAL)
    intended = next((each for each in suite.deliberate if _is_intended(each, case)), None)
    if intended is None:
        return SuiteVerdict(Outcome.MISMATCH, differences)
    return SuiteVerdict(Outcome.DELIBERATE, differences, intended.reason, intended.anchor)


# A case may be any JSON value. Any exception counts as a missing answer.
def _differences(suite: Suite, case: Case) -> tuple[Difference, ...]:
    try:
        return tuple(suite.compare(case["expect"], suite.answer(case)))
    except Exception as problem:
        return (divergence.no_answer(problem),)


def _is_intended(deliberate: DeliberateDifference, case: Case) -> bool:
    try:
        return deliberate.applies(case["input"]) and deliberate.shows(case)
    except Exception:
        return False
