"""Decodes Kubernetes objects of recorded cases, and compares amounts by value.

A case may omit an object's name, so the readers that require one are not used here."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from numalign.api.decode import decode, quantity
from numalign.api.nrt.placementcodec import ContainerRef
from numalign.api.nrt.wire import NodeResourceTopology
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod, ResourceList
from numalign.oracle.harness import suite
from numalign.oracle.harness.divergence import Difference, Raw
from numalign.placement import referenceargs
from numalign.placement.reference import numanodes
from numalign.placement.reference.filter import Seen
from numalign.placement.referenceargs import NodeResourceTopologyMatchArgs

AMOUNTS = frozenset({"capacity", "allocatable", "available"})
AMOUNT_MAPS = frozenset({"resources", "requests"})


def pod(raw: Raw) -> Pod:
    return decode.decode(Pod, raw)


def node(raw: Raw) -> Node:
    return decode.decode(Node, raw)


def report(raw: Raw) -> NodeResourceTopology:
    return decode.decode(NodeResourceTopology, raw)


def settings(given: Raw) -> NodeResourceTopologyMatchArgs:
    """The plugin's arguments, with the plugin's defaults."""
    return referenceargs.complete(given.get("config") or {})


def reports(given: Raw) -> Sequence[Raw]:
    return given.get("nrts") or ()


def resources(raw: Mapping[str, str] | None) -> ResourceList:
    return {name: quantity.parse(text) for name, text in (raw or {}).items()}


def seen(name: str, given: Raw) -> Seen:
    """The cached report of the node, from the reports in the case."""
    named = next((each for each in reports(given) if each["metadata"]["name"] == name), None)
    return Seen(given.get("fresh", True), None if named is None else numanodes.read(report(named)))


def placement(raw: Iterable[Raw] | None) -> dict[ContainerRef, int] | None:
    if raw is None:
        return None
    return {ContainerRef(each["namespace"], each["pod"], each["container"]): each["numaNode"] for each in raw}


def by_amount(expected: Any, answered: Any) -> Sequence[Difference]:
    """All differences except the notation of a quantity."""
    return suite.exactly(_canonical(expected), _canonical(answered))


def _canonical(value: Any, key: str = "") -> Any:
    if isinstance(value, Mapping):
        inner = key if key in AMOUNT_MAPS else ""
        return {name: _canonical(each, inner or name) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(each) for each in value]
    is_amount = isinstance(value, str) and key in AMOUNTS | AMOUNT_MAPS
    return {"nanos": quantity.parse(value).nanos} if is_amount else value
