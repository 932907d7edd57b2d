"""NodeResourceTopology objects as they travel, v1alpha1 and v1alpha2 alike.

`decode` reads one from JSON or a parsed mapping: in one pass if the object keeps its schema, else piece by piece, so
that one odd zone costs that zone and not the report. What was left out is on the `Salvaged` object it then returns.
`nrt` turns these structs into a NodeTopology and back; nothing here judges a value.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from numalign.api import errors
from numalign.api.decode import decode as door
from numalign.api.decode.structs import Wire
from numalign.api.nrt import salvage
from numalign.api.nrt.repairs import Guess
from numalign.api.objects.meta import ObjectMeta

GROUP: Final = "topology.node.k8s.io"
KIND: Final = "NodeResourceTopology"
V1ALPHA1: Final = "v1alpha1"
V1ALPHA2: Final = "v1alpha2"
NUMA_ZONE: Final = "Node"
"""The type of a zone that stands for a NUMA node; zones of other types are someone else's."""

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


class Zone(Wire, frozen=True):
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
    zones: tuple[Zone, ...] | None = None
    """Required, so an empty list is written; None: absent."""
    attributes: tuple[Attribute, ...] = ()


class Salvaged(NodeResourceTopology, frozen=True):
    """A report that did not keep its schema, without the parts that did not."""

    dropped: tuple[Guess, ...] = ()


def decode(raw: bytes | str | Mapping[str, Any]) -> NodeResourceTopology:
    """The object in `raw`; BadObject if it is not one, is of another kind, or has no name."""
    try:
        report = door.decode(NodeResourceTopology, raw)
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
    except salvage.MISFIT:
        raise problem from None
    if not isinstance(document, Mapping):
        raise problem
    report, dropped = salvage.struct(document, NodeResourceTopology)
    return Salvaged(**msgspec.structs.asdict(report), dropped=tuple(dropped))
