"""Prints the results of a replay and of a fuzzing campaign, as a table or as data.

`oracle` passes the reports. The table shows the first differences, a line per family or suite, and last the count that
scripts look for. Values of recordings are printed as shortened JSON, so that no case floods a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from numalign.api import errors
from numalign.cli.display import formats
from numalign.oracle.fuzz import FuzzSummary
from numalign.oracle.harness.ask import JudgedCase
from numalign.oracle.harness.divergence import Difference
from numalign.oracle.harness.suite import Outcome
from numalign.oracle.kubelet.replay import FamilyTally, ReplayReport
from numalign.oracle.recorded import SuiteReport, SuiteTally

MOST_PER_CASE, MOST_CHARACTERS = 10, 200
HEAPS = tuple(heap.value for heap in Outcome)
NOTHING = "(nothing)"
NO_ANSWER = "the case as a whole"


class ListedDifference(Struct, frozen=True):
    """One difference. A side without a value is omitted."""

    family: str
    case: str
    where: str
    path: str
    expected: Any | UnsetType
    answered: Any | UnsetType


class DivergedCase(Struct, frozen=True):
    """One case that differs; its group is a family or a suite."""

    group: str
    id: str
    where: str
    differences: tuple[Difference, ...]


class ReplayedFiles(Struct, frozen=True):
    """Both kinds of recordings: kubelet vectors by family, other cases by suite."""

    vectors: ReplayReport
    plugins: SuiteReport

    @property
    def cases(self) -> int:
        return self.vectors.total.cases + self.plugins.cases

    @property
    def diverged(self) -> tuple[DivergedCase, ...]:
        return (
            *(
                DivergedCase(each.vector.family.name, each.vector.id, each.vector.where, each.differences)
                for each in self.vectors.diverged
            ),
            *(
                DivergedCase(each.recorded.suite, each.recorded.id, each.recorded.where, each.differences)
                for each in self.plugins.mismatches
            ),
        )


class ReplayResult(Struct, frozen=True):
    cases: int
    mismatches: int
    families: dict[str, FamilyTally]
    suites: dict[str, SuiteTally]
    differences: tuple[ListedDifference, ...]


def result(replayed: ReplayedFiles) -> ReplayResult:
    return ReplayResult(
        cases=replayed.cases,
        mismatches=len(replayed.diverged),
        families=replayed.vectors.families,
        suites=replayed.plugins.suites,
        differences=tuple(_listed(each, found) for each in replayed.diverged for found in each.differences),
    )


def _listed(diverged: DivergedCase, difference: Difference) -> ListedDifference:
    return ListedDifference(
        family=diverged.group,
        case=diverged.id,
        where=diverged.where,
        path=difference.path,
        expected=difference.expected,
        answered=difference.answered,
    )


def table(replayed: ReplayedFiles, show: int) -> str:
    """The first `show` cases that differ, the families, the suites, the count."""
    groups = [*_families(replayed.vectors), *_suites(replayed.plugins)]
    return "\n".join([*_differences(replayed.diverged, show), *groups, _count(replayed)])


def _differences(diverged: Sequence[DivergedCase], show: int) -> Iterator[str]:
    for each in diverged[:show]:
        yield from _shown(each)
        yield ""
    if show and len(diverged) > show:
        yield f"... and {len(diverged) - show} more cases that differ"
        yield ""


def _shown(diverged: DivergedCase) -> Iterator[str]:
    yield f"{diverged.group} {errors.clipped(diverged.id)}  ({diverged.where})"
    for each in diverged.differences[:MOST_PER_CASE]:
        yield f"  {_short(each.path or NO_ANSWER)}"
        yield f"    expected  {brief(each.expected)}"
        yield f"    answered  {brief(each.answered)}"
    if len(diverged.differences) > MOST_PER_CASE:
        yield f"  ... and {len(diverged.differences) - MOST_PER_CASE} more differences"


def _families(report: ReplayReport) -> Iterator[str]:
    if not report.families:
        return
    width = max(map(len, report.families))
    yield f"{'family':{width}}  {'cases':>7}  {'mismatches':>10}"
    for name, tally in report.families.items():
        yield f"{name:{width}}  {tally.cases:>7}  {tally.mismatches:>10}"


def _suites(report: SuiteReport) -> Iterator[str]:
    if not report.suites:
        return
    width = max(map(len, report.suites))
    yield f"{'suite':{width}}  {'  '.join(HEAPS)}"
    for name, tally in report.suites.items():
        counts = (tally.equal, tally.deliberate, tally.mismatch, tally.not_applicable)
        cells = "  ".join(f"{count:>{len(heap)}}" for heap, count in zip(HEAPS, counts, strict=True))
        yield f"{errors.clipped(name):{width}}  {cells}  {'; '.join(tally.notes)}".rstrip()


def _count(replayed: ReplayedFiles) -> str:
    return f"{replayed.cases} cases, {len(replayed.diverged)} mismatches"


def brief(value: Any | UnsetType) -> str:
    """A value as shortened JSON."""
    return NOTHING if value is UNSET else _short(msgspec.json.encode(value).decode())


def _short(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}..."


COLUMNS = ("agreed", "deliberate", "undecided", "unanswered", "differs")


def fuzz_table(summary: FuzzSummary) -> str:
    """Findings by family; the last line is always the total."""
    page = formats.Page()
    drawn = page.table("family", *COLUMNS)
    for family in sorted({family for family, _ in summary.counts}):
        drawn.add_row(family, *(str(summary.counts[family, finding]) for finding in COLUMNS))
    page.add(drawn)
    if summary.asked > summary.compared:
        page.add(f"{summary.asked} questions")
    page.add(f"{summary.compared} cases, {summary.disagreements} disagreements")
    return page.text()


def disagreement(judged: JudgedCase, saved: Path) -> str:
    lines = [f"{judged.family} {judged.answer.get('id', '')}  (saved as {saved})"]
    for difference in judged.differences[:5]:
        lines += [
            f"  {difference.path}",
            f"    real   {difference.expected}",
            f"    model  {difference.answered}",
        ]
    return "\n".join(lines)
