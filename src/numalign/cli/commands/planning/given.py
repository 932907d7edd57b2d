"""What the questions of `numalign plan` are asked about: options for clusters and workloads, and their readers."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct

from numalign.api.errors import BadObject
from numalign.cli import amounts, fileio, output, sources
from numalign.cli.options import Policy, TraceZones
from numalign.cli.output import Format
from numalign.cli.sources import ProfiledSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from numalign.plan.questions.scene import Kind
    from numalign.plan.sources.catalogue import Catalogue
    from numalign.plan.sources.scenes import TraceSetup
    from numalign.plan.trace import Trace
    from numalign.scheduler.snapshot.snapshot import Snapshot

NOT_SO = 1
MOST_PODS = 1_000_000
CSV = ".csv"


class PlanFormat(StrEnum):
    """What `-o` accepts."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"


Output = Annotated[PlanFormat, typer.Option("--output", "-o", help="Output format.")]
Seed = Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the choice among equally good nodes.")]
Files = Annotated[
    list[str],
    typer.Option(
        "--file", "-f", metavar="FILE", help="Pods or workloads, or a table NAME.csv; - is stdin; may be repeated."
    ),
]
Requests = Annotated[
    list[str],
    typer.Option(
        "--requests", metavar="AMOUNTS", help="A Guaranteed pod: cpu=4,memory=8Gi, or with a weight cpu=4@3. Repeat it."
    ),
]


class PlanSource(ProfiledSource, frozen=True, kw_only=True):
    """The options that say what cluster is asked about."""

    recording: Annotated[
        str, typer.Option(metavar="FOLDER", help="Read a recording of the scheduler instead of a cluster.")
    ] = ""
    at: Annotated[
        str, typer.Option(metavar="TIME", help="The time of the recording, as 2026-11-18T14:00:00Z. Default: its end.")
    ] = ""
    catalogue: Annotated[
        str, typer.Option(metavar="FILE", help="Empty machines of a catalogue, as many of each type as it counts.")
    ] = ""
    trace: Annotated[
        str, typer.Option(metavar="DIR", help="The machines and pods of a trace, as of `plan replay`.")
    ] = ""
    trace_list: Annotated[str, typer.Option(metavar="NAME", help="The list of pods of the trace.")] = "default"
    trace_zones: Annotated[TraceZones, typer.Option(help="NUMA zones of the larger machines of the trace.")] = (
        TraceZones.ONE
    )
    trace_policy: Annotated[Policy, typer.Option(help="The Topology Manager policy of the trace's kubelets.")] = (
        Policy.RESTRICTED
    )
    trace_guaranteed: Annotated[
        bool, typer.Option("--trace-guaranteed", help="Pods of the trace have limits, and whole CPUs.")
    ] = False


def snapshot(source: PlanSource) -> Snapshot:
    """The cluster that is asked about. Warnings are printed."""
    from numalign.plan.sources import recorded, scenes

    exclusive = {
        "--recording": source.recording,
        "--catalogue": source.catalogue,
        "--trace": source.trace,
        "--snapshot, --server, --kubeconfig": source.snapshot or source.server or source.kubeconfig or source.context,
    }
    chosen = [name for name, given in exclusive.items() if given]
    if len(chosen) > 1:
        raise BadObject("Options", "", "", f"{' and '.join(chosen)} are exclusive; give one source")
    if source.at and not source.recording:
        raise BadObject("Options", "", "", "--at needs --recording")
    if source.recording:
        return recorded.at(Path(source.recording), _time(source.at), sources.configuration(source.config))
    if source.catalogue:
        found = catalogue(source.catalogue)
        return scenes.of_catalogue(found, fileio.shown(source.catalogue), sources.configuration(source.config))
    if source.trace:
        return scenes.of_trace(_trace(source), _setup(source), sources.configuration(source.config))
    return sources.taken(source)


def is_live(source: PlanSource) -> bool:
    """Whether the cluster may be another one the next time."""
    return not (source.recording or source.catalogue or source.trace or source.snapshot)


def _time(written: str) -> datetime | None:
    from datetime import UTC, datetime

    if not written:
        return None
    try:
        found = datetime.fromisoformat(written)
    except ValueError:
        raise BadObject("Option", "--at", "", f"{written} is not a time; write one like 2026-11-18T14:00:00Z") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def catalogue(path: str) -> Catalogue:
    """Errors name the line."""
    from numalign.api.decode import yamltext
    from numalign.cli import inputs
    from numalign.plan.sources import catalogue as reading

    text, name = fileio.text(path), fileio.shown(path)
    found = yamltext.documents(text, name)
    if len(found) != 1:
        raise BadObject("File", name, "", f"holds {len(found)} documents, and exactly one is wanted")
    (document,) = found
    try:
        return reading.read(document.value, name, inputs.machine)
    except BadObject as problem:
        if problem.kind != reading.KIND:
            raise
        where = f"line {yamltext.line(text, problem.field)}, {problem.field}".removesuffix(", ")
        raise BadObject(problem.kind, problem.name, where, problem.why) from None


def machines(path: str, names: Sequence[str], config: str) -> Catalogue:
    """The types of the catalogue, or machines that are named, with a kubelet configuration."""
    from numalign.cli import inputs
    from numalign.plan.sources import catalogue as reading

    if bool(path) == bool(names):
        raise BadObject("Options", "", "", "give either --catalogue or --machine: the machines to choose from")
    if path:
        if config:
            raise BadObject("Options", "", "", "--kubelet-config is for --machine; a catalogue has its own")
        return catalogue(path)
    return reading.of_names(tuple(names), lambda name: inputs.kubelet(name, config or None, None).kubelet)


def kinds(files: Sequence[str], requests: Sequence[str], source: PlanSource | None = None) -> tuple[Kind, ...]:
    """The kinds of pods that are asked about; those of the trace if no others are given."""
    from numalign.plan.questions import capacity
    from numalign.plan.questions.scene import Kind
    from numalign.plan.sources import scenes

    found: list[Kind] = []
    for path in files:
        found += _table(path) if path.endswith(CSV) else _workloads(path)
    found += [_asked(written) for written in requests]
    if not found and source is not None and source.trace:
        trace, setup = _trace(source), _setup(source)
        found = [
            Kind(name=pod.metadata.name, pod=pod, pods=count, weight=count)
            for pod, count in scenes.pods_of_trace(trace, setup)
        ]
    if found:
        capacity.check(found)
    return tuple(found)


def _table(path: str) -> list[Kind]:
    from numalign.plan.questions.scene import Kind
    from numalign.plan.sources import workloadtable

    rows = workloadtable.read(fileio.text(path), fileio.shown(path))
    return [Kind(name=row.name, pod=row.pod, pods=row.pods, weight=row.weight) for row in rows]


def _workloads(path: str) -> list[Kind]:
    """Replicas of a workload are one kind."""
    from numalign.cli.results import podfiles
    from numalign.plan.questions.scene import Kind

    read = podfiles.read([path], MOST_PODS)
    for warning in read.warnings:
        output.warn(warning)
    replicas: dict[int, Kind] = {}
    for pod, _ in read.pods:
        known = replicas.get(id(pod.spec))
        pods = known.pods + 1 if known is not None else 1
        name = known.name if known is not None else pod.metadata.name
        replicas[id(pod.spec)] = Kind(
            name=name.removesuffix("-0") if pods > 1 else name,
            pod=known.pod if known is not None else pod,
            pods=pods,
            weight=pods,
        )
    return list(replicas.values())


def _asked(written: str) -> Kind:
    from numalign.plan.questions.scene import Kind
    from numalign.plan.sources import workloadtable

    text, at, weight = written.partition("@")
    if at and not (weight.isascii() and weight.isdigit() and len(weight) <= 6):
        raise BadObject("Option", "--requests", "", f"{written}: write a whole number after @: the weight")
    found = amounts.requests(text, "--requests")
    for name, amount in found.items():
        if amount.nanos < 0:
            raise BadObject("Option", "--requests", "", f"{name}={amount} is negative; write zero or more")
    return Kind(name=text, pod=workloadtable.guaranteed("asked", found), weight=int(weight) if at else 1)


def _trace(source: PlanSource) -> Trace:
    from numalign.plan import trace

    return trace.read(Path(source.trace), source.trace_list)


def _setup(source: PlanSource) -> TraceSetup:
    from numalign.plan.sources.scenes import TraceSetup

    return TraceSetup(zones=int(source.trace_zones), policy=source.trace_policy.value, pinned=source.trace_guaranteed)


class Drawing(Struct, frozen=True):
    """The two forms that are not made from the result itself."""

    table: Callable[[], str]
    lines: Callable[[], Iterable[Mapping[str, object]]]


def show(result: object, fmt: PlanFormat, drawing: Drawing) -> None:
    from numalign.cli.results.plans import lines

    if fmt in (PlanFormat.TABLE, PlanFormat.WIDE):
        output.show(drawing.table())
    elif fmt is PlanFormat.CSV:
        output.show(lines.text(drawing.lines()))
    else:
        output.show(output.structured(result, Format(fmt.value)))
