"""`numalign lab replay`: whether real kubelets do what the planner says of a recorded workload."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from numalign.cli import output
from numalign.cli.options import Output, Policy, RequestReading, TraceZones

if TYPE_CHECKING:
    from numalign.lab.replay.run import PolicyRun, ReplayOptions

EXAMPLE = "Example: numalign lab replay openb --nodes 20 --policy zone-fgd,fgd --read-requests guaranteed"
CONTRADICTED = 1
INTERRUPTED = 130
MOST_NAMED = 10


def replay(
    trace_dir: Annotated[Path, typer.Argument(help="The folder with the lists of nodes and pods.", show_default=False)],
    nodes: Annotated[int, typer.Option(metavar="N", min=1, max=50, help="Machines of the trace, by the seed.")] = 20,
    pods: Annotated[str, typer.Option("--list", metavar="NAME", help="The pod list.")] = "default",
    policies: Annotated[
        str, typer.Option("--policy", metavar="NAMES", help="Policies, separated by commas.")
    ] = "zone-fgd,fgd",
    zones: Annotated[TraceZones, typer.Option(help="NUMA zones of the larger machines.")] = TraceZones.TWO,
    topology_policy: Annotated[
        Policy, typer.Option("--topology-policy", help="What kubelets do with pods.")
    ] = Policy.RESTRICTED,
    requests: Annotated[
        RequestReading,
        typer.Option("--read-requests", help="As listed: only GPUs are aligned; guaranteed: whole CPUs, too."),
    ] = RequestReading.GUARANTEED,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of machines and pods.")] = 42,
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="Name of the lab.")] = "replay",
    fmt: Output = output.Format.TABLE,
) -> None:
    """Replay a pod list on some machines of a trace, put every binding to real kubelets, and name contradictions.

    Exit code: 0 if every kubelet did what the replay says; 1 if one did not, or if the lab failed; 2 if the options,
    the trace or this machine do not allow it; 130 if it was interrupted."""
    from numalign.cli.devkit import labs
    from numalign.lab.errors import LabError
    from numalign.lab.replay import run
    from numalign.plan import replay as replays

    asked = run.ReplayOptions(
        folder=trace_dir,
        list=pods,
        policies=tuple(dict.fromkeys(each.strip() for each in policies.split(","))),
        nodes=nodes,
        zones=int(zones),
        topology_policy=topology_policy.value,
        is_pinned=requests is RequestReading.GUARANTEED,
        seed=seed,
        name=name,
    )
    for each in asked.policies:
        replays.check(replays.Case(list=pods, policy=each, seed=seed, whole_gpus=True))
    try:
        labs.require(run.lab(asked))
    except LabError as problem:
        output.fail(str(problem))
    try:
        found = _replayed(asked)
    except LabError as problem:
        output.fail(str(problem), code=1)
    output.show(_table(found) if fmt is output.Format.TABLE else output.structured(found, fmt))
    wrong = [each for one in found for each in one.kubelets.contradictions]
    for line in wrong[:MOST_NAMED]:
        output.say(line)
    raise typer.Exit(CONTRADICTED if wrong else 0)


def _replayed(asked: ReplayOptions) -> Sequence[PolicyRun]:
    from numalign.kube import clock
    from numalign.lab.replay import run

    try:
        with clock.event_loop_runner() as runner:
            return runner.run(run.run(asked, _say))
    except asyncio.CancelledError:
        raise typer.Exit(INTERRUPTED) from None


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _table(found: Sequence[PolicyRun]) -> str:
    from numalign.cli.display.formats import Page

    page = Page()
    drawn = page.table("POLICY", "BOUND", "ADMITTED", "PINNED", "REJECTED", "DIFFER")
    for each in found:
        said = each.kubelets
        numbers = said.bindings, said.admitted, said.pinned, said.rejected, len(said.contradictions)
        drawn.add_row(each.policy, *map(str, numbers))
    page.add(drawn)
    return page.text()
