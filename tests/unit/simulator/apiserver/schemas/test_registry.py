"""Custom resource definitions: what is filled in, what is refused, and what comes out of them."""

from typing import Any

import pytest

from numalign.simulator import trees
from numalign.simulator.apiserver.schemas import crdvalidation, registry
from numalign.simulator.apiserver.storage import names
from numalign.simulator.trees import Tree
from tests.embedded import definitions

NOW, LATER = "2026-11-16T05:00:00Z", "2026-11-16T06:00:00Z"
ROOT = "spec.validation.openAPIV3Schema"


def foo(schema: Tree | None = None, **spec: Any) -> Tree:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema or {"type": "object"}},
    }
    about = {
        "group": "ex.com",
        "scope": "Namespaced",
        "names": {"plural": "foos", "kind": "Foo"},
        "versions": [version],
    }
    return {"metadata": {"name": "foos.ex.com"}, "spec": {**about, **spec}}


def problems(crd: Tree) -> list[str]:
    return [
        f"{cause.field}: {cause.message}"
        for cause in crdvalidation.definition_errors(registry.completed_definition(crd, None, NOW))
    ]


def version(**more: Any) -> Tree:
    found: Tree = foo()["spec"]["versions"][0]
    return {**found, **more}


def with_field(**field: Any) -> Tree:
    return foo({"type": "object", "properties": {"a": field}})


def test_names_and_conversion_are_filled_in() -> None:
    spec = registry.completed_definition(foo(), None, NOW)["spec"]
    assert spec["names"] == {"plural": "foos", "kind": "Foo", "singular": "foo", "listKind": "FooList"}
    assert spec["conversion"] == {"strategy": "None"}


def test_a_definition_is_established_at_once_and_stays_so_since_then() -> None:
    first = registry.completed_definition(foo(), None, NOW)
    again = registry.completed_definition(foo(versions=[version(name="v2")]), first, LATER)
    for crd in (first, again):
        times = {each["type"]: (each["status"], each["lastTransitionTime"]) for each in crd["status"]["conditions"]}
        assert times == {"NamesAccepted": ("True", NOW), "Established": ("True", NOW)}
    assert again["status"]["storedVersions"] == ["v1", "v2"]


PLAIN = {"type": "object", "properties": {"n": {"type": "string"}}}
OWN_LABEL = "may have mixed case, but should otherwise match: " + names.DNS1035_LABEL_RULE
HOISTED = (
    '"Deprecated":false,"DeprecationWarning":null,"Schema":null,"Subresources":null,'
    '"AdditionalPrinterColumns":null,"SelectableFields":null'
)
BAD: dict[str, tuple[Tree, list[str]]] = {
    "group": (
        foo(group=""),
        [
            'metadata.name: Invalid value: "foos.ex.com": must be spec.names.plural+"."+spec.group',
            "spec.group: Required value",
        ],
    ),
    "scope": (
        foo(scope="Foo"),
        ['spec.scope: Unsupported value: "Foo": supported values: "Cluster", "Namespaced"'],
    ),
    "no scope": (foo(scope=""), ["spec.scope: Required value"]),
    "no storage": (
        foo(versions=[version(storage=False)]),
        [
            f'spec.versions: Invalid value: [{{"Name":"v1","Served":true,"Storage":false,{HOISTED}}}]: '
            "must have exactly one version marked as storage version",
            "status.storedVersions: Invalid value: null: must have at least one stored version",
        ],
    ),
    "no schema": (
        foo(versions=[{"name": "v1", "served": True, "storage": True}]),
        ["spec.versions[0].schema.openAPIV3Schema: Required value"],
    ),
    "kind": (
        foo(names={"plural": "foos", "kind": "foo bar", "singular": "foo", "listKind": "FooList"}),
        [f'spec.names.kind: Invalid value: "foo bar": {OWN_LABEL}'],
    ),
    "scale": (
        foo(versions=[version(subresources={"scale": {}})]),
        [
            "spec.subresources.scale.specReplicasPath: Required value",
            "spec.subresources.scale.statusReplicasPath: Required value",
        ],
    ),
    "columns": (
        foo(versions=[version(additionalPrinterColumns=[{"name": "x", "type": "foo", "jsonPath": "spec"}])]),
        [
            'spec.additionalPrinterColumns[0].type: Invalid value: "foo": must be one of '
            "boolean,date,integer,number,string",
            'spec.additionalPrinterColumns[0].JSONPath: Invalid value: "spec": must be a simple json path '
            "starting with .",
        ],
    ),
    "protected group": (
        {**foo(group="foo.k8s.io"), "metadata": {"name": "foos.foo.k8s.io"}},
        [f"metadata.annotations[api-approved.kubernetes.io]: Required value: {crdvalidation.APPROVAL_WORDS}"],
    ),
    "preserving": (
        foo(preserveUnknownFields=True),
        [f"spec.preserveUnknownFields: Invalid value: true: {crdvalidation.PRESERVE_WORDS}"],
    ),
    "no root type": (foo({"properties": {}}), [f"{ROOT}.type: Required value: must not be empty at the root"]),
    "root is text": (foo({"type": "string"}), [f'{ROOT}.type: Invalid value: "string": must be object at the root']),
    "no type": (
        with_field(properties={}),
        [f"{ROOT}.properties[a].type: Required value: must not be empty for specified object fields"],
    ),
    "no such type": (
        with_field(type="foo"),
        [
            f'{ROOT}.properties[a].type: Unsupported value: "foo": supported values: '
            '"array", "boolean", "integer", "number", "object", "string"'
        ],
    ),
    "no items": (with_field(type="array"), [f"{ROOT}.properties[a].items: Required value: must be specified"]),
    "both kinds of properties": (
        with_field(type="object", properties={"b": {"type": "string"}}, additionalProperties={"type": "string"}),
        [
            f"{ROOT}.properties[a].additionalProperties: Forbidden: "
            "additionalProperties and properties are mutual exclusive"
        ],
    ),
    "map without keys": (
        with_field(type="array", items=PLAIN, **{"x-kubernetes-list-type": "map"}),
        [
            f"{ROOT}.properties[a].x-kubernetes-list-map-keys: Required value: "
            "must not be empty if x-kubernetes-list-type is map"
        ],
    ),
    "optional key": (
        with_field(type="array", items=PLAIN, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"]}),
        [
            f"{ROOT}.properties[a].items.properties[n].default: Required value: "
            "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
        ],
    ),
    "no such list type": (
        with_field(type="array", items={"type": "string"}, **{"x-kubernetes-list-type": "foo"}),
        [
            f'{ROOT}.properties[a].x-kubernetes-list-type: Unsupported value: "foo": '
            'supported values: "atomic", "set", "map"'
        ],
    ),
    "reference": (with_field(**{"$ref": "x"}), [f"{ROOT}.properties[a].$ref: Forbidden: $ref is not supported"]),
    "default of another type": (
        with_field(type="string", default=5),
        [f'{ROOT}.properties[a].default: Invalid value: "integer":  in body must be of type string: "integer"'],
    ),
    "types inside allOf": (
        with_field(type="object", allOf=[{"properties": {"b": {"type": "string"}}}]),
        [f"{ROOT}.properties[a].allOf[0].properties[b].type: Forbidden: must be empty to be structural"],
    ),
    "metadata": (
        foo({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": PLAIN}}}}),
        [
            f"{ROOT}.properties[metadata]: Forbidden: must not specify anything other than name and generateName, "
            "but metadata is implicitly specified"
        ],
    ),
    "unique items": (
        with_field(type="array", items={"type": "string"}, uniqueItems=True),
        [
            f"{ROOT}.properties[a].uniqueItems: Forbidden: uniqueItems cannot be set to true "
            "since the runtime complexity becomes quadratic"
        ],
    ),
}


@pytest.mark.parametrize("crd, said", BAD.values(), ids=BAD)
def test_what_is_said_of_a_bad_definition(crd: Tree, said: list[str]) -> None:
    assert problems(crd) == said


def test_where_versions_differ_the_version_is_named() -> None:
    bad = version(name="v2", storage=False, schema={"openAPIV3Schema": {"type": "string"}})
    where = "spec.versions[1].schema.openAPIV3Schema.type"
    assert problems(foo(versions=[version(), bad])) == [f'{where}: Invalid value: "string": must be object at the root']


@pytest.mark.parametrize("crd", [definitions.REPORTS, definitions.THINGS], ids=["reports", "things"])
def test_definitions_in_use_are_fine(crd: Tree) -> None:
    assert problems(crd) == []


def test_each_served_version_is_a_resource() -> None:
    crd = trees.copied(definitions.REPORTS)
    customs = registry.custom_resources(registry.completed_definition(crd, None, NOW))
    assert [each.resource.api_version for each in customs] == [
        "topology.node.k8s.io/v1alpha1",
        "topology.node.k8s.io/v1alpha2",
    ]
    assert {each.resource.namespaced for each in customs} == {False}
    crd["spec"]["versions"][0]["served"] = False
    assert [
        each.resource.version for each in registry.custom_resources(registry.completed_definition(crd, None, NOW))
    ] == ["v1alpha2"]


def test_parts_and_columns_come_along() -> None:
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    columns = [{"name": "x", "type": "string", "jsonPath": ".spec.x"}]
    made = version(subresources={"status": {}, "scale": scale}, additionalPrinterColumns=columns)
    custom = registry.custom_resources(registry.completed_definition(foo(versions=[made]), None, NOW))[0]
    assert custom.resource.subresources == {"status", "scale"}
    assert (custom.scale, custom.columns) == (scale, columns)
    assert custom.schema.has_status_subresource
