"""`numalign capacity`: counts how many more pods of some kinds nodes and machine types admit.

The command imports what it calls when it runs, so that help stays fast."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from numalign.cli import amounts, output, sources
from numalign.cli.options import bundled
from numalign.cli.output import Format
from numalign.cli.sources import ProfiledSource

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numalign.scheduler.capacity.messages import CapacityRequest, CapacityResponse, ShapeRequest, TemplateRequest
    from numalign.scheduler.capacity.service import CapacityService
    from numalign.scheduler.choose.cluster import Cluster

NO_ROOM = 1
app = typer.Typer()


class CapacityFormat(StrEnum):
    """What `-o` accepts."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"


Files = Annotated[list[str], typer.Option("--file", "-f", metavar="FILE", help="Pods or workloads; - is stdin.")]
Requests = Annotated[
    list[str],
    typer.Option("--requests", metavar="AMOUNTS", help="A Guaranteed pod: cpu=4,memory=8Gi,...; may be repeated."),
]
Nodes = Annotated[list[str], typer.Option("--node", metavar="NAME", help="Count on this node; may be repeated.")]
Selector = Annotated[
    str, typer.Option("--selector", "-l", metavar="LABELS", help="Label selector of nodes, as kubectl takes it.")
]
Machines = Annotated[
    list[str],
    typer.Option("--machine", metavar="NAME|FILE", help="Count on an empty machine of this kind; may be repeated."),
]
InstanceTypes = Annotated[
    list[str],
    typer.Option(
        "--instance-type", metavar="TYPE", help="Count on an empty node like those of this type; may be repeated."
    ),
]
KubeletFile = Annotated[
    str, typer.Option("--kubelet-config", metavar="FILE", help="The KubeletConfiguration of the machines.")
]
Together = Annotated[
    bool, typer.Option("--all-or-nothing", help="Say whether all pods of the files find room at the same time.")
]
Output = Annotated[
    CapacityFormat, typer.Option("--output", "-o", help="Output format; wide lists every group of nodes.")
]


@app.command(epilog="Example: numalign capacity --requests cpu=8,memory=16Gi,nvidia.com/gpu=1 -o wide")
@bundled
def capacity(
    source: ProfiledSource,
    file: Files = [],  # noqa: B006
    requests: Requests = [],  # noqa: B006
    node: Nodes = [],  # noqa: B006
    selector: Selector = "",
    machine: Machines = [],  # noqa: B006
    instance_type: InstanceTypes = [],  # noqa: B006
    kubelet_config: KubeletFile = "",
    all_or_nothing: Together = False,
    fmt: Output = CapacityFormat.TABLE,
) -> None:
    """Count how many more pods nodes admit, as their kubelets will place them.

    Exit code: 0, 1 if not all pods of --all-or-nothing find room or no node admits a single pod, 2 if a file or the
    cluster cannot be read."""
    import asyncio

    from numalign.cli.results import capacity as results
    from numalign.scheduler.capacity.messages import CapacityRequest, NodeChoice
    from numalign.scheduler.capacity.service import CapacityService
    from numalign.scheduler.snapshot import restore

    if not file and not requests:
        output.fail("no kind of pod is given; give --requests or -f")
    shapes, templates = tuple(_shapes(file, requests)), _templates(machine, instance_type, kubelet_config)
    with sources.at_once():
        made = restore.restored(sources.taken(source))
        for problem in made.problems:
            output.warn(problem)
        asked = CapacityRequest(
            shapes=shapes,
            nodes=NodeChoice(_chosen(made.cluster, node, selector)) if node or selector else None,
            templates=templates,
            all_or_nothing=all_or_nothing,
            summary=fmt is CapacityFormat.TABLE,
        )
        service = CapacityService(made.cluster, made.profiles, made.config)
        answer = asyncio.run(service.answer(asked))
        if asked.summary and (asked.nodes is not None or not templates):
            answer = _with_reasons(answer, asked, service)
    for note in answer.notes:
        output.warn(note)
    if fmt in (CapacityFormat.TABLE, CapacityFormat.WIDE):
        output.show(results.text(answer, wide=fmt is CapacityFormat.WIDE))
    else:
        output.show(output.structured(answer, Format(fmt.value)))
    found = any(each.count or any(one.count for one in each.templates) for each in answer.shapes)
    fits = answer.all_or_nothing is None or answer.all_or_nothing.fits == "yes"
    raise typer.Exit(0 if found and fits else NO_ROOM)


def _with_reasons(answer: CapacityResponse, asked: CapacityRequest, service: CapacityService) -> CapacityResponse:
    """A summary, with the answers of nodes for the shapes of which none admits a single pod."""
    import asyncio

    from msgspec import structs

    none = {place for place, shape in enumerate(answer.shapes) if not shape.count}
    if not none:
        return answer
    shapes = tuple(shape for place, shape in enumerate(asked.shapes) if place in none)
    again = structs.replace(asked, shapes=shapes, templates=(), all_or_nothing=False, summary=False)
    said = iter(asyncio.run(service.answer(again)).shapes)
    found = (
        structs.replace(shape, nodes=next(said).nodes) if place in none else shape
        for place, shape in enumerate(answer.shapes)
    )
    return structs.replace(answer, shapes=tuple(found))


def _shapes(files: Sequence[str], written: Sequence[str]) -> list[ShapeRequest]:
    from numalign.cli.results import podfiles
    from numalign.scheduler.capacity.messages import ShapeRequest

    found: dict[object, ShapeRequest] = {}
    for pod, _ in podfiles.read(files).pods if files else ():
        # Replicas of a workload are one kind of pod.
        key = pod.spec
        known = found.get(id(key))
        replicas = known.replicas + 1 if known is not None else 1
        found[id(key)] = ShapeRequest(name=pod.metadata.name, pod=pod, replicas=replicas)
    return [
        *found.values(),
        *(ShapeRequest(name=each, requests=amounts.requests(each, "--requests")) for each in written),
    ]


def _chosen(cluster: Cluster, names: Sequence[str], selector: str) -> tuple[str, ...]:
    matches = sources.selecting(selector) if selector else lambda _: True
    known = {name: cluster.node_named(name) for name in names or cluster.engine.rows}
    # A name that nothing is known about stays: the service says so.
    return tuple(name for name, node in known.items() if node is None or matches(node.metadata.labels))


def _templates(machines: Sequence[str], types: Sequence[str], config: str) -> tuple[TemplateRequest, ...]:
    from numalign.api.nrt import normalise
    from numalign.cli import inputs
    from numalign.kubelet.report import report
    from numalign.scheduler.capacity import templates
    from numalign.scheduler.capacity.messages import TemplateRequest

    found = []
    for name in machines:
        kubelet = inputs.kubelet(name, config or None, None).kubelet
        topology = normalise.encode(report.of(kubelet.machine.name, kubelet, kubelet.initial()))
        found.append(TemplateRequest(name=name, topology=topology, node=templates.node_of(kubelet)))
    return (*found, *(TemplateRequest(name=each, instance_type=each) for each in types))
