import json
from collections.abc import Iterator
from typing import Any

import pytest

from numalign.simulator.apiserver.http import openapi
from numalign.simulator.apiserver.schemas.registry import CustomResource, Registry
from numalign.simulator.apiserver.schemas.structural import StructuralSchema
from numalign.simulator.apiserver.schemas.typedefs import OBJECT_META
from numalign.simulator.apiserver.storage.resources import Resource

WIDGETS = Resource("demo.example.com", "v1", "widgets", "Widget", namespaced=True, custom=True)
SCHEMA = {
    "type": "object",
    "required": ["spec"],
    "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
    "x-kubernetes-validations": [{"rule": "true"}],
}
REGISTRY = Registry()
REGISTRY.define(WIDGETS.group_resource, [CustomResource(WIDGETS, StructuralSchema(SCHEMA))])
GROUP_VERSIONS = sorted({(each.group, each.version) for each in REGISTRY})


def read(group: str, version: str) -> Any:
    return json.loads(openapi.document(REGISTRY, group, version) or b"null")


def references(thing: Any) -> Iterator[str]:
    if isinstance(thing, dict):
        yield from ([thing["$ref"]] if isinstance(thing.get("$ref"), str) else [])
    parts = thing.values() if isinstance(thing, dict) else thing if isinstance(thing, list) else ()
    for part in parts:
        yield from references(part)


def kind_of(model: Any) -> list[str]:
    return [each["kind"] for each in model.get("x-kubernetes-group-version-kind", ())]


@pytest.mark.parametrize("group, version", GROUP_VERSIONS, ids=map("/".join, GROUP_VERSIONS))
def test_every_reference_has_a_target(group: str, version: str) -> None:
    document = read(group, version)
    models = {openapi.PREFIX + name for name in document["components"]["schemas"]}
    assert set(references(document)) <= models


def test_every_document_is_in_the_index() -> None:
    paths = openapi.index(REGISTRY)["paths"]
    assert {"api/v1", "apis/apps/v1", "apis/demo.example.com/v1"} <= set(paths)
    assert paths["api/v1"]["serverRelativeURL"].startswith("/openapi/v3/api/v1?hash=")


def test_a_changed_schema_changes_only_its_own_address() -> None:
    before = openapi.index(REGISTRY)["paths"]
    other = Registry()
    other.define(WIDGETS.group_resource, [CustomResource(WIDGETS, StructuralSchema(SCHEMA | {"required": []}))])
    after = openapi.index(other)["paths"]
    assert {path for path in before if before[path] != after[path]} == {"apis/demo.example.com/v1"}


def test_nothing_is_said_of_a_group_version_that_is_not_served() -> None:
    assert openapi.document(REGISTRY, "apps", "v9") is None


@pytest.mark.parametrize("parameter", ["dryRun", "fieldManager", "fieldValidation", "force"])
def test_patches_take_what_kubectl_looks_for(parameter: str) -> None:
    patch = read("apps", "v1")["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert parameter in [each["name"] for each in patch["parameters"]]
    assert patch["x-kubernetes-group-version-kind"] == {"group": "apps", "version": "v1", "kind": "Deployment"}
    assert "application/apply-patch+yaml" in patch["requestBody"]["content"]


def test_a_custom_kind_has_no_strategic_merge_patch() -> None:
    patch = read("demo.example.com", "v1")["paths"]["/apis/demo.example.com/v1/namespaces/{namespace}/widgets/{name}"]
    types = set(patch["patch"]["requestBody"]["content"])
    assert types == {f"application/{each}" for each in ("apply-patch+yaml", "json-patch+json", "merge-patch+json")}


def test_a_built_in_kind_keeps_its_merge_keys() -> None:
    spec = read("", "v1")["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]["properties"]
    assert spec["containers"]["x-kubernetes-patch-merge-key"] == "name"


def test_a_kind_is_found_by_its_group_version_kind() -> None:
    models = read("apps", "v1")["components"]["schemas"]
    assert [name for name, model in models.items() if kind_of(model) == ["Deployment"]] == [
        "io.k8s.api.apps.v1.Deployment"
    ]


def test_a_custom_kind_has_the_schema_of_its_definition() -> None:
    model = read("demo.example.com", "v1")["components"]["schemas"]["com.example.demo.v1.Widget"]
    assert model["properties"]["spec"] == SCHEMA["properties"]["spec"]  # type: ignore[index]
    assert model["properties"]["metadata"] == {"$ref": f"{openapi.PREFIX}{OBJECT_META}"}
    assert "x-kubernetes-validations" not in model


def test_a_custom_kind_without_a_schema_may_hold_anything() -> None:
    registry = Registry()
    registry.define(WIDGETS.group_resource, [CustomResource(WIDGETS, StructuralSchema({}))])
    document = json.loads(openapi.document(registry, "demo.example.com", "v1") or b"")
    assert document["components"]["schemas"]["com.example.demo.v1.Widget"]["x-kubernetes-preserve-unknown-fields"]


def test_what_stands_beside_a_reference_is_not_lost() -> None:
    metadata = read("apps", "v1")["components"]["schemas"]["io.k8s.api.apps.v1.Deployment"]["properties"]["metadata"]
    assert metadata == {"allOf": [{"$ref": f"{openapi.PREFIX}{OBJECT_META}"}], "default": {}}
