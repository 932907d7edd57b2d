"""OpenAPI v3: the fields of kinds and the requests they accept, one document for each group version.

`nonresource` serves `index` at /openapi/v3 and `document` below it. kubectl reads the documents for `explain`, to
validate and diff what it applies, and to learn that dryRun and fieldValidation are supported. Built-in kinds come from
the generated field table, custom resources from the schema of their definition. The documents have no descriptions, so
`explain` shows names and types only. Version 2 exists and is empty: kubectl reads it for kinds that it does not find in
version 3."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from numalign.simulator import trees
from numalign.simulator.apiserver.http import discovery
from numalign.simulator.apiserver.schemas import builtin
from numalign.simulator.apiserver.schemas.builtin import GVK
from numalign.simulator.apiserver.schemas.registry import Registry
from numalign.simulator.apiserver.schemas.typedefs import OBJECT_META
from numalign.simulator.apiserver.storage.resources import GroupVersionKind, Resource
from numalign.simulator.trees import Tree

Schemas = Mapping[Resource, Tree]
"""The openAPIV3Schema of each custom resource."""

PREFIX: Final = "#/components/schemas/"
LIST_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"
TEXT: Final[Tree] = {"type": "string"}
# Server-side checks that clients do not use.
SERVER_SIDE: Final = frozenset({"x-kubernetes-validations"})

WRITING: Final = ("dryRun", "fieldManager", "fieldValidation")
CUSTOM_PATCH_TYPES: Final = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
)
# The schema of a custom resource has no merge keys; kubectl chooses by this list.
PATCH_TYPES: Final = (*CUSTOM_PATCH_TYPES, "application/strategic-merge-patch+json")
# The first field of the message, the version.
OLDER: Final = (b"\x0a\x032.0", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf")
# Verb of the API, HTTP method, action in OpenAPI, and whether it acts on one object.
OPERATIONS: Final = (
    ("list", "get", "list", False),
    ("create", "post", "post", False),
    ("deletecollection", "delete", "deletecollection", False),
    ("get", "get", "get", True),
    ("update", "put", "put", True),
    ("patch", "patch", "patch", True),
    ("delete", "delete", "delete", True),
)
PARAMETERS: Final = {
    "create": WRITING,
    "update": WRITING,
    "patch": (*WRITING, "force"),
    "delete": ("dryRun", "gracePeriodSeconds", "propagationPolicy"),
    "deletecollection": ("dryRun", "labelSelector", "fieldSelector"),
    "list": ("labelSelector", "fieldSelector", "limit", "continue", "watch"),
}


def index(registry: Registry) -> Tree:
    """The paths of the documents; the hash changes with the document."""
    paths = {}
    for group, version in dict.fromkeys((each.group, each.version) for each in registry):
        info = f"apis/{group}/{version}" if group else f"api/{version}"
        body = document(registry, group, version) or b""
        tag = hashlib.sha256(body).hexdigest().upper()
        paths[info] = {"serverRelativeURL": f"/openapi/v3/{info}?hash={tag}"}
    return {"paths": paths}


def document(registry: Registry, group: str, version: str) -> bytes | None:
    """The encoded document of a group version, or None if it has no resources."""
    here = tuple(each for each in registry if (each.group, each.version) == (group, version))
    if not here:
        return None
    schemas = {each: custom.schema.tree for each in here if (custom := registry.custom(each)) is not None}
    return trees.encoded(_document(here, schemas)) if schemas else _built_in(here)


@lru_cache(maxsize=64)
def _built_in(resources: tuple[Resource, ...]) -> bytes:
    return trees.encoded(_document(resources, {}))


def _document(resources: Sequence[Resource], schemas: Schemas) -> Tree:
    models, paths = Tree(), Tree()
    for resource in resources:
        name, own = _own_models(resource, schemas)
        models |= own
        paths |= _paths(resource, name)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "unversioned"},
        "paths": paths,
        "components": {"schemas": _with_references(models)},
    }


def _own_models(resource: Resource, schemas: Schemas) -> tuple[str, Tree]:
    """The name of the kind's model, and the models of the kind and its list."""
    name = builtin.kinds().get(resource.gvk)
    if name is None:
        name = _model_name(resource)
        model = _custom(resource, schemas.get(resource) or {"x-kubernetes-preserve-unknown-fields": True})
    else:
        model = builtin.models()[name] | {GVK: [_gvk(*resource.gvk)]}
    return name, {name: model, f"{name}List": _list_model(resource, name)}


def _model_name(resource: Resource) -> str:
    """The name that the real server gives a custom kind: the labels of the group in reverse order."""
    return ".".join([*reversed(resource.group.split(".")), resource.version, resource.kind])


def _custom(resource: Resource, schema: Tree) -> Tree:
    properties = {"apiVersion": TEXT, "kind": TEXT} | (schema.get("properties") or {})
    properties |= {"metadata": {"$ref": OBJECT_META}}
    return {"type": "object"} | schema | {"properties": properties, GVK: [_gvk(*resource.gvk)]}


def _list_model(resource: Resource, name: str) -> Tree:
    items = {"type": "array", "items": {"$ref": name}}
    properties = {"apiVersion": TEXT, "kind": TEXT, "metadata": {"$ref": LIST_META}, "items": items}
    kind = [_gvk(resource.group, resource.version, resource.list_kind)]
    return {"type": "object", "required": ["items"], "properties": properties, GVK: kind}


def _gvk(group: str, version: str, kind: str) -> Tree:
    return {"group": group, "version": version, "kind": kind}


def _with_references(models: Tree) -> Tree:
    """The models, and all models that they refer to."""
    done, waiting = Tree(), dict(models)
    while waiting:
        name, model = waiting.popitem()
        done[name] = _written(model)
        for other in _references(model):
            if other not in done and other not in waiting:
                waiting[other] = {"type": "object"} if other == LIST_META else _plain(builtin.models()[other])
    return dict(sorted(done.items()))


def _plain(model: Tree) -> Tree:
    """Drops the kinds of a model that is not a kind of this document."""
    return {key: value for key, value in model.items() if key != GVK}


def older(accept: str) -> tuple[bytes, str]:
    """An empty document of version 2, and its media type."""
    return OLDER if is_protobuf(accept) else (trees.encoded({"swagger": "2.0", "paths": {}}), "application/json")


def is_protobuf(accept: str) -> bool:
    return "protobuf" in accept


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        for value in schema.values():
            yield from _references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _references(value)


def _written(schema: Any) -> Any:
    """Resolves references. OpenAPI ignores what stands beside a reference, so both go into an allOf."""
    if isinstance(schema, list):
        return [_written(value) for value in schema]
    if not isinstance(schema, dict):
        return schema
    rest = {key: _written(value) for key, value in schema.items() if key != "$ref" and key not in SERVER_SIDE}
    if not isinstance(schema.get("$ref"), str):
        return rest
    reference = {"$ref": PREFIX + schema["$ref"]}
    return {"allOf": [reference], **rest} if rest else reference


def _paths(resource: Resource, model: str) -> Tree:
    base = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    whole = f"{base}/namespaces/{{namespace}}/{resource.plural}" if resource.namespaced else f"{base}/{resource.plural}"
    paths = {
        whole: _operations(resource, resource.verbs, resource.gvk, model, single=False),
        f"{whole}/{{name}}": _operations(resource, resource.verbs, resource.gvk, model, single=True),
    }
    for each in sorted(resource.subresources):
        verbs, answer = discovery.subresource_verbs(each), discovery.subresource_kind(resource, each)
        paths[f"{whole}/{{name}}/{each}"] = _operations(resource, verbs, answer, "", single=verbs != ("create",))
    return {path: operations for path, operations in paths.items() if operations}


def _operations(resource: Resource, verbs: Sequence[str], kind: GroupVersionKind, model: str, *, single: bool) -> Tree:
    patches = CUSTOM_PATCH_TYPES if resource.custom else PATCH_TYPES
    return {
        method: _operation(verb, action, kind, model, patches)
        for verb, method, action, is_for_one in OPERATIONS
        if verb in verbs and is_for_one is single
    }


def _operation(verb: str, action: str, kind: GroupVersionKind, model: str, patches: Sequence[str]) -> Tree:
    answer = {"$ref": f"{PREFIX}{model}{'List' if verb == 'list' else ''}"} if model else {"type": "object"}
    operation: Tree = {
        "parameters": [{"name": each, "in": "query", "schema": TEXT} for each in PARAMETERS.get(verb, ())],
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": answer}}}},
        "x-kubernetes-action": action,
        GVK: _gvk(*kind),
    }
    if verb == "patch":
        operation["requestBody"] = {"content": {each: {"schema": {"type": "object"}} for each in patches}}
    elif verb in ("create", "update"):
        operation["requestBody"] = {"content": {"*/*": {"schema": answer}}}
    return operation
