"""The fields of the built-in kinds, out of a table that `tools/apifields.py` makes from a real server's OpenAPI.

Patches and admission ask `fields` for a kind's shape; OpenAPI documents are made from `models`, which is the table
itself: schemas without prose, where `$ref` holds the bare name of a model. The table is read at first use."""

from __future__ import annotations

import functools
import gzip
from importlib import resources
from typing import Final

from numalign.simulator import trees
from numalign.simulator.apiserver.schemas import typedefs
from numalign.simulator.apiserver.schemas.typedefs import TypeDef
from numalign.simulator.trees import Tree

Kind = tuple[str, str, str]
"""Group, version and kind; the core group is empty."""

GVK: Final = "x-kubernetes-group-version-kind"
# These two have schemas that do not say how they merge (Kubernetes treats them by name).
QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
RAW: Final = "io.k8s.apimachinery.pkg.runtime.RawExtension"


@functools.cache
def models() -> dict[str, Tree]:
    """Every known type by its full name; read only."""
    packed = resources.files(__package__).joinpath("data/builtin.json.gz").read_bytes()
    return trees.decoded(gzip.decompress(packed))


@functools.cache
def kinds() -> dict[Kind, str]:
    """The model of every kind in the table."""
    found = {}
    for name, model in models().items():
        for group, version, kind in model.get(GVK, ()):
            found[group, version, kind] = name
    return found


def fields(kind: Kind) -> TypeDef | None:
    """What objects of this kind look like; None for a kind that is not built in."""
    name = kinds().get(kind)
    return None if name is None else named(name)


def named(name: str) -> TypeDef:
    return _shapes()[name]


@functools.cache
def _shapes() -> dict[str, TypeDef]:
    """In two steps, since a type may contain itself: first every type's shell, then what is in it."""
    table = {name: TypeDef(type=model.get("type", ""), model=name) for name, model in models().items()}
    table[QUANTITY] = TypeDef(type="string", format="quantity", model=QUANTITY)
    table[RAW].relation = typedefs.ATOMIC
    for name, model in models().items():
        shape = table[name]
        shape.format = model.get("format", "") or shape.format
        if model.get("x-kubernetes-map-type") == typedefs.ATOMIC:
            shape.relation = typedefs.ATOMIC
        if "properties" not in model and name != QUANTITY:
            shape.values = typedefs.OPAQUE if name == RAW else typedefs.ANYTHING
    for name, model in models().items():
        if "properties" in model:
            typedefs.fill(table[name], model, table.__getitem__)
            table[name].always.update(_always(model))
    return table


def _always(model: Tree) -> Tree:
    required = model.get("required", ())
    fields = model["properties"].items()
    return {key: field.get("default") for key, field in fields if field.get("default") == {} or key in required}
