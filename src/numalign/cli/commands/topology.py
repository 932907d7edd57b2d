"""`numalign topology` and `numalign nodes`: show the zones of nodes, what is free in them, and the pods in them.

The commands import what they call when they run, so that help stays fast."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from numalign.cli import output, sources
from numalign.cli.options import INTERVAL, Interval, ListOutput, Watch, bundled
from numalign.cli.output import ListFormat
from numalign.cli.sources import ClusterSource

if TYPE_CHECKING:
    from numalign.cli.results.nodelist import Lines
    from numalign.cli.results.topology import NodeTopologyOutput

app = typer.Typer()

Names = Annotated[
    list[str] | None, typer.Argument(metavar="[NODE...]", help="Nodes: one is shown in full. Default: all.")
]
Selector = Annotated[
    str, typer.Option("--selector", "-l", metavar="LABELS", help="Label selector of nodes, as kubectl takes it.")
]
SortBy = Annotated[
    str, typer.Option(metavar="COLUMN", help="name, status, pods, report, cpu, memory or a resource; most free first.")
]


class Shown(NamedTuple):
    """What a look at the cluster found."""

    nodes: list[NodeTopologyOutput]
    problems: tuple[str, ...]


@app.command(epilog="Example: numalign topology -l pool=gpu --sort-by gpu")
@bundled
def topology(
    source: ClusterSource,
    names: Names = None,
    selector: Selector = "",
    sort_by: SortBy = "",
    watch: Watch = False,
    interval: Interval = INTERVAL,
    fmt: ListOutput = ListFormat.TABLE,
) -> None:
    """Show the NUMA zones of nodes, with what is free in them and the pods that hold the rest.

    Exit code: 0, or 2 if there is no such node or the cluster cannot be asked."""
    from numalign.cli.results import nodelist
    from numalign.cli.results.topology import node_text

    wanted = names or []
    is_one = len(wanted) == 1 and not selector

    def look() -> Shown:
        return _look(source, wanted, selector, sort_by)

    def draw(nodes: list[NodeTopologyOutput]) -> Lines:
        if is_one and fmt is ListFormat.TABLE:
            return nodelist.Lines("", (node_text(nodes[0]),), "")
        return nodelist.topology(nodes, wide=fmt is ListFormat.WIDE)

    _show(look, draw, fmt, interval if watch else None, alone=is_one)


@app.command(epilog="Example: numalign nodes -o wide")
@bundled
def nodes(
    source: ClusterSource,
    names: Names = None,
    selector: Selector = "",
    sort_by: SortBy = "",
    watch: Watch = False,
    interval: Interval = INTERVAL,
    fmt: ListOutput = ListFormat.TABLE,
) -> None:
    """List nodes: how they align pods, what is free, and who reports them.

    Exit code: 0, or 2 if there is no such node or the cluster cannot be asked."""
    from numalign.cli.results import nodelist

    def look() -> Shown:
        return _look(source, names or [], selector, sort_by)

    def draw(nodes: list[NodeTopologyOutput]) -> Lines:
        return nodelist.nodes(nodes, wide=fmt is ListFormat.WIDE)

    _show(look, draw, fmt, interval if watch else None, alone=False)


def _look(source: ClusterSource, names: list[str], selector: str, sort_by: str) -> Shown:
    from numalign.cli.results import nodelist
    from numalign.cli.results.topology import ReportedCluster, nodes

    selected = sources.selecting(selector) if selector else None
    with sources.at_once():
        asked = ReportedCluster(sources.taken(source), sources.publications(source))
        found, problems = nodes(asked, names, selected)
    return Shown(nodelist.ordered(found, sort_by), problems)


def _show(
    look: Callable[[], Shown],
    draw: Callable[[list[NodeTopologyOutput]], Lines],
    fmt: ListFormat,
    interval: float | None,
    *,
    alone: bool,
) -> None:
    """Prints what a look finds; with an interval, then what changes, until the command is interrupted."""
    shown = look()
    for each in shown.problems:
        output.warn(each)
    if fmt in (ListFormat.JSON, ListFormat.YAML):
        output.show(output.structured(shown.nodes[0] if alone else shown.nodes, fmt))
    elif fmt is ListFormat.NAME:
        output.show("\n".join(output.printable(f"node/{each.name}") for each in shown.nodes))
    elif not shown.nodes:
        output.show("No nodes found.")
    else:
        output.show(draw(shown.nodes).text.lstrip("\n"))
    while interval is not None:
        time.sleep(interval)
        before, shown = shown, look()
        changed = _changed(before.nodes, shown.nodes)
        if not changed:
            continue
        if fmt in (ListFormat.JSON, ListFormat.YAML):
            output.show(output.structured(changed, fmt))
        elif fmt is ListFormat.NAME:
            output.show("\n".join(output.printable(f"node/{each.name}") for each in changed))
        else:
            output.show("\n".join(draw(changed).rows))


def _changed(before: list[NodeTopologyOutput], now: list[NodeTopologyOutput]) -> list[NodeTopologyOutput]:
    """The nodes that are new or different; the age of a report alone is no difference."""
    known = {each.name: each.without_age for each in before}
    return [each for each in now if known.get(each.name) != each.without_age]
