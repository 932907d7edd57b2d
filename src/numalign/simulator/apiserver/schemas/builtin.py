"""The types of the built-in kinds, from a table that `tools/apifields.py` generates from a real server's OpenAPI.

Patches call `typedef` for the TypeDef of a kind; OpenAPI documents are made from `models`, the table itself: schemas
without descriptions, where `$ref` holds the bare name of a model. The table is read at first use.

`check_types` rejects an object with a field of the wrong type, as the real server does when it decodes a body into
structs; so validation can rely on the types. msgspec checks an object in one pass against structs made from the table;
only a mismatch makes the checker walk the object, to find the words for it. Unlike the real server, it rejects a null
inside a list or a map."""

import functools
import gzip
import re
from datetime import datetime
from functools import cache
from importlib import resources
from typing import Annotated, Any, Final

import msgspec

from numalign.simulator import trees
from numalign.simulator.apiserver.schemas import gotext, typedefs, validate
from numalign.simulator.apiserver.schemas.typedefs import OBJECT_META, TypeDef
from numalign.simulator.apiserver.storage import errors
from numalign.simulator.apiserver.storage.resources import GroupVersionKind, Resource
from numalign.simulator.trees import Tree

GVK: Final = "x-kubernetes-group-version-kind"
# The schemas of these two do not say how they merge; Kubernetes treats them by name.
QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
RAW: Final = "io.k8s.apimachinery.pkg.runtime.RawExtension"
INT_OR_STRING: Final = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
TIMES: Final = {
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "2006-01-02T15:04:05Z07:00",
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": "2006-01-02T15:04:05.000000Z07:00",
}
SCALARS: Final[dict[str, Any]] = {"string": str, "boolean": bool, "number": int | float}
STEP: Final = re.compile(r"\.([^.\[`]+)|\[([^\]]*)\]")
# Structs that Go embeds: error messages name them in the path, although the object does not contain them.
EMBEDDED: Final = {"Volume": "VolumeSource", "Probe": "ProbeHandler", "PersistentVolumeSpec": "PersistentVolumeSource"}
EMBEDDED_BESIDES: Final = frozenset(
    {
        "name",
        *("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"),
        *("terminationGracePeriodSeconds", "capacity", "accessModes", "claimRef", "persistentVolumeReclaimPolicy"),
        *("storageClassName", "mountOptions", "volumeMode", "nodeAffinity", "volumeAttributesClassName"),
    }
)
RESOURCE_LISTS: Final = frozenset({"limits", "requests", "capacity", "allocatable", "overhead", "hard", "used"})
# The parts of an object that must be objects themselves, if present.
OBJECTS: Final = ("metadata", "spec", "status")


@functools.cache
def models() -> dict[str, Tree]:
    """Every type by its full name. READ ONLY."""
    packed = resources.files(__package__).joinpath("data/builtin.json.gz").read_bytes()
    return trees.decoded(gzip.decompress(packed))


@functools.cache
def kinds() -> dict[GroupVersionKind, str]:
    """The name of the model of every kind in the table."""
    found = {}
    for name, model in models().items():
        for group, version, kind in model.get(GVK, ()):
            found[group, version, kind] = name
    return found


def typedef(kind: GroupVersionKind) -> TypeDef | None:
    """The type of a kind; None for a kind that is not built in."""
    name = kinds().get(kind)
    return None if name is None else named(name)


def named(name: str) -> TypeDef:
    return _typedefs()[name]


@functools.cache
def _typedefs() -> dict[str, TypeDef]:
    """Created in two passes, because a type may contain itself: first empty types, then their fields."""
    table = {name: TypeDef(type=model.get("type", ""), model=name) for name, model in models().items()}
    table[QUANTITY] = TypeDef(type="string", format="quantity", model=QUANTITY)
    table[RAW].relation = typedefs.ATOMIC
    for name, model in models().items():
        typedef = table[name]
        typedef.format = model.get("format", "") or typedef.format
        if model.get("x-kubernetes-map-type") == typedefs.ATOMIC:
            typedef.relation = typedefs.ATOMIC
        if "properties" not in model and name != QUANTITY:
            typedef.values = typedefs.OPAQUE if name == RAW else typedefs.ANYTHING
    for name, model in models().items():
        if "properties" in model:
            typedefs.fill(table[name], model, table.__getitem__)
            table[name].always.update(_always(model))
    return table


def _always(model: Tree) -> Tree:
    required = model.get("required", ())
    fields = model["properties"].items()
    return {key: field.get("default") for key, field in fields if field.get("default") == {} or key in required}


def check_types(resource: Resource, tree: Tree) -> None:
    """Raises StatusError 400 for the first field that has another type than its kind declares."""
    model = _kind(*resource.gvk)
    if model is None:
        return
    try:
        msgspec.convert(tree, model)
    except msgspec.ValidationError as problem:
        raise _refusal(resource, tree, str(problem)) from None


def check_metadata_types(resource: Resource, tree: Tree) -> None:
    """Checks the metadata only, which every object has, before anything reads it."""
    try:
        msgspec.convert(tree.get("metadata") or {}, _model(OBJECT_META))
    except msgspec.ValidationError as problem:
        if not resource.custom:
            check_types(resource, tree)
        raise _refusal_at(resource, {"$ref": OBJECT_META}, tree["metadata"], str(problem)) from None


@cache
def _kind(group: str, version: str, kind: str) -> Any:
    name = kinds().get((group, version, kind))
    return None if name is None or group == "apiextensions.k8s.io" else _model(name)


@cache
def _model(name: str) -> Any:
    """The struct of a named type. Only types of custom resource definitions are recursive; they are not checked."""
    schema = models()[name]
    if name == QUANTITY:
        return Any
    if name == INT_OR_STRING:
        return _integer("int32") | str
    if name in TIMES:
        return datetime
    if "properties" not in schema:
        return SCALARS.get(schema.get("type", ""), Any)
    # Struct fields get generated names: those of the API may be Python keywords.
    names = {f"field{index}": field for index, field in enumerate(schema["properties"])}
    types = [(ours, _type(schema["properties"][field]) | None, None) for ours, field in names.items()]
    return msgspec.defstruct(name.rpartition(".")[2], types, rename=names, gc=False)


def _type(schema: Tree) -> Any:
    if "$ref" in schema:
        return _model(schema["$ref"])
    match schema.get("type"):
        case "array":
            return list[_type(schema.get("items") or {})]  # type: ignore[misc]
        case "object" if isinstance(schema.get("additionalProperties"), dict):
            return dict[str, _type(schema["additionalProperties"])]  # type: ignore[misc]
        case "object":
            return dict[str, Any]
        case "integer":
            return _integer(schema.get("format", "int64"))
        case other:
            return SCALARS.get(str(other), Any)


def _integer(form: str) -> Any:
    limit = 2 ** validate.WIDTHS.get(form, 63)
    return Annotated[int, msgspec.Meta(ge=-limit, le=limit - 1)]


def _refusal(resource: Resource, tree: Tree, problem: str) -> errors.StatusError:
    top: Tree = {"$ref": kinds()[resource.gvk]}
    return _refusal_at(resource, top, tree, problem)


def _refusal_at(resource: Resource, schema: Tree, value: Any, problem: str) -> errors.StatusError:
    path, owner = list[str](), resource.kind
    for field, index in STEP.findall(problem.rpartition(" - at `")[2]):
        owner = _owner(schema) or owner
        path += _named(owner, field) if field else []
        schema, value = _below(schema, value, field, index)
    wanted = _go_type(schema, path[-1] if path else "")
    where = f"{owner}.{'.'.join(path)}"
    got = _json_type(value, wanted)
    why = f"json: cannot unmarshal {got} into Go struct field {where} of type {wanted}"
    if isinstance(value, str) and schema.get("$ref") in TIMES:
        form = TIMES[schema["$ref"]]
        why = f'parsing time "{value}" as "{form}": cannot parse "{value}" as "2006"'
    return errors.TypeMismatch(resource, why, got.partition(" ")[0], wanted)


def _owner(schema: Tree) -> str:
    name = str(schema.get("$ref", ""))
    return name.rpartition(".")[2] if "properties" in models().get(name, {}) else ""


def _named(owner: str, field: str) -> list[str]:
    embedded = EMBEDDED.get(owner)
    return [embedded, field] if embedded and field not in EMBEDDED_BESIDES else [field]


def _below(schema: Tree, value: Any, field: str, index: str) -> tuple[Tree, Any]:
    """One step down, in the schema and in the object."""
    inside = models()[schema["$ref"]] if "$ref" in schema else schema
    if field:
        return inside["properties"][field], value.get(field) if isinstance(value, dict) else None
    if index.isdigit():
        return inside["items"], value[int(index)]
    below = inside["additionalProperties"]
    return below, next((each for each in value.values() if not _fits(below, each)), None)


def _fits(schema: Tree, value: Any) -> bool:
    try:
        msgspec.convert(value, _type(schema))
    except msgspec.ValidationError:
        return False
    return True


def _json_type(value: Any, wanted: str) -> str:
    name = gotext.json_type(value)
    # Go shows a number that does not fit an integer type.
    return f"number {value}" if name == "number" and wanted.startswith("int") else name


def _go_type(schema: Tree, field: str) -> str:
    if schema.get("$ref") == INT_OR_STRING:
        return "int32"
    inside = models()[schema["$ref"]] if "$ref" in schema else schema
    if "properties" in inside:
        return "v1." + str(schema.get("$ref", "")).rpartition(".")[2]
    match inside.get("type"):
        case "array":
            return f"[]{_go_type(inside.get('items') or {}, '')}"
        case "object":
            values = inside.get("additionalProperties") or {}
            is_amounts = values.get("$ref") == QUANTITY and field in RESOURCE_LISTS
            return "v1.ResourceList" if is_amounts else f"map[string]{_go_type(values, '')}"
        case "string":
            return "[]uint8" if inside.get("format") == "byte" else "string"
        case "integer":
            return str(inside.get("format", "int64"))
        case "boolean":
            return "bool"
    return "string"


def check_structure(tree: Tree, resource: Resource) -> None:
    for name in OBJECTS:
        found = tree.get(name)
        if found is not None and not isinstance(found, dict) and not (resource.custom and name != "metadata"):
            raise _mistyped(resource, name, gotext.json_type(found))
    check_metadata_types(resource, tree)


def _mistyped(resource: Resource, field: str, got: str) -> errors.StatusError:
    kind = "ObjectMeta" if field == "metadata" else f"{resource.kind}{field.capitalize()}"
    why = f"json: cannot unmarshal {got} into Go struct field {resource.kind}.{field} of type {resource.version}.{kind}"
    return errors.TypeMismatch(resource, why, got, f"{resource.version}.{kind}")
