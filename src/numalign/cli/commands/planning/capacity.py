"""`numalign plan capacity`: how many more pods fit, what stops the next one, and what would help."""

from __future__ import annotations

from typing import Annotated

import typer

from numalign.cli import output, sources
from numalign.cli.commands.planning import given
from numalign.cli.commands.planning.given import NOT_SO, Files, Output, PlanFormat, PlanSource, Requests, Seed
from numalign.cli.options import bundled

EXAMPLE = "Example: numalign plan capacity --requests cpu=8,memory=16Gi,nvidia.com/gpu=1@3 --requests cpu=2,memory=4Gi"
Gains = Annotated[bool, typer.Option("--gains/--no-gains", help="Count what one more device or core would give.")]


@bundled
def capacity(
    source: PlanSource,
    file: Files = [],  # noqa: B006
    requests: Requests = [],  # noqa: B006
    gains: Gains = True,
    seed: Seed = 0,
    fmt: Output = PlanFormat.TABLE,
) -> None:
    """Count how many more pods fit, by node and zone, and say what stops the next one and what would help.

    Pods of files have to fit together; --requests asks how many fit. Exit code: 0 if they fit, or at least one pod
    fits, 1 if not, 2 if a file or the cluster cannot be read."""
    from numalign.cli.results.plans import capacity as drawn
    from numalign.plan.questions.capacity import CapacityQuestion, answer

    kinds = given.kinds(file, requests, source)
    if not kinds:
        output.fail("no kind of pod is given; give --requests or -f")
    with sources.at_once():
        is_workload = bool(file or not requests)
        asked = CapacityQuestion(kinds=kinds, is_workload=is_workload, gains=gains, seed=seed)
        found = answer(given.snapshot(source), asked)
    for problem in found.problems:
        output.warn(problem)
    drawing = given.Drawing(lambda: drawn.text(found, wide=fmt is PlanFormat.WIDE), lambda: drawn.lines(found))
    given.show(found, fmt, drawing)
    raise typer.Exit(0 if found.fits else NOT_SO)
