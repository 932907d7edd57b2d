"""`numalign explain`: says why a pod is not scheduled, what would make it fit, or where it runs.

The commands import what they call when they run, so that help stays fast."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from numalign.cli import fileio, output, sources
from numalign.cli.options import Output, bundled
from numalign.cli.output import Format
from numalign.cli.sources import ProfiledSource

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numalign.api.objects.pod import Pod
    from numalign.cli.results.explanation import ExplainOutput

DOES_NOT_FIT = 1
MOST_COPIES = 100_000

app = typer.Typer(no_args_is_help=True)

Nodes = Annotated[bool, typer.Option("--nodes", help="List the answer of every node.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The pod: NAME or NAMESPACE/NAME.")]
Namespace = Annotated[str, typer.Option("--namespace", "-n", help="The namespace of the pod.")]
Files = Annotated[list[str], typer.Option("--file", "-f", metavar="FILE", help="Pods or workloads; - is stdin.")]
Replicas = Annotated[int, typer.Option(min=0, max=MOST_COPIES, help="Number of pods; 0: as the files say.")]


@app.callback()
def explain() -> None:
    """Explain why a pod is not scheduled and what would make it fit, or where it runs."""


@app.command("pod", epilog="Example: numalign explain pod -n team-a train-0")
@bundled
def pod(
    name: Name,
    source: ProfiledSource,
    namespace: Namespace = "",
    nodes: Nodes = False,
    fmt: Output = Format.TABLE,
) -> None:
    """Explain a pod of the cluster.

    Exit code: 0 if it is placed or some node would take it, 1 if none would or its node rejected it, 2 if there is no
    such pod or the cluster cannot be asked."""
    from numalign.cli.results import explanation

    space, _, plain = name.rpartition("/")
    full_name = f"{namespace or space or 'default'}/{plain}"
    with sources.at_once():
        answer = explanation.about_pod(sources.taken(source), full_name, explanation.Wanted(nodes))
    _show(answer, fmt, every=nodes)


@app.command("shape", epilog="Example: numalign explain shape -f pod.yaml --replicas 8")
@bundled
def shape(
    file: Files,
    source: ProfiledSource,
    replicas: Replicas = 0,
    nodes: Nodes = False,
    fmt: Output = Format.TABLE,
) -> None:
    """Explain pods that do not exist yet: where they would go, and why not.

    Exit code: 0 if all of them would find a node, 1 if not, 2 if a file or the cluster cannot be read."""
    from numalign.cli.results import explanation

    if fileio.STDIN in file and source.snapshot == fileio.STDIN:
        output.fail("-f - and --snapshot - would both read the standard input; give one of them a file")
    pods = _pods(file, replicas)
    with sources.at_once():
        answer = explanation.about_shapes(sources.taken(source), pods, explanation.Wanted(nodes))
    _show(answer, fmt, every=nodes)


def _pods(files: Sequence[str], replicas: int) -> list[Pod]:
    from msgspec import structs

    from numalign.cli.results import podfiles

    read = podfiles.read(files)
    for warning in read.warnings:
        output.warn(warning)
    pods = [pod for pod, _ in read.pods]
    if replicas:
        pods = [pods[number % len(pods)] for number in range(replicas)]
    # Pods of one name count as two.
    return [
        structs.replace(pod, metadata=structs.replace(pod.metadata, uid=f"asked-{number}"))
        for number, pod in enumerate(pods)
    ]


def _show(answer: ExplainOutput, fmt: Format, *, every: bool) -> NoReturn:
    from numalign.cli.results import explaindraw

    for problem in answer.problems:
        output.warn(problem)
    output.show(explaindraw.drawn(answer, every=every) if fmt is Format.TABLE else output.structured(answer, fmt))
    raise typer.Exit(0 if answer.fits else DOES_NOT_FIT)
