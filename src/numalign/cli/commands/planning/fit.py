"""`numalign plan fit`: the fewest or cheapest machines for a workload."""

from __future__ import annotations

import time
from enum import StrEnum
from typing import Annotated

import typer

from numalign.cli import output, sources
from numalign.cli.commands.planning import given
from numalign.cli.commands.planning.given import NOT_SO, Files, Output, PlanFormat, Requests
from numalign.cli.commands.planning.progress import Progress, seeds_of
from numalign.cli.options import bundled

EXAMPLE = "Example: numalign plan fit -f workload.yaml --catalogue machines.yaml --objective cost --seeds 1-10"


class Objective(StrEnum):
    """What `--objective` accepts."""

    MACHINES = "machines"
    COST = "cost"


@bundled
def fit(
    file: Files = [],  # noqa: B006
    requests: Requests = [],  # noqa: B006
    catalogue: Annotated[str, typer.Option(metavar="FILE", help="The machine types to choose from.")] = "",
    machine: Annotated[
        list[str],
        typer.Option("--machine", metavar="NAME|FILE", help="A machine to choose from; may be repeated."),
    ] = [],  # noqa: B006
    kubelet_config: Annotated[
        str, typer.Option("--kubelet-config", metavar="FILE", help="The KubeletConfiguration of --machine.")
    ] = "",
    objective: Annotated[Objective, typer.Option(help="What the best plan has least of.")] = Objective.MACHINES,
    seeds: Annotated[str, typer.Option(metavar="SEEDS", help="Orders of arrival, as 1-5.")] = "1-5",
    config: sources.Config = "",
    fmt: Output = PlanFormat.TABLE,
) -> None:
    """Find the fewest or cheapest machines for a workload, over several orders of arrival.

    Exit code: 0 if there are machines for all pods, 1 if not, 2 if a file cannot be read."""
    from numalign.cli.results.plans import fit as drawn
    from numalign.plan.questions import fit as questions

    kinds = given.kinds(file, requests)
    if not kinds:
        output.fail("no kind of pod is given; give -f or --requests")
    machines = given.machines(catalogue, machine, kubelet_config)
    asked = questions.FitQuestion(
        kinds=kinds,
        seeds=seeds_of(seeds, "plan fit"),
        by_cost=objective is Objective.COST,
        config=sources.configuration(config),
    )
    questions.check(machines, asked)
    with sources.at_once():
        progress = Progress(questions.steps(machines, asked), "orders of arrival", time.monotonic)
        needs = list(progress.of(questions.needs(machines, asked)))
        found = questions.answer(machines, asked, needs)
    given.show(found, fmt, given.Drawing(lambda: drawn.text(found), lambda: drawn.lines(found)))
    raise typer.Exit(0 if found.fits else NOT_SO)
