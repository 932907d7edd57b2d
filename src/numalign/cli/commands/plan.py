"""`numalign plan`: the questions of the planner, and what policies make of a recorded workload.

Commands import what they call when they run, so that help stays fast."""

from __future__ import annotations

import os
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer
from msgspec import structs

from numalign.api.errors import BadObject
from numalign.cli import output
from numalign.cli.commands.planning import capacity, defrag, fit, resize, sweep, whatif
from numalign.cli.commands.planning.progress import Progress, seeds_of
from numalign.cli.options import Policy, RequestReading, TraceZones
from numalign.cli.output import Format

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numalign.plan.replay import Case

app = typer.Typer(no_args_is_help=True, help="Answer what fits, what it takes and what would be different.")
EVERY = "all"
MOST_NAMED = 10
"""Contradictions that are printed."""
CONTRADICTED = 1


class RunsFormat(StrEnum):
    """What `-o` accepts."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"


class Setting(NamedTuple):
    """What all cases of a study have in common."""

    zones: int
    whole_gpus: bool
    topology_policy: Policy
    requests: RequestReading


@app.callback()
def plan() -> None:
    """Answer what fits, what it takes and what would be different, as kubelets will place pods."""


app.command("capacity", epilog=capacity.EXAMPLE)(capacity.capacity)
app.command("fit", epilog=fit.EXAMPLE)(fit.fit)
app.command("what-if", epilog=whatif.EXAMPLE)(whatif.what_if)
app.command("resize", epilog=resize.EXAMPLE)(resize.resize)
app.command("sweep", epilog=sweep.EXAMPLE)(sweep.sweep)
app.command("defrag", epilog=defrag.EXAMPLE)(defrag.defrag)


@app.command("replay", epilog="Example: numalign plan replay TRACE_DIR --list default --policy fgd --seeds 42-51")
def replay(
    trace_dir: Annotated[Path, typer.Argument(help="The folder with the lists of nodes and pods.", show_default=False)],
    lists: Annotated[
        str, typer.Option("--list", metavar="NAMES", help="Pod lists, separated by commas; all: every one.")
    ] = "default",
    policies: Annotated[
        str, typer.Option("--policy", metavar="NAMES", help="Policies, separated by commas; all: every one.")
    ] = "fgd",
    zones: Annotated[TraceZones, typer.Option(help="NUMA zones of the larger machines.")] = TraceZones.ONE,
    whole_gpus: Annotated[
        bool, typer.Option("--whole-gpus", help="Leave out pods that share a GPU; always so with several zones.")
    ] = False,
    topology_policy: Annotated[
        Policy, typer.Option("--topology-policy", help="What kubelets do with pods of whole GPUs.")
    ] = Policy.RESTRICTED,
    requests: Annotated[
        RequestReading,
        typer.Option("--read-requests", help="As listed: only GPUs are aligned; guaranteed: whole CPUs, too."),
    ] = RequestReading.LISTED,
    seeds: Annotated[str, typer.Option(metavar="SEEDS", help="Such as 42, 42-51 or 42,45-47.")] = "42",
    workers: Annotated[
        int, typer.Option(metavar="N", min=0, max=256, help="Processes; 0: as many as there are cores.")
    ] = 0,
    kubelets: Annotated[
        bool, typer.Option("--kubelets", help="Put every binding to simulated kubelets, and name contradictions.")
    ] = False,
    fmt: Annotated[RunsFormat, typer.Option("--output", "-o", help="Output format.")] = RunsFormat.TABLE,
) -> None:
    """Replay pod lists of a trace until the pods ask for 130 % of all GPUs, and print what each policy allocates.

    Exit code: 0, 1 if a simulated kubelet did otherwise than the replay says, or 2 if the trace cannot be read."""
    from numalign.cli.display import planruns
    from numalign.plan import replay as replays
    from numalign.simulator import kubelets as simulated

    setting = Setting(int(zones), whole_gpus, topology_policy, requests)
    cases = _cases(trace_dir, lists, policies, setting, seeds)
    for case in cases:
        replays.check(case, by_kubelets=kubelets)
    progress, processes = Progress(len(cases), "runs", time.monotonic), workers or os.cpu_count() or 1
    asked = simulated.ask if kubelets else None
    found = list(progress.of(replays.runs(trace_dir, cases, processes, time.monotonic, asked)))
    if fmt is RunsFormat.TABLE:
        output.show(planruns.table(found))
    elif fmt is RunsFormat.CSV:
        output.show(planruns.csv(found))
    else:
        output.show(output.structured(found, Format(fmt.value)))
    wrong = [each for run in found if run.kubelets is not None for each in run.kubelets.contradictions]
    for each in wrong[:MOST_NAMED]:
        output.say(each)
    raise typer.Exit(CONTRADICTED if wrong else 0)


def _cases(folder: Path, lists: str, written: str, setting: Setting, seeds: str) -> Sequence[Case]:
    from numalign.plan import trace
    from numalign.plan.replay import Case, policies

    like = Case(
        list="",
        policy="",
        seed=0,
        zones=setting.zones,
        whole_gpus=setting.whole_gpus,
        topology_policy=setting.topology_policy.value,
        requests=setting.requests.value,
    )
    return [
        structs.replace(like, list=name, policy=policy, seed=seed)
        for name in (trace.lists(folder) if lists == EVERY else _names(lists, "--list"))
        for policy in (policies(like) if written == EVERY else _names(written, "--policy"))
        for seed in seeds_of(seeds, "plan replay")
    ]


def _names(written: str, option: str) -> list[str]:
    names = [name.strip() for name in written.split(",")]
    if not all(names):
        raise BadObject("plan replay", written, option, "has an empty name; write names separated by commas")
    return list(dict.fromkeys(names))
