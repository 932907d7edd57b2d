"""Compares the results of both schedulers with each other and with the page that lists them. Pure.

`numalign lab e2e` prints what `text` returns. The page is a Markdown file with a table of tests, outcomes and notes:
`differences` says what is not true any more, `updated` writes the outcomes again and keeps the notes."""

import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal

from msgspec import Struct

from numalign.api.errors import BadObject
from numalign.lab.e2e.suite import Outcome, SpecResult

SchedulerName = Literal["stock", "numalign"]
SCHEDULERS: Final[tuple[SchedulerName, ...]] = ("stock", "numalign")
PREFIX: Final = "[sig-scheduling] "
TAGS: Final = re.compile(r" \[(?!Serial|Conformance)[^\]]*\]")
HEAD: Final = ("| test | kube-scheduler | numalign | note |", "|---|---|---|---|")
KIND: Final = "Page of end-to-end tests"


class SuiteRun(Struct, frozen=True, kw_only=True):
    """The results of one scheduler."""

    scheduler: SchedulerName
    results: tuple[SpecResult, ...]
    restarted: tuple[str, ...] = ()
    """Programs of the lab that ended unexpectedly."""


class Compared(Struct, frozen=True, kw_only=True):
    """One test. Empty: the scheduler was not tested."""

    test: str
    stock: Outcome | Literal[""] = ""
    numalign: Outcome | Literal[""] = ""
    seconds: float = 0.0
    """With the scheduler that took longer."""
    why: str = ""
    """The failure, numalign's if both failed; or why the test did not run."""

    @property
    def is_worse(self) -> bool:
        """Whether kube-scheduler passes a test that numalign does not pass."""
        return self.stock == "passed" and self.numalign not in ("passed", "")


class E2EReport(Struct, frozen=True, kw_only=True):
    kubernetes: str
    tests: tuple[Compared, ...]
    worse: tuple[str, ...]
    """Tests that kube-scheduler passes and numalign does not."""
    restarted: tuple[str, ...]
    differences: tuple[str, ...] = ()
    """What the page says otherwise; empty without a page."""


def of(kubernetes: str, runs: Sequence[SuiteRun]) -> E2EReport:
    found = {each.scheduler: {result.name: result for result in each.results} for each in runs}
    names = sorted({name for results in found.values() for name in results})
    tests = tuple(
        _compared(name, found.get("stock", {}).get(name), found.get("numalign", {}).get(name)) for name in names
    )
    return E2EReport(
        kubernetes=kubernetes,
        tests=tests,
        worse=tuple(each.test for each in tests if each.is_worse),
        restarted=tuple(f"{each.scheduler}: {title}" for each in runs for title in each.restarted),
    )


def _compared(name: str, stock: SpecResult | None, ours: SpecResult | None) -> Compared:
    both = [each for each in (ours, stock) if each is not None]
    return Compared(
        test=TAGS.sub("", name.removeprefix(PREFIX)),
        stock=stock.outcome if stock else "",
        numalign=ours.outcome if ours else "",
        seconds=max(each.seconds for each in both),
        why=next((each.why for each in both if each.why), ""),
    )


def text(report: E2EReport) -> str:
    width = max(len(each.test) for each in report.tests)
    lines = [f"{'TEST':<{width}}  {'KUBE-SCHEDULER':<14}  {'NUMALIGN':<8}  SECONDS"]
    for each in report.tests:
        shown = f"{each.test:<{width}}  {each.stock or '-':<14}  {each.numalign or '-':<8}"
        lines.append(f"{shown}  {each.seconds:7.1f}" if each.seconds else shown.rstrip())
    lines += [f"FAILED: {each.test}: {each.why}" for each in report.tests if "failed" in (each.stock, each.numalign)]
    lines += [f"RESTARTED: {title}" for title in report.restarted]
    lines += [f"PAGE: {each}" for each in report.differences]
    counts = ", ".join(_count(report, scheduler) for scheduler in SCHEDULERS)
    return "\n".join([*lines, f"{counts}; {len(report.worse)} pass on kube-scheduler only"])


def _count(report: E2EReport, scheduler: SchedulerName) -> str:
    outcomes = [getattr(each, scheduler) for each in report.tests]
    ran = sum(outcome in ("passed", "failed") for outcome in outcomes)
    return f"{scheduler}: {outcomes.count('passed')} of {ran} passed"


class Row(Struct, frozen=True):
    """One row of the page."""

    test: str
    stock: str
    numalign: str
    note: str

    @property
    def words(self) -> str:
        cells = (self.test.replace("|", "\\|"), self.stock, self.numalign, self.note)
        return "|" + "".join(f" {cell} |" if cell else " |" for cell in cells)


def rows(page: str, source: str) -> list[Row]:
    """BadObject if the file has no such table."""
    lines = iter(page.splitlines())
    if not any(line == HEAD[0] for line in lines) or next(lines, "") != HEAD[1]:
        raise BadObject(KIND, source, "", f"has no table that begins with {HEAD[0]!r}")
    return list(_rows(lines, source))


def _rows(lines: Iterator[str], source: str) -> Iterator[Row]:
    for line in lines:
        if not line.startswith("|"):
            return
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) != len(Row.__struct_fields__):
            raise BadObject(KIND, source, "", f"row {line!r} has {len(cells)} cells; use {len(Row.__struct_fields__)}")
        yield Row(*cells)


def differences(report: E2EReport, page: str, source: str) -> tuple[str, ...]:
    """What the page says otherwise than the results, and rows that need a note."""
    listed, wrong = {row.test: row for row in rows(page, source)}, []
    for each in report.tests:
        row = listed.get(each.test)
        if row is None:
            wrong.append(f"{each.test} is not listed")
            continue
        for title, said, outcome in (
            ("kube-scheduler", row.stock, each.stock),
            ("numalign", row.numalign, each.numalign),
        ):
            if outcome not in (said, ""):
                wrong.append(f"{each.test}: {title} {outcome}, the page says {said or 'nothing'}")
        if each.numalign not in ("passed", "") and not row.note:
            wrong.append(f"{each.test}: has no note that says why it is {each.numalign}")
    known = {each.test for each in report.tests}
    return (*wrong, *(f"{test} is listed and does not exist" for test in listed if test not in known))


def updated(report: E2EReport, page: str, source: str) -> str:
    """The page with the outcomes of the report. Notes stay; a test that did not run gets the reason as its note."""
    listed = {row.test: row for row in rows(page, source)}
    before, _, after = page.partition("\n".join(HEAD) + "\n")
    rest = "\n".join(after.splitlines()[len(listed) :])
    table = [_row(each, listed.get(each.test)).words for each in report.tests]
    return f"{before}{chr(10).join([*HEAD, *table])}\n{rest}".rstrip("\n") + "\n"


def _row(each: Compared, old: Row | None) -> Row:
    note = old.note if old is not None else ""
    if not note and each.numalign in ("not run", "skipped"):
        note = each.why
    stock = each.stock or (old.stock if old is not None else "")
    return Row(each.test, stock, each.numalign or (old.numalign if old is not None else ""), note)
