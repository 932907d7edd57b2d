"""`numalign plan defrag`: which pods to move so that others fit, zones become free, or a node becomes empty.

With `--execute` the plan is carried out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from numalign.api.errors import BadObject, echo
from numalign.cli import output, sources
from numalign.cli.commands.planning import given
from numalign.cli.commands.planning.given import NOT_SO, PlanSource
from numalign.cli.options import bundled
from numalign.cli.output import Format

if TYPE_CHECKING:
    from numalign.plan.defrag.messages import DefragPlan
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


Execute = Annotated[bool, typer.Option("--execute", help="Carry the plan out, one step after the other.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on where a run ended before its time.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before evicting.")]


@bundled
def defrag(
    source: PlanSource,
    goal: Goal = "",
    free_sockets: FreeSockets = 0,
    empty: Empty = "",
    max_priority: MaxPriority = None,
    search: Search = 4_000,
    execute: Execute = False,
    resume: Resume = False,
    yes: Yes = False,
    fmt: Annotated[Format, typer.Option("--output", "-o", help="Output format.")] = Format.TABLE,
) -> None:
    """Plan which pods to evict, in which order, and say where each of them lands. Without --execute nothing is evicted.

    Exit code: 0 if there is a plan or nothing to do, 1 if there is none, 2 if a file or the cluster cannot be read.
    With --execute: 0 if the goal is there, 1 if it is not."""
    from numalign.cli.results.plans import defrag as drawn
    from numalign.plan.defrag import planner
    from numalign.scheduler.snapshot import restore
    from numalign.scheduler.snapshot.restore import Restored

    if sum((bool(goal), bool(free_sockets), bool(empty))) != 1:
        output.fail("give one of --goal, --free-sockets and --empty")
    if (resume or yes) and not execute:
        output.fail("--resume and --yes are for --execute")
    if execute and not (given.is_live(source) and source.is_cluster):
        output.fail("--execute needs a cluster: leave out --snapshot, --server, --recording, --catalogue and --trace")
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
    if execute:
        _execute(source, wanted, plan, fmt, resume=resume, yes=yes)
    output.show(drawn.text(plan) if fmt is Format.TABLE else output.structured(plan, fmt))
    raise typer.Exit(0 if plan.verdict in ("found", "nothing-to-do") else NOT_SO)


def _execute(source: PlanSource, wanted: Wanted, plan: DefragPlan, fmt: Format, *, resume: bool, yes: bool) -> NoReturn:
    """Shows the plan on stderr, asks, and prints how far it came."""
    import sys

    from numalign.cli.results.plans import defrag as drawn
    from numalign.kube.client import Client
    from numalign.plan.defrag.clusterhand import ClusterHand, Stuck
    from numalign.plan.defrag.execution import Executor
    from numalign.plan.defrag.messages import Execution

    output.say(drawn.text(plan))
    if plan.verdict not in ("found", "nothing-to-do") and not resume:
        raise typer.Exit(NOT_SO)
    if plan.steps and not yes:
        question = f"Evict {plan.cost.pods:,} pods, one step after the other?"
        if not sys.stdin.isatty():
            output.fail(f"would evict {plan.cost.pods:,} pods; give --yes to do it")
        if not typer.confirm(question, err=True):
            raise typer.Exit(NOT_SO)

    async def carried_out(client: Client) -> Execution:
        hand = ClusterHand(client, sources.configuration(source.config))
        executor = Executor(hand, wanted, output.say)
        held = await hand.rooms()
        if held and not resume:
            node, rooms = next(iter(held.items()))
            why = f"holds room for {rooms[0].pod.metadata.full_name} until {rooms[0].until}: another run is under way"
            raise BadObject("Node", node, "", f"{why}, or ended before its time; give --resume to go on with it")
        await executor.resumed()
        return await executor.carried_out()

    try:
        found = sources.asked_of(source.kubeconfig, source.context, carried_out)
    except Stuck as problem:
        output.fail(str(problem))
    except KeyboardInterrupt:
        output.say("interrupted; the same command with --resume goes on")
        raise
    output.show(drawn.ending(found) if fmt is Format.TABLE else output.structured(found, fmt))
    raise typer.Exit(0 if found.verdict == "done" else NOT_SO)


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
