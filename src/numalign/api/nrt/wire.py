"""NodeResourceTopology objects on the wire, v1alpha1 and v1alpha2.

`decode` reads one from JSON or a parsed mapping: in one pass if the object matches its schema, otherwise piece by
piece, so that a malformed zone costs that zone only. The `Salvaged` object lists what was skipped, with paths. Values
are not judged here; `normalise` does that."""

from collections.abc import Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, Final, TypeVar, Union, get_args, get_origin

import msgspec

from numalign.api import errors
from numalign.api.attributes.repairs import Guess, GuessCode
from numalign.api.decode.decode import decode as decode_object
from numalign.api.decode.structs import Wire
from numalign.api.objects.meta import ObjectMeta

T = TypeVar("T", bound=msgspec.Struct)

NOTHING: Final = object()
MISFIT: Final = (ValueError, TypeError, RecursionError, OverflowError)


def salvage(document: Mapping[str, Any], kind: type[T], path: str = "") -> tuple[T, list[Guess]]:
    """A struct of this kind with every field that could be read, and a note for each part that could not."""
    dropped: list[Guess] = []
    return _struct(document, kind, path, dropped), dropped


def _fitted(value: Any, wanted: Any, path: str, dropped: list[Guess]) -> Any:
    try:
        return msgspec.convert(value, wanted)
    except MISFIT:
        return _pieces(value, _without_none(wanted), path, dropped)


def _pieces(value: Any, wanted: Any, path: str, dropped: list[Guess]) -> Any:
    if isinstance(value, Mapping) and isinstance(wanted, type) and issubclass(wanted, msgspec.Struct):
        return _struct(value, wanted, path, dropped)
    if isinstance(value, list) and get_origin(wanted) is tuple:
        return tuple(_items(value, get_args(wanted)[0], path, dropped))
    if isinstance(value, Mapping) and get_origin(wanted) is dict:
        kind = get_args(wanted)[1]
        texts = {key: item for key, item in value.items() if isinstance(key, str)}
        pairs = ((key, _fitted(item, kind, f"{path}[{errors.clipped(key)}]", dropped)) for key, item in texts.items())
        return {key: item for key, item in pairs if item is not NOTHING}
    dropped.append(Guess(GuessCode.UNREADABLE, path, errors.echo(value)))
    return NOTHING


def _items(values: Sequence[Any], kind: Any, path: str, dropped: list[Guess]) -> Iterator[Any]:
    for place, value in enumerate(values):
        item = _fitted(value, kind, f"{path}[{place}]", dropped)
        if item is not NOTHING:
            yield item
        elif isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            # An empty element takes its place, so that later paths have the publisher's indexes.
            yield kind()


def _struct(document: Mapping[str, Any], kind: type[T], path: str, dropped: list[Guess]) -> T:
    found = {}
    for field in msgspec.structs.fields(kind):
        # A null is an absent field, as everywhere in Kubernetes.
        if document.get(field.encode_name) is not None:
            where = f"{path}.{field.encode_name}" if path else field.encode_name
            found[field.name] = _fitted(document[field.encode_name], field.type, where, dropped)
    return kind(**{name: value for name, value in found.items() if value is not NOTHING})


def _without_none(wanted: Any) -> Any:
    if get_origin(wanted) in (Union, UnionType):
        others = [kind for kind in get_args(wanted) if kind is not NoneType]
        return others[0] if len(others) == 1 else wanted
    return wanted


GROUP: Final = "topology.node.k8s.io"
KIND: Final = "NodeResourceTopology"
V1ALPHA1: Final = "v1alpha1"
V1ALPHA2: Final = "v1alpha2"
NUMA_ZONE: Final = "Node"
"""The type of a zone that stands for a NUMA node; zones of other types are ignored."""

PLAIN: Final = msgspec.json.Decoder(float_hook=float)
"""Reads 1e400 as infinity, where the default would refuse the whole document."""

Written = str | int | float | None
"""A quantity before it is read; None: absent."""


# The schema requires these fields, so they are written even where they are empty.
class Attribute(Wire, frozen=True, omit_defaults=False):
    name: str = ""
    value: str = ""


class Cost(Wire, frozen=True, omit_defaults=False):
    name: str = ""
    value: int | None = None


class Resource(Wire, frozen=True, omit_defaults=False):
    name: str = ""
    capacity: Written = None
    allocatable: Written = None
    available: Written = None


class PublishedZone(Wire, frozen=True):
    name: str = ""
    type: str = ""
    parent: str = ""
    costs: tuple[Cost, ...] = ()
    attributes: tuple[Attribute, ...] = ()
    resources: tuple[Resource, ...] = ()


class NodeResourceTopology(Wire, frozen=True):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    topology_policies: tuple[str, ...] = ()
    zones: tuple[PublishedZone, ...] | None = None
    """Required, so an empty list is written; None: absent."""
    attributes: tuple[Attribute, ...] = ()


class Salvaged(NodeResourceTopology, frozen=True):
    """A report that does not match its schema, without the parts that do not match."""

    dropped: tuple[Guess, ...] = ()


def decode(raw: bytes | str | Mapping[str, Any]) -> NodeResourceTopology:
    """The object in `raw`; BadObject if it is not one, is of another kind, or has no name."""
    try:
        report = decode_object(NodeResourceTopology, raw)
    except errors.BadObject as problem:
        report = _salvaged(raw, problem)
    if report.kind not in ("", KIND):
        raise errors.BadObject(KIND, report.metadata.name, "kind", f"{errors.echo(report.kind)} is not {KIND}")
    if report.api_version and not report.api_version.startswith(f"{GROUP}/"):
        why = f"{errors.echo(report.api_version)} is not of the group {GROUP}"
        raise errors.BadObject(KIND, report.metadata.name, "apiVersion", why)
    if not report.metadata.name:
        raise errors.BadObject(KIND, "", "metadata.name", "is missing; a report bears the name of its node")
    return report


def _salvaged(raw: bytes | str | Mapping[str, Any], problem: errors.BadObject) -> Salvaged:
    try:
        document = raw if isinstance(raw, Mapping) else PLAIN.decode(raw)
    except MISFIT:
        raise problem from None
    if not isinstance(document, Mapping):
        raise problem
    report, dropped = salvage(document, NodeResourceTopology)
    return Salvaged(**msgspec.structs.asdict(report), dropped=tuple(dropped))
