"""What a replay came to, for people and for programs.

`oracle` hands in the report. People get the first differences, a line per family and, always last, the count that
scripts look for; programs get everything as one value. Whatever a recording contains is printed as JSON and in few
characters, so that no case can flood a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from numalign.api import errors
from numalign.oracle.divergence import Difference
from numalign.oracle.replay import Report, Tally, Verdict

MOST_PER_CASE, MOST_CHARACTERS = 10, 200
NOTHING = "(nothing)"
NO_ANSWER = "the case as a whole"


class Listed(Struct, frozen=True):
    """One difference. A side on which there is nothing is left out."""

    family: str
    case: str
    where: str
    path: str
    expected: Any | UnsetType
    answered: Any | UnsetType


class Result(Struct, frozen=True):
    cases: int
    mismatches: int
    families: dict[str, Tally]
    differences: tuple[Listed, ...]


def result(report: Report) -> Result:
    return Result(
        cases=report.total.cases,
        mismatches=report.total.mismatches,
        families=report.families,
        differences=tuple(_listed(verdict, each) for verdict in report.diverged for each in verdict.differences),
    )


def _listed(verdict: Verdict, difference: Difference) -> Listed:
    return Listed(
        family=verdict.vector.family.name,
        case=verdict.vector.id,
        where=verdict.vector.where,
        path=difference.path,
        expected=difference.expected,
        answered=difference.answered,
    )


def table(report: Report, show: int) -> str:
    """The first `show` cases that differ, the families, the count."""
    return "\n".join([*_differences(report, show), *_families(report), _count(report.total)])


def _differences(report: Report, show: int) -> Iterator[str]:
    for verdict in report.diverged[:show]:
        yield from _shown(verdict)
        yield ""
    if show and len(report.diverged) > show:
        yield f"... and {len(report.diverged) - show} more cases that differ"
        yield ""


def _shown(verdict: Verdict) -> Iterator[str]:
    vector, differences = verdict.vector, verdict.differences
    yield f"{vector.family.name} {errors.clipped(vector.id)}  ({vector.where})"
    for each in differences[:MOST_PER_CASE]:
        yield f"  {_short(each.path or NO_ANSWER)}"
        yield f"    expected  {_json(each.expected)}"
        yield f"    answered  {_json(each.answered)}"
    if len(differences) > MOST_PER_CASE:
        yield f"  ... and {len(differences) - MOST_PER_CASE} more differences"


def _families(report: Report) -> Iterator[str]:
    width = max(map(len, report.families))
    yield f"{'family':{width}}  {'cases':>7}  {'mismatches':>10}"
    for name, tally in report.families.items():
        yield f"{name:{width}}  {tally.cases:>7}  {tally.mismatches:>10}"


def _count(total: Tally) -> str:
    return f"{total.cases} cases, {total.mismatches} mismatches"


def _json(value: Any | UnsetType) -> str:
    return NOTHING if value is UNSET else _short(msgspec.json.encode(value).decode())


def _short(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}..."
