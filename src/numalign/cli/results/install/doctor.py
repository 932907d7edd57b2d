"""Shows what the doctor found: JSON and YAML output, and text grouped by severity with what to do.

`numalign doctor` and `numalign deploy validate` call `given` and `drawn`. A fault of thousands of nodes is one finding:
the text names a few of them, JSON and YAML all. docs/use/doctor.md documents the fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.text import Text

from numalign.cli import output
from numalign.cli.display import formats
from numalign.cli.display.formats import INDENT, Page
from numalign.cli.display.values import Reported
from numalign.cli.results import explaindraw
from numalign.cli.results.explanation import ExplainOutput
from numalign.deploy.doctor.checks import Severity
from numalign.deploy.doctor.diagnosis import CHECKS, Diagnosis, Finding
from numalign.deploy.doctor.fixes import FixOutcome
from numalign.deploy.doctor.walk import WalkStep

MOST_NAMED = 4
STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.INFO: "bold"}
HEADS = {Severity.ERROR: "errors", Severity.WARNING: "warnings", Severity.INFO: "for information"}
LEAST_TO_GROUP = 2


class FindingOutput(Reported, frozen=True, kw_only=True):
    check: str
    severity: Severity
    title: str
    seen: str
    where: tuple[str, ...]
    nodes: tuple[str, ...]
    why: str
    fix: str
    fixable: bool
    """Whether `--fix` mends it."""


class OutcomeOutput(Reported, frozen=True, kw_only=True):
    what: str
    done: bool
    says: str


class StepOutput(Reported, frozen=True, kw_only=True):
    title: str
    says: str
    in_order: bool
    findings: tuple[FindingOutput, ...]
    skipped: tuple[str, ...]


class DoctorOutput(Reported, frozen=True, kw_only=True):
    nodes: int
    """Number of nodes that were judged."""
    checks: int
    errors: int
    warnings: int
    findings: tuple[FindingOutput, ...]
    skipped: dict[str, str]
    """By id of a check, why it was skipped."""
    fixed: tuple[OutcomeOutput, ...] = ()


class WalkOutput(Reported, frozen=True, kw_only=True):
    pod: str
    steps: tuple[StepOutput, ...]
    explanation: ExplainOutput


class CheckOutput(Reported, frozen=True, kw_only=True):
    id: str
    severity: Severity
    title: str
    why: str
    fix: str
    rule: str
    needs: tuple[str, ...]


def given(diagnosis: Diagnosis, outcomes: Iterable[FixOutcome] = ()) -> DoctorOutput:
    findings = tuple(map(_finding, diagnosis.findings))
    return DoctorOutput(
        nodes=diagnosis.nodes,
        checks=len(diagnosis.judged),
        errors=sum(each.severity is Severity.ERROR for each in findings),
        warnings=sum(each.severity is Severity.WARNING for each in findings),
        findings=findings,
        skipped=diagnosis.skipped,
        fixed=tuple(OutcomeOutput(what=each.what, done=each.done, says=each.says) for each in outcomes),
    )


def _finding(found: Finding) -> FindingOutput:
    return FindingOutput(
        check=found.check,
        severity=found.severity,
        title=found.title,
        seen=found.seen,
        where=found.where,
        nodes=found.nodes,
        why=found.why,
        fix=found.fix,
        fixable=bool(found.repairs),
    )


def listed() -> tuple[CheckOutput, ...]:
    return tuple(
        CheckOutput(
            id=each.id,
            severity=each.severity,
            title=each.title,
            why=each.why,
            fix=each.fix,
            rule=each.rule,
            needs=each.needs,
        )
        for each in CHECKS.values()
    )


def walked(pod: str, steps: Iterable[WalkStep], explanation: ExplainOutput) -> WalkOutput:
    made = tuple(
        StepOutput(
            title=each.title,
            says=each.says,
            in_order=not (each.findings or each.is_open),
            findings=tuple(map(_finding, each.findings)),
            skipped=each.skipped,
        )
        for each in steps
    )
    return WalkOutput(pod=pod, steps=made, explanation=explanation)


def drawn(shown: DoctorOutput) -> str:
    page = Page()
    for severity, head in HEADS.items():
        found = [each for each in shown.findings if each.severity is severity]
        if found:
            page.add(Text(head.upper(), STYLES[severity]))
            for each in found:
                _draw(page, each)
    for outcome in shown.fixed:
        page.add(f"{outcome.what}: {outcome.says}")
    if shown.fixed:
        page.add()
    if shown.skipped:
        page.add(f"not judged: {_reasons(shown.skipped)}")
    page.add(_summary(shown))
    return page.text()


def _draw(page: Page, found: FindingOutput) -> None:
    page.add(Text(output.printable(f"{found.check}: {found.title}"), "bold"), indent=INDENT)
    lines = formats.labelled()
    for label, text in _lines(found):
        lines.add_row(label, output.printable(text))
    page.add(lines, indent=2 * INDENT)
    page.add()


def _lines(found: FindingOutput) -> Iterator[tuple[str, str]]:
    yield "where", named(found.where)
    yield "seen", found.seen
    yield "why", found.why
    yield "fix", found.fix


def named(where: Sequence[str]) -> str:
    """Nodes of one finding: the word Node once."""
    if len(where) >= LEAST_TO_GROUP and all(each.startswith("Node ") for each in where):
        shown = ", ".join(each.removeprefix("Node ") for each in where[:MOST_NAMED])
        prefix = f"{len(where)} nodes: "
    else:
        shown, prefix = ", ".join(where[:MOST_NAMED]), ""
    return prefix + shown + (f" and {len(where) - MOST_NAMED} more" if len(where) > MOST_NAMED else "")


def _reasons(skipped: dict[str, str]) -> str:
    by_reason: dict[str, list[str]] = {}
    for name, why in skipped.items():
        by_reason.setdefault(why, []).append(name)
    return "; ".join(f"{', '.join(names)} ({why})" for why, names in by_reason.items())


def _summary(shown: DoctorOutput) -> str:
    found = [
        f"{count} {word}{'s' * (count != 1)}" for count, word in ((shown.errors, "error"), (shown.warnings, "warning"))
    ]
    judged = f"{shown.nodes} node{'s' * (shown.nodes != 1)}, {shown.checks} check{'s' * (shown.checks != 1)}"
    return f"{judged}: {', '.join(found)}"


def list_text(checks: Sequence[CheckOutput]) -> str:
    page = Page()
    for each in checks:
        rule = f", {each.rule}" if each.rule else ""
        page.add(Text(f"{each.id} ({each.severity}{rule}): {each.title}", "bold"))
        page.add(each.why, indent=INDENT)
        page.add(f"fix: {each.fix}", indent=INDENT)
    return page.text()


def walk_text(walk: WalkOutput) -> str:
    page = Page()
    for number, step in enumerate(walk.steps, start=1):
        state = "NO" if step.findings else "yes" if step.in_order else "not known yet"
        if step.skipped and not step.findings:
            state = "not known"
        says = f" ({step.says})" if step.says else ""
        page.add(Text(output.printable(f"{number}. {step.title}{says}: {state}"), "bold"))
        for each in step.findings:
            page.add(f"{each.check}, {named(each.where)}: {each.seen}", indent=2 * INDENT)
            page.add(f"fix: {each.fix}", indent=2 * INDENT)
        if step.skipped:
            page.add(f"not judged: {', '.join(step.skipped)}", indent=2 * INDENT)
    page.add(Text(f"{len(walk.steps) + 1}. what the scheduler's rules say", "bold"))
    return f"{page.text()}\n{explaindraw.drawn(walk.explanation, every=False)}"
