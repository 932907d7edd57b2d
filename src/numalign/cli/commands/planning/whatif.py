"""`numalign plan what-if`: the same cluster, changed."""

from __future__ import annotations

from typing import Annotated

import typer

from numalign.cli import output, sources
from numalign.cli.commands.planning import difference, given
from numalign.cli.commands.planning.difference import Different
from numalign.cli.commands.planning.given import NOT_SO, Files, Output, PlanFormat, PlanSource, Requests
from numalign.cli.options import bundled

EXAMPLE = "Example: numalign plan what-if --topology-policy single-numa-node -l pool=gpu"


@bundled
def what_if(
    different: Different,
    source: PlanSource,
    file: Files = [],  # noqa: B006
    requests: Requests = [],  # noqa: B006
    seed: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Order of arrival among equal pods. Default: as they were created."),
    ] = None,
    fmt: Output = PlanFormat.TABLE,
) -> None:
    """Compare the cluster with itself after a change of kubelets, hardware, scoring or nodes, and say who loses.

    Exit code: 0 if nothing is lost that ran and nothing waits that had a node, 1 otherwise, 2 if a file or the cluster
    cannot be read."""
    from numalign.cli.results.plans import whatif as drawn
    from numalign.plan.questions.whatif import WhatIfQuestion, compared

    kinds = given.kinds(file, requests, source)
    with sources.at_once():
        taken = given.snapshot(source)
        change = difference.change(different, taken, seed or 0)
        if not change.is_something:
            output.fail("nothing would be different; give an option such as --topology-policy, --drain or --scoring")
        found = compared(taken, WhatIfQuestion(change=change, kinds=kinds, seed=seed))
    for problem in found.problems:
        output.warn(problem)
    given.show(found, fmt, given.Drawing(lambda: drawn.text(found), lambda: drawn.lines(found)))
    raise typer.Exit(0 if found.fits else NOT_SO)
