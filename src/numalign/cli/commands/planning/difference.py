"""The options that say what would be different, as `numalign plan what-if` and `sweep` take them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import Struct, structs

from numalign.api.errors import BadObject, echo
from numalign.cli import fileio, sources
from numalign.cli.options import Policy, Scope

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numalign.plan.questions.changes import Change
    from numalign.scheduler.snapshot.snapshot import Snapshot

MOST_PER_SOCKET = 16


class Different(Struct, frozen=True, kw_only=True):
    """What would be different; empty: as it is."""

    topology_policy: Annotated[Policy | None, typer.Option(help="Another Topology Manager policy.")] = None
    topology_scope: Annotated[Scope | None, typer.Option(help="Another Topology Manager scope.")] = None
    cpu_options: Annotated[
        str,
        typer.Option("--cpu-options", metavar="NAMES", help="CPU Manager policy options that are true; none: none."),
    ] = ""
    reserved_cpus: Annotated[str, typer.Option(metavar="LIST", help="Other reservedSystemCPUs, as 0-1,64-65.")] = ""
    kubelet_config: Annotated[
        str,
        typer.Option(
            "--kubelet-config", metavar="FILE", help="Fields of a KubeletConfiguration that would be different."
        ),
    ] = ""
    kubelet_version: Annotated[str, typer.Option(metavar="VERSION", help="Another kubelet, as 1.36.")] = ""
    zones_per_socket: Annotated[
        int, typer.Option(metavar="N", min=0, max=MOST_PER_SOCKET, help="Another NPS or SNC setting; 0: as it is.")
    ] = 0
    scoring: Annotated[str, typer.Option(metavar="STRATEGY", help="Another scoring strategy, as MostAllocated.")] = ""
    node: Annotated[
        list[str] | None,
        typer.Option("--node", metavar="NAME", help="Only this node's kubelet is different; may be repeated."),
    ] = None
    selector: Annotated[
        str, typer.Option("--selector", "-l", metavar="LABELS", help="Only kubelets of nodes with these labels.")
    ] = ""
    drain: Annotated[
        list[str] | None, typer.Option("--drain", metavar="NAME", help="A node that is drained; may be repeated.")
    ] = None
    lose: Annotated[
        str,
        typer.Option(metavar="N|LABELS", help="Lose N nodes, chosen by the seed, or all nodes with these labels."),
    ] = ""
    from_empty: Annotated[
        bool, typer.Option("--from-empty", help="Create every pod again, on empty nodes, before and after.")
    ] = False


def change(different: Different, taken: Snapshot, seed: int) -> Change:
    """BadObject if an option names nothing that is there."""
    from numalign.kube.resources import NODES
    from numalign.plan.questions import changes

    names = {each.metadata.name: each.metadata.labels for each in taken.every(NODES)}
    made = changes.read(_texts(different), names, seed)
    written = _written(different.kubelet_config)
    gone = made.gone | _gone(different, names)
    nodes = _nodes(different, names)
    made = structs.replace(
        made, kubelet={**written, **made.kubelet}, nodes=nodes, gone=gone, from_empty=different.from_empty
    )
    changes.check(made, fileio.shown(different.kubelet_config or "the options"))
    return made


def _texts(different: Different) -> dict[str, str]:
    return {
        "topology-policy": different.topology_policy.value if different.topology_policy is not None else "",
        "topology-scope": different.topology_scope.value if different.topology_scope is not None else "",
        "cpu-options": different.cpu_options,
        "reserved-cpus": different.reserved_cpus,
        "kubelet-version": different.kubelet_version,
        "zones-per-socket": str(different.zones_per_socket),
        "scoring": different.scoring,
        "lose": different.lose if different.lose.isdecimal() else "",
    }


def _written(path: str) -> dict[str, Any]:
    """The fields of a KubeletConfiguration."""
    if not path:
        return {}
    from numalign.api.decode import fields
    from numalign.kubelet import configuration

    document = fileio.only(path)
    written = fields.named(fields.root(document.value, configuration.KIND, document.place))
    return {name: value for name, value in written.items() if name not in configuration.HEAD}


Labels = dict[str, str]


def _nodes(different: Different, there: Mapping[str, Labels]) -> frozenset[str] | None:
    if not different.node and not different.selector:
        return None
    matches = sources.selecting(different.selector) if different.selector else lambda _: True
    return frozenset(name for name in different.node or there if name not in there or matches(there[name]))


def _gone(different: Different, there: Mapping[str, Labels]) -> frozenset[str]:
    """Nodes that are drained, and those with labels that are lost."""
    gone = set(different.drain or ())
    if different.lose and not different.lose.isdecimal():
        matches = sources.selecting(different.lose)
        found = {name for name, labels in there.items() if matches(labels)}
        if not found:
            raise BadObject("Option", "--lose", "", f"{echo(different.lose)} matches no node")
        gone |= found
    return frozenset(gone)
