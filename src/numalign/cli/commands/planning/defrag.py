"""`numalign plan defrag`: which pods to move so that others fit, zones become free, or a node becomes empty."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from numalign.api.errors import BadObject, echo
from numalign.cli import output, sources
from numalign.cli.commands.planning import given
from numalign.cli.commands.planning.given import NOT_SO, PlanSource
from numalign.cli.options import bundled
from numalign.cli.output import Format

if TYPE_CHECKING:
    from numalign.plan.defrag.planner import Wanted

EXAMPLE = 'Example: numalign plan defrag --goal "2 x shape.yaml" -o yaml'
MOST_PODS = 100_000
GOAL = re.compile(r"\s*([0-9]{1,6})\s*[x×]\s*(\S.*?)\s*")

Goal = Annotated[str, typer.Option("--goal", metavar='"N x FILE"', help="So many pods or workloads of a file fit.")]
FreeSockets = Annotated[int, typer.Option(metavar="K", min=0, help="So many zones are free, those that are included.")]
Empty = Annotated[str, typer.Option(metavar="NODE", help="The node has no pods but those that belong to it.")]
MaxPriority = Annotated[
    int | None,
    typer.Option(metavar="N", help="Leave pods above this priority alone; default: above the pods of --goal."),
]
Search = Annotated[
    int,
    typer.Option(metavar="N", min=0, max=1_000_000, help="States of a small cluster to look at for a shorter plan."),
]


@bundled
def defrag(
    source: PlanSource,
    goal: Goal = "",
    free_sockets: FreeSockets = 0,
    empty: Empty = "",
    max_priority: MaxPriority = None,
    search: Search = 4_000,
    fmt: Annotated[Format, typer.Option("--output", "-o", help="Output format.")] = Format.TABLE,
) -> None:
    """Plan which pods to evict, in which order, and say where each of them lands. Nothing is evicted.

    Exit code: 0 if there is a plan or nothing to do, 1 if there is none, 2 if a file or the cluster cannot be read."""
    from numalign.cli.results.plans import defrag as drawn
    from numalign.plan.defrag import planner
    from numalign.scheduler.snapshot import restore
    from numalign.scheduler.snapshot.restore import Restored

    if sum((bool(goal), bool(free_sockets), bool(empty))) != 1:
        output.fail("give one of --goal, --free-sockets and --empty")
    wanted = _wanted(source, goal, free_sockets, empty, max_priority, search)
    with sources.at_once():
        taken = given.snapshot(source)
        problems: dict[str, None] = {}

        def restored() -> Restored:
            made = restore.restored(taken)
            made.engine.warm()
            problems.update(dict.fromkeys(made.problems))
            return made

        plan = planner.plan(restored, wanted)
    for problem in problems:
        output.warn(problem)
    output.show(drawn.text(plan) if fmt is Format.TABLE else output.structured(plan, fmt))
    raise typer.Exit(0 if plan.verdict in ("found", "nothing-to-do") else NOT_SO)


def _wanted(source: PlanSource, goal: str, zones: int, node: str, most_priority: int | None, patience: int) -> Wanted:
    from numalign.plan.defrag.planner import Wanted

    if node:
        return Wanted(text=f"node {node} is empty", node=node, most_priority=most_priority, patience=patience)
    if zones:
        text = f"{zones:,} free zone{'s' if zones > 1 else ''}"
        return Wanted(text=text, zones=zones, most_priority=most_priority, patience=patience)
    from numalign.cli.results import podfiles

    written = GOAL.fullmatch(goal)
    if written is None:
        raise BadObject("plan defrag", goal, "--goal", 'write a number, an x and a file, such as "2 x shape.yaml"')
    times, file = int(written[1]), written[2]
    read = podfiles.read([file])
    found = [pod for pod, _ in read.pods]
    pods = times * len(found)
    if not 0 < pods <= MOST_PODS:
        raise BadObject("plan defrag", goal, "--goal", f"asks for {pods:,} pods; ask for 1 to {MOST_PODS:,}")
    other = next((pod for pod in found if pod.spec != found[0].spec), None)
    if other is not None:
        why = f"has pods of different kinds, such as {echo(other.metadata.name)}; plan for one kind at a time"
        raise BadObject("File", file, "", why)
    (pod,) = sources.prioritised(source, found[:1], read.classes)
    text = f"room for {pods:,} pods of {file}"
    return Wanted(text=text, pod=pod, pods=pods, most_priority=most_priority, patience=patience)
