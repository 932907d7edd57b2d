"""`numalign kubelet`: says what the kubelet of a machine would decide.

Exit code 0 if every pod is admitted, 1 if one is not, 2 if an input cannot be used. The command imports the model when
it runs, so that help stays fast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from numalign.cli import output
from numalign.cli.options import Machine, Output
from numalign.cli.output import Format

if TYPE_CHECKING:
    from numalign.cli.display.values import AdmitReport

NOT_ADMITTED = 1

app = typer.Typer(no_args_is_help=True)

Files = Annotated[
    list[str], typer.Argument(metavar="POD_FILE...", help="YAML or JSON with pods or workloads; - is stdin.")
]
Config = Annotated[
    str | None,
    typer.Option(
        "--kubelet-config", "--config", metavar="FILE", help="A KubeletConfiguration. Default: the kubelet's defaults."
    ),
]
Version = Annotated[
    str | None, typer.Option(metavar="VERSION", help="The kubelet's minor, such as 1.36. Default: the newest known.")
]


@app.callback()
def kubelet() -> None:
    """Ask the kubelet model."""


@app.command(epilog="Example: numalign kubelet machines")
def machines(fmt: Output = Format.TABLE) -> None:
    """List the machines that --machine knows by name."""
    from numalign.cli.results import machinelist

    found = machinelist.listed()
    output.show(machinelist.text(found) if fmt is Format.TABLE else output.structured(found, fmt))


@app.command(
    epilog="Example: numalign kubelet admit --machine gpu-8 --kubelet-config examples/kubelet.yaml examples/pods.yaml"
)
def admit(
    pods: Files, machine: Machine, config: Config = None, kubelet_version: Version = None, fmt: Output = Format.TABLE
) -> None:
    """Show which pods a kubelet admits, in the order given, where it places them, and why it rejects the others.

    Exit code: 0 if all are admitted, 1 if one is not, 2 if something that was given cannot be used."""
    from numalign.kubelet.refusals import StartRefusal

    if [machine, config, *pods].count("-") > 1:
        output.fail("standard input can be read once; write - in one place only")
    try:
        answer = _answer(pods, machine, config, kubelet_version)
    except StartRefusal as problem:
        output.fail(str(problem))
    output.show(_drawn(answer) if fmt is Format.TABLE else output.structured(answer, fmt))
    if any(pod.verdict != "admitted" for pod in answer.pods):
        raise typer.Exit(NOT_ADMITTED)


def _answer(pods: Sequence[str], machine: str, config: str | None, version: str | None) -> AdmitReport:
    from numalign.cli import inputs
    from numalign.cli.results import admit, podfiles

    started = inputs.kubelet(machine, config, version)
    found = podfiles.read(pods)
    for warning in (*started.warnings, *found.warnings, *found.unmodelled):
        output.warn(warning)
    return admit.admit_all(started.kubelet, found.pods)


def _drawn(answer: AdmitReport) -> str:
    from numalign.cli.display import formats, matrix
    from numalign.cli.results import admit

    page = formats.Page()
    page.add(formats.node(answer.machine, answer.kubelet))
    for pod in answer.pods:
        page.add()
        admit.draw(page, pod)
    page.add()
    matrix.draw(page, answer)
    page.add()
    page.add(formats.summary([pod.verdict for pod in answer.pods]))
    return page.text()
