"""`numalign topology`: shows the zones of nodes, what is free in them, and the pods that hold the rest."""

from __future__ import annotations

from typing import Annotated

import typer

from numalign.cli import output, sources
from numalign.cli.options import bundled
from numalign.cli.output import Format
from numalign.cli.sources import ClusterSource

app = typer.Typer()

Output = Annotated[Format, typer.Option("--output", "-o", help="Output format.")]
Node = Annotated[str, typer.Argument(metavar="[NODE]", help="Show one node in full. Default: all nodes.")]


@app.command(epilog="Example: numalign topology worker-3")
@bundled
def topology(
    source: ClusterSource,
    node: Node = "",
    fmt: Output = Format.TABLE,
) -> None:
    """Show the zones of nodes, with what is free in them and the pods that hold the rest.

    Exit code: 0, or 2 if there is no such node or the cluster cannot be asked."""
    from numalign.cli.results.topology import ReportedCluster, cluster_text, node_text, nodes

    with sources.at_once():
        asked = ReportedCluster(sources.taken(source), sources.publications(source))
        shown, problems = nodes(asked, node)
    for each in problems:
        output.warn(each)
    if fmt is not Format.TABLE:
        return output.show(output.structured(shown[0] if node else shown, fmt))
    output.show(node_text(shown[0]) if node else cluster_text(shown))
