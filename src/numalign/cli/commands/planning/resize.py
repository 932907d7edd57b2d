"""`numalign plan resize`: what a kubelet says to other requests of a running pod."""

from __future__ import annotations

from typing import Annotated

import typer

from numalign.cli import amounts, sources
from numalign.cli.commands.planning import given
from numalign.cli.commands.planning.given import NOT_SO, Output, PlanFormat, PlanSource
from numalign.cli.options import bundled

EXAMPLE = "Example: numalign plan resize train-0 --requests cpu=6"


@bundled
def resize(
    source: PlanSource,
    pod: Annotated[str, typer.Argument(metavar="[NAMESPACE/]NAME", help="A running pod.", show_default=False)],
    requests: Annotated[str, typer.Option(metavar="AMOUNTS", help="New requests, as cpu=6 or cpu=6,memory=12Gi.")],
    container: Annotated[str, typer.Option(metavar="NAME", help="The container; needed if there are several.")] = "",
    fmt: Output = PlanFormat.TABLE,
) -> None:
    """Say whether a running pod can be resized in place, and what a new pod would find.

    Limits that equal the requests follow them. Exit code: 0 if the kubelet would do it now, 1 if not, 2 if there is no
    such pod or the cluster cannot be read."""
    from numalign.cli.results.plans import resize as drawn
    from numalign.plan.questions.resize import NewRequests, answer

    wanted = NewRequests(container, amounts.requests(requests, "--requests"))
    with sources.at_once():
        name = pod if "/" in pod else f"{sources.namespace(source)}/{pod}"
        found = answer(given.snapshot(source), name, wanted)
    given.show(found, fmt, given.Drawing(lambda: drawn.text(found), lambda: drawn.lines(found)))
    raise typer.Exit(0 if found.fits else NOT_SO)
