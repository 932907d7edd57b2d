"""Custom resources held to their schema: every answer below is one that a real server gave."""

from typing import Any

import pytest

from numalign.simulator.apiserver.schemas import registry, structural, validate
from numalign.simulator.apiserver.schemas.structural import StructuralSchema
from numalign.simulator.trees import Tree
from tests.embedded import definitions

FIELDS = definitions.SAMPLE_FIELDS
SCHEMA = StructuralSchema(definitions.SAMPLE)


def stored(spec: Any, schema: StructuralSchema = SCHEMA) -> Tree:
    """As it would be stored, were it valid."""
    tree = {"apiVersion": "ex.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": spec}
    return structural.admitted(schema, tree)[0]


def problems(spec: Any) -> list[str]:
    return [f"{cause.field}: {cause.message}" for cause in structural.errors(SCHEMA, stored(spec))]


UNPLACED = '<nil>: Invalid value: "": '
BAD: dict[str, tuple[Any, list[str]]] = {
    "not given": (None, ["spec: Required value"]),
    "not an object": (5, ['spec: Invalid value: "integer": spec in body must be of type object: "integer"']),
    "too short": (
        {"s": "b"},
        ['spec.s: Invalid value: "b": spec.s in body should be at least 2 chars long'],
    ),
    "too long": ({"s": "abbbbbb"}, ["spec.s: Too long: may not be more than 4 bytes"]),
    "pattern": ({"s": "bb"}, ["spec.s: Invalid value: \"bb\": spec.s in body should match '^a.*$'"]),
    "number for text": (
        {"s": 5},
        ['spec.s: Invalid value: "integer": spec.s in body must be of type string: "integer"'],
    ),
    "text for number": (
        {"i": "x"},
        ['spec.i: Invalid value: "string": spec.i in body must be of type integer: "string"'],
    ),
    "too small": ({"i": 0}, ["spec.i: Invalid value: 0: spec.i in body should be greater than or equal to 1"]),
    "twice wrong": (
        {"i": 11},
        [
            "spec.i: Invalid value: 11: spec.i in body should be a multiple of 2",
            "spec.i: Invalid value: 11: spec.i in body should be less than or equal to 10",
        ],
    ),
    "a fraction": (
        {"i": 2.5},
        [
            'spec.i: Invalid value: "number": spec.i in body must be of type integer: "number"',
            UNPLACED + "Checked value must be of type integer (default format) in spec.i",
            "spec.i: Invalid value: 2.5: spec.i in body should be a multiple of 2",
        ],
    ),
    "not above": ({"x": 1}, ["spec.x: Invalid value: 1: spec.x in body should be greater than 1"]),
    "not below": ({"x": 10}, ["spec.x: Invalid value: 10: spec.x in body should be less than 10"]),
    "text for boolean": (
        {"b": "true"},
        ['spec.b: Invalid value: "string": spec.b in body must be of type boolean: "string"'],
    ),
    "not one of": ({"e": "C"}, ['spec.e: Unsupported value: "C": supported values: "A", "B"']),
    "neither type nor one of": (
        {"e": 5},
        [
            'spec.e: Invalid value: "integer": spec.e in body must be of type string: "integer"',
            'spec.e: Unsupported value: 5: supported values: "A", "B"',
        ],
    ),
    "no such number": ({"ei": 3}, ['spec.ei: Unsupported value: 3: supported values: "1", "2"']),
    "neither int nor text": (
        {"ios": 1.5},
        ['spec.ios: Invalid value: "number": spec.ios in body must be of type integer,string: "number"'],
    ),
    "too few": ({"l": []}, ["spec.l: Invalid value: 0: spec.l in body should have at least 1 items"]),
    "too many": ({"l": ["a", "b", "c"]}, ["spec.l: Too many: 3: must have at most 2 items"]),
    "in an item": (
        {"l": [1]},
        ['spec.l[0]: Invalid value: "integer": spec.l[0] in body must be of type string: "integer"'],
    ),
    "twice in a set": ({"set": ["a", "a"]}, ['spec.set[1]: Duplicate value: "a"']),
    "a key twice": ({"ml": [{"name": "a"}, {"name": "a"}]}, ['spec.ml[1]: Duplicate value: {"name":"a"}']),
    "no key": ({"ml": [{"v": 1}]}, ["spec.ml[0].name: Required value"]),
    "required": ({"o": {}}, ["spec.o.r: Required value"]),
    "too few keys": ({"m": {}}, ["spec.m: Invalid value: 0: spec.m in body should have at least 1 properties"]),
    "too many keys": ({"m": {"a": 1, "b": 2, "c": 3}}, ["spec.m: Too many: 3: must have at most 2 items"]),
    "a value of a map": (
        {"m": {"a": "x"}},
        ['spec.m.a: Invalid value: "string": spec.m.a in body must be of type integer: "string"'],
    ),
    "no time": (
        {"dt": "nope"},
        ['spec.dt: Invalid value: "nope": spec.dt in body must be of type date-time: "nope"'],
    ),
    "no address": (
        {"ip": "1.2.3.400"},
        ['spec.ip: Invalid value: "1.2.3.400": spec.ip in body must be of type ipv4: "1.2.3.400"'],
    ),
    "no base64": ({"byte": "!!"}, ['spec.byte: Invalid value: "!!": spec.byte in body must be of type byte: "!!"']),
    "no duration": ({"dur": "x"}, ['spec.dur: Invalid value: "x": spec.dur in body must be of type duration: "x"']),
    "too wide": (
        {"i32": 99999999999},
        [UNPLACED + "Checked value must be of type integer with format int32 in spec.i32"],
    ),
    "embedded without a kind": (
        {"er": {"a": 1}},
        ["spec.er.apiVersion: Required value", "spec.er.kind: Required value"],
    ),
    "none of several": (
        {"ao": {}},
        [UNPLACED + '"spec.ao" must validate at least one schema (anyOf)', "spec.ao.a: Required value"],
    ),
    "none of exactly one": (
        {"oo": {}},
        [
            UNPLACED + '"spec.oo" must validate one and only one schema (oneOf). Found none valid',
            "spec.oo.a: Required value",
        ],
    ),
    "both of exactly one": (
        {"oo": {"a": "1", "b": "2"}},
        [UNPLACED + '"spec.oo" must validate one and only one schema (oneOf). Found 2 valid alternatives'],
    ),
    "not all": (
        {"al": 4},
        [
            "spec.al: Invalid value: 4: spec.al in body should be greater than or equal to 5",
            UNPLACED + '"spec.al" must validate all the schemas (allOf)',
        ],
    ),
    "the one that must not be": ({"no": "bad"}, [UNPLACED + '"spec.no" must not validate the schema (not)']),
}


@pytest.mark.parametrize("spec, said", BAD.values(), ids=BAD)
def test_what_is_said_of_a_value_that_does_not_fit(spec: Any, said: list[str]) -> None:
    assert problems(spec) == said


GOOD: dict[str, tuple[Tree, Tree]] = {
    "nothing": ({}, {}),
    "null that is not allowed is not given": ({"s": None, "o": None}, {}),
    "null that is allowed stays": ({"n": None}, {"n": None}),
    "unknown fields go, defaults come": ({"o": {"r": "1", "zz": 5}}, {"o": {"q": "qq", "r": "1"}}),
    "unknown fields go everywhere": ({"unk": 1, "ml": [{"name": "a", "zz": 1}]}, {"ml": [{"name": "a"}]}),
    "free fields stay": ({"p": {"any": {"t": 1}}}, {"p": {"any": {"t": 1}}}),
    "anything at all": ({"any": [1, {"a": None}]}, {"any": [1, {"a": None}]}),
    "int or text": ({"ios": "5"}, {"ios": "5"}),
    "one of several": ({"ao": {"a": "1"}}, {"ao": {"a": "1"}}),
    "formats": (
        {"dt": "2020-01-01T00:00:00Z", "byte": "aGk=", "dur": "5m"},
        {"dt": "2020-01-01T00:00:00Z", "byte": "aGk=", "dur": "5m"},
    ),
    "an embedded object keeps what it is": (
        {"er": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "foo": 1}, "spec": {"x": 1}}},
        {"er": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"x": 1}}},
    ),
}


@pytest.mark.parametrize("spec, kept", GOOD.values(), ids=GOOD)
def test_what_is_stored_of_a_value_that_fits(spec: Tree, kept: Tree) -> None:
    assert problems(spec) == []
    assert stored(spec)["spec"] == kept


@pytest.mark.parametrize("spec", [spec for spec, _ in [*BAD.values(), *GOOD.values()]], ids=[*BAD, *GOOD])
def test_the_quick_check_never_takes_a_wrong_value_for_a_right_one(spec: Any) -> None:
    tree = stored(spec)
    for key, field in FIELDS.items():
        alone = StructuralSchema(
            {"type": "object", "properties": {"spec": struct_of(key, field)}, "required": ["spec"]}
        )
        if alone.fits(tree):
            slow = [*validate.errors(tree, alone.tree), *structural.identity_errors(tree, alone.tree)]
            assert slow == []


def struct_of(key: str, field: Tree) -> Tree:
    return {"type": "object", "properties": {key: field}}


def test_the_quick_check_decides_about_reports() -> None:
    schema = registry.custom_resources(registry.completed_definition(definitions.REPORTS, None, ""))[1].schema
    amounts = {"capacity": 8, "allocatable": "7500m", "available": "2Gi"}
    zone = {"name": "node-0", "type": "Node", "resources": [{"name": "cpu", **amounts}]}
    assert schema.fits(report(zones=[zone]))
    assert not schema.fits(report(zones=[{**zone, "type": 5}]))


def test_unknown_fields_are_pruned_in_metadata_lists_and_maps() -> None:
    tree = {"metadata": {"name": "t", "foo": 1}, "spec": {"unk": 1, "ml": [{"name": "a", "zz": 1}]}}
    assert structural.pruned(SCHEMA, tree) == {"metadata": {"name": "t"}, "spec": {"ml": [{"name": "a"}]}}


def test_the_tree_of_the_client_stays_as_it_was() -> None:
    tree = {"metadata": {"name": "t"}, "spec": {"unk": 1, "o": {"r": "1"}}}
    stored(tree["spec"])
    assert tree["spec"] == {"unk": 1, "o": {"r": "1"}}


def report(**fields: Any) -> Tree:
    head = {"apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopology", "metadata": {"name": "n"}}
    return {**head, **fields}


def test_reports_of_both_versions_are_held_to_their_own_schema() -> None:
    old, new = (
        each.schema for each in registry.custom_resources(registry.completed_definition(definitions.REPORTS, None, ""))
    )
    amounts = {"capacity": 8, "allocatable": "7500m", "available": "many"}
    tree = report(zones=[{"name": "node-0", "type": "Node", "resources": [{"name": "cpu", **amounts}]}], attributes=[])
    assert "attributes" not in structural.pruned(old, tree)
    assert [cause.field for cause in structural.errors(old, tree)] == [
        "topologyPolicies",
        "zones[0].resources[0].available",
    ]
    assert [cause.field for cause in structural.errors(new, tree)] == ["zones[0].resources[0].available"]
    assert structural.pruned(new, tree) == tree
