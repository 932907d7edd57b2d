"""`numalign explain`: says why a pod is not scheduled, what would make it fit, or where it runs.

The commands import what they call when they run, so that help stays fast."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from numalign.cli import fileio, options, output, sources
from numalign.cli.options import bundled
from numalign.cli.output import Format, ListFormat
from numalign.cli.sources import ProfiledSource

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numalign.api.objects.pod import Pod
    from numalign.cli.results.podfiles import PriorityClass

DOES_NOT_FIT = 1
MOST_COPIES = 100_000


class PodNames(TyperGroup):
    """Takes a word that is no command for the name of a pod."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        is_name = args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None
        return super().resolve_command(ctx, ["pod", *args] if is_name else args)


app = typer.Typer(cls=PodNames, no_args_is_help=True)
why = typer.Typer()

Nodes = Annotated[bool, typer.Option("--nodes", help="List the answer of every node.")]
Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME...]", help="Pods: NAME, NAMESPACE/NAME, pod/NAME, or an owner as in deployment/NAME."
    ),
]
Namespace = Annotated[
    str, typer.Option("--namespace", "-n", metavar="NAMESPACE", help="The namespace. Default: that of the context.")
]
AllNamespaces = Annotated[bool, typer.Option("--all-namespaces", "-A", help="Pods of all namespaces.")]
Selector = Annotated[
    str, typer.Option("--selector", "-l", metavar="LABELS", help="Label selector of pods, as kubectl takes it.")
]
Files = Annotated[list[str], typer.Option("--file", "-f", metavar="FILE", help="Pods or workloads; - is stdin.")]
Replicas = Annotated[
    int, typer.Option(metavar="N", min=0, max=MOST_COPIES, help="Number of pods; 0: as the files say.")
]


@app.callback()
def explain() -> None:
    """Explain why a pod is not scheduled and what would make it fit, or where it runs.

    `numalign explain NAME` is short for `numalign explain pod NAME`."""


@bundled
def pod(
    source: ProfiledSource,
    names: Names = None,
    namespace: Namespace = "",
    all_namespaces: AllNamespaces = False,
    selector: Selector = "",
    nodes: Nodes = False,
    fmt: options.ListOutput = ListFormat.TABLE,
) -> None:
    """Explain pods of the cluster: one in full, several in a line each. Without a name: all that wait or were rejected.

    Exit code: 0 if they are placed or some node would take them, 1 if one is not, 2 if there is no such pod or the
    cluster cannot be asked."""
    from numalign.cli.results import explaindraw, explanation, podlist

    with sources.at_once():
        inside = "" if all_namespaces else namespace or sources.namespace(source)
        selected = sources.selecting(selector) if selector else None
        query = podlist.PodQuery(names=names or (), namespace=inside, selected=selected)
        taken = sources.taken(source)
        pods = podlist.chosen(taken, query)
        signs = sources.signs(source, pods)
        if len(pods) == 1 and query.is_one and fmt not in (ListFormat.WIDE, ListFormat.NAME):
            known = signs.get(pods[0].metadata.uid, explanation.NO_SIGNS)
            answer = explanation.about_pod(taken, pods[0], explanation.ExplainDetail(nodes), known)
            drawn = explaindraw.drawn(answer, every=nodes) if fmt is ListFormat.TABLE else ""
            _end(answer.problems, drawn or output.structured(answer, fmt), fits=answer.fits)
        answers = podlist.explained(taken, pods, signs)
    problems = answers[0].problems if answers else ()
    fits = all(each.fits for each in answers)
    if fmt is ListFormat.NAME:
        _end(problems, podlist.names(answers), fits=fits)
    if fmt in (ListFormat.JSON, ListFormat.YAML):
        _end(problems, output.structured(answers, fmt), fits=fits)
    shown = podlist.text(answers, namespaces=all_namespaces, wide=fmt is ListFormat.WIDE)
    empty = "No pod waits." if query.selected is None else "No pods found."
    _end(problems, shown if answers else empty, fits=fits)


app.command("pod", epilog="Example: numalign explain pod -n team-a train-0")(pod)
app.command("pods", hidden=True)(pod)
why.command("why", epilog="Example: kubectl numalign why train-0")(pod)


@app.command("shape", epilog="Example: numalign explain shape -f pod.yaml --replicas 8")
@bundled
def shape(
    file: Files,
    source: ProfiledSource,
    replicas: Replicas = 0,
    nodes: Nodes = False,
    fmt: options.Output = Format.TABLE,
) -> None:
    """Explain pods that do not exist yet: where they would go, and why not.

    Exit code: 0 if all of them would find a node, 1 if not, 2 if a file or the cluster cannot be read."""
    from numalign.cli.results import explaindraw, explanation

    if fileio.STDIN in file and source.snapshot == fileio.STDIN:
        output.fail("-f - and --snapshot - would both read the standard input; give one of them a file")
    pods, classes = _pods(file, replicas)
    with sources.at_once():
        pods = sources.prioritised(source, pods, classes)
        answer = explanation.about_shapes(sources.taken(source), pods, explanation.ExplainDetail(nodes))
    text = explaindraw.drawn(answer, every=nodes) if fmt is Format.TABLE else output.structured(answer, fmt)
    _end(answer.problems, text, fits=answer.fits)


def _pods(files: Sequence[str], replicas: int) -> tuple[list[Pod], tuple[PriorityClass, ...]]:
    from msgspec import structs

    from numalign.cli.results import podfiles

    read = podfiles.read(files)
    for warning in read.warnings:
        output.warn(warning)
    pods = [pod for pod, _ in read.pods]
    if replicas:
        pods = [pods[number % len(pods)] for number in range(replicas)]
    # Pods of one name count as two.
    asked = [
        structs.replace(pod, metadata=structs.replace(pod.metadata, uid=f"asked-{number}"))
        for number, pod in enumerate(pods)
    ]
    return asked, read.classes


def _end(problems: Sequence[str], text: str, *, fits: bool) -> NoReturn:
    for problem in problems:
        output.warn(problem)
    output.show(text)
    raise typer.Exit(0 if fits else DOES_NOT_FIT)
