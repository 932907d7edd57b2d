"""`numalign doctor`: finds known misconfigurations of a cluster, says what to do, and mends what it can.

The command imports what it calls when it runs, so that help stays fast. Its exit codes are those of a validator: 0, 1
for anything that kept it from judging, 2 for findings."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from msgspec import Struct
from typer.core import TyperCommand

from numalign.api.errors import BadObject
from numalign.cli import fileio, output, sources
from numalign.cli.options import Output, bundled
from numalign.cli.output import Format
from numalign.cli.sources import ClusterSource

if TYPE_CHECKING:
    from collections.abc import Callable

    from numalign.api.objects.node import Node
    from numalign.api.objects.pod import Pod
    from numalign.deploy.doctor.diagnosis import Diagnosis
    from numalign.deploy.doctor.fixes import FixOutcome
    from numalign.deploy.doctor.observed import Observed
    from numalign.scheduler.snapshot.snapshot import Snapshot

TECHNICAL, FOUND = 1, 2
USAGE = 2
"""The exit code of typer for a wrong command line."""
QUIET = 2.0
"""Seconds without a word of progress."""
AGAIN = 1.0

app = typer.Typer()

Files = Annotated[
    list[str] | None,
    typer.Option(
        "--file",
        "-f",
        metavar="FILE",
        help="Read files instead of a cluster: the output of kubectl get KINDS -A -o json; - is stdin.",
    ),
]
PodName = Annotated[
    str, typer.Argument(metavar="[POD]", help="Walk from this pod to the cause: NAME or NAMESPACE/NAME.")
]


class Chosen(Struct, frozen=True, kw_only=True):
    """What is judged."""

    check: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Run this check only; may be given several times.")
    ] = None
    node: Annotated[str, typer.Option(metavar="NAME", help="Show findings about this node only.")] = ""
    selector: Annotated[
        str,
        typer.Option("--selector", "-l", metavar="LABELS", help="Judge nodes with these labels: key=value,key,!key."),
    ] = ""
    strict: Annotated[bool, typer.Option("--strict", help="Exit with code 2 for warnings, too.")] = False


class Mending(Struct, frozen=True, kw_only=True):
    fix: Annotated[bool, typer.Option("--fix", help="Mend what can be mended from here, after asking.")] = False
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before mending.")] = False


class DoctorSource(Struct, frozen=True, kw_only=True):
    kubeconfig: sources.Kubeconfig = ""
    context: sources.Context = ""
    file: Files = None


class Strictly(TyperCommand):
    """Exits with code 1 where the command line is wrong: 2 would be a finding."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except Exception as problem:
            # typer does not export the class of its usage errors.
            if getattr(problem, "exit_code", None) != USAGE:
                raise
            problem.exit_code = TECHNICAL  # type: ignore[attr-defined]
            raise


@app.command(cls=Strictly, epilog="Example: numalign doctor --node worker-3")
@bundled
def doctor(
    source: DoctorSource,
    chosen: Chosen,
    mending: Mending,
    name: PodName = "",
    pod: Annotated[str, typer.Option(metavar="NAMESPACE/NAME", help="The same as POD.")] = "",
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", metavar="NAMESPACE", help="The namespace of the pod.")
    ] = "",
    list_checks: Annotated[bool, typer.Option("--list", help="List all checks, and exit.")] = False,
    fmt: Output = Format.TABLE,
) -> None:
    """Find known misconfigurations: of kubelets, reports, agents, schedulers and rights.

    Exit code: 0 if there is no error, 1 if the cluster cannot be judged, 2 if there is one; with --strict also for
    warnings. With POD: 2 if something is wrong on the way, or if no node takes the pod."""
    try:
        if list_checks:
            return _list(fmt)
        _require_sense(source, chosen, mending)
        asked = pod or name
        if asked:
            space, _, plain = asked.rpartition("/")
            _walk(source, chosen, f"{namespace or space or 'default'}/{plain}", fmt)
        _judge(source, chosen, mending, fmt)
    except BadObject as problem:
        output.fail(str(problem), TECHNICAL)


def _list(fmt: Format) -> None:
    from numalign.cli.results.install import doctor as results

    checks = results.listed()
    output.show(results.list_text(checks) if fmt is Format.TABLE else output.structured(checks, fmt))


def _require_sense(source: DoctorSource, chosen: Chosen, mending: Mending) -> None:
    from numalign.api.decode import fields
    from numalign.deploy.doctor.diagnosis import CHECKS

    for each in chosen.check or ():
        if each not in CHECKS:
            near = fields.suggestion(each, list(CHECKS)) if len(each) > 1 else ""
            near = near if near.startswith("did you mean") else "numalign doctor --list lists all"
            raise BadObject("Check", each, "", f"there is no such check; {near}")
    if source.file and (source.kubeconfig or source.context):
        raise BadObject("Options", "", "", "--file and --kubeconfig are exclusive; give one")
    if source.file and mending.fix:
        raise BadObject("Options", "", "", "--fix needs a cluster; a file cannot be mended")


def _judge(source: DoctorSource, chosen: Chosen, mending: Mending, fmt: Format) -> NoReturn:
    from numalign.cli.results.install import doctor as results
    from numalign.deploy.doctor.checks import Severity

    with sources.at_once():
        diagnosis = _diagnosed(_observed(source, _texts(source)), chosen)
    outcomes: list[FixOutcome] = []
    if mending.fix:
        outcomes = _mend(source, mending, diagnosis)
        if outcomes:
            diagnosis = _diagnosed(_observed(source, []), chosen)
    shown = results.given(diagnosis, outcomes)
    output.show(results.drawn(shown) if fmt is Format.TABLE else output.structured(shown, fmt))
    worst = Severity.WARNING if chosen.strict else Severity.ERROR
    if diagnosis.has(worst):
        raise typer.Exit(FOUND)
    if diagnosis.is_void and not source.file:
        output.fail("the cluster is not judged: what the checks need could not be read", TECHNICAL)
    raise typer.Exit


def _texts(source: DoctorSource) -> list[tuple[bytes, str]]:
    """Content and name of each file. Read once: the standard input has no second time."""
    return [(sources.content(each), fileio.shown(each)) for each in source.file or ()]


def _observed(source: DoctorSource, texts: list[tuple[bytes, str]]) -> Observed:
    from numalign.deploy.doctor import collect, files

    if source.file:
        return files.read(texts)
    progress = CollectProgress()
    try:
        return sources.asked_of(source.kubeconfig, source.context, lambda client: collect.observe(client, progress.at))
    finally:
        progress.end()


def _diagnosed(observed: Observed, chosen: Chosen) -> Diagnosis:
    from numalign.deploy.doctor import diagnosis

    if chosen.node and all(each.metadata.name != chosen.node for each in observed.nodes):
        raise BadObject("Node", chosen.node, "", "is not there")
    selects = _selection(chosen.selector) if chosen.selector else None
    return diagnosis.diagnose(observed, only=chosen.check or (), node=chosen.node, selects=selects)


def _selection(text: str) -> Callable[[Node], bool]:
    wanted: list[tuple[str, str, str]] = []
    for part in filter(None, (each.strip() for each in text.split(","))):
        for operator in ("!=", "==", "="):
            key, found, value = part.partition(operator)
            if found:
                wanted.append((key.strip(), "!=" if operator == "!=" else "=", value.strip()))
                break
        else:
            wanted.append((part.removeprefix("!"), "absent" if part.startswith("!") else "present", ""))
    if not wanted or any(not key for key, _, _ in wanted):
        raise BadObject("Options", "", "--selector", f'"{text}" selects nothing; write key=value, key or !key')

    def selects(node: Node) -> bool:
        labels = node.metadata.labels
        return all(_holds(labels.get(key), operator, value) for key, operator, value in wanted)

    return selects


def _holds(label: str | None, operator: str, value: str) -> bool:
    match operator:
        case "=":
            return label == value
        case "!=":
            return label != value
        case "absent":
            return label is None
    return label is not None


def _mend(source: DoctorSource, mending: Mending, diagnosis: Diagnosis) -> list[FixOutcome]:
    from numalign.deploy.doctor import fixes

    planned = fixes.planned(diagnosis)
    if not planned:
        typer.echo("nothing to mend from here", err=True)
        return []
    for check, repair in planned:
        for line in (f"{check}:", *repair.diff().splitlines()):
            typer.echo(output.printable(line), err=True)
    if not mending.yes:
        if not sys.stdin.isatty():
            raise BadObject("Options", "", "--fix", f"would make {len(planned)} changes; give --yes to make them")
        if not typer.confirm(f"Make these {len(planned)} changes?", err=True):
            return []
    repairs = [repair for _, repair in planned]
    return sources.asked_of(source.kubeconfig, source.context, lambda client: fixes.mend(client, repairs))


def _walk(source: DoctorSource, chosen: Chosen, full_name: str, fmt: Format) -> NoReturn:
    from numalign.cli.results import explanation
    from numalign.cli.results.install import doctor as results
    from numalign.deploy.doctor import walk
    from numalign.deploy.doctor.checks import Severity

    with sources.at_once():
        texts = _texts(source)
        taken = _snapshot(source, texts)
        pod = explanation.found(taken, full_name)
        signs = {} if source.file else sources.signs(_cluster(source), [pod])
        seen = signs.get(pod.metadata.uid, explanation.NO_SIGNS)
        answer = explanation.about_pod(taken, pod, explanation.ExplainDetail(False), seen)
        observed = _observed(source, texts)
        diagnosis = _diagnosed(observed, chosen)
    steps = walk.steps(observed, diagnosis, _pod(observed, full_name))
    shown = results.walked(full_name, steps, answer)
    output.show(results.walk_text(shown) if fmt is Format.TABLE else output.structured(shown, fmt))
    ill = any(each.severity is Severity.ERROR for step in steps for each in step.findings)
    raise typer.Exit(FOUND if ill or not answer.fits else 0)


def _cluster(source: DoctorSource) -> ClusterSource:
    return ClusterSource(kubeconfig=source.kubeconfig, context=source.context)


def _snapshot(source: DoctorSource, texts: list[tuple[bytes, str]]) -> Snapshot:
    """What the scheduler's rules are asked about."""
    from numalign.scheduler.snapshot import files

    if not source.file:
        return sources.taken(_cluster(source))
    from numalign.kube import dumps

    odd: list[str] = []
    items = [raw for text, name in texts for _, raw in dumps.objects(text, name, odd)]
    joined = b'{"kind":"List","items":[' + b",".join(items) + b"]}"
    return files.read(joined, ", ".join(name for _, name in texts))


def _pod(observed: Observed, full_name: str) -> Pod:
    found = next((each for each in observed.pods if each.metadata.full_name == full_name), None)
    if found is None:
        raise BadObject("Pod", full_name, "", "is not there any more")
    return found


class CollectProgress:
    """Prints on stderr what is being read, once that takes a while."""

    def __init__(self) -> None:
        self._due = time.monotonic() + QUIET
        self._counts: dict[str, int] = {}
        self._is_terminal = sys.stderr.isatty()
        self._said = False

    def at(self, what: str, count: int) -> None:
        self._counts[what] = count
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + AGAIN
            self._said = True
            read = ", ".join(f"{number:,} {name}" for name, number in self._counts.items() if number)
            if self._is_terminal:
                typer.echo(f"\r\x1b[Kreading: {read}", nl=False, err=True)
            else:
                typer.echo(f"reading: {read}", err=True)

    def end(self) -> None:
        if self._said and self._is_terminal:
            typer.echo("\r\x1b[K", nl=False, err=True)
