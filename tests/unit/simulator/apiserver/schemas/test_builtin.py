"""The table of built-in fields, and what is asked of it."""

import pytest

from numalign.simulator.apiserver.schemas import builtin, typedefs
from numalign.simulator.apiserver.schemas.typedefs import TypeDef
from numalign.simulator.apiserver.storage import resources
from numalign.simulator.apiserver.storage.resources import GroupVersionKind, Resource
from numalign.simulator.trees import Tree

POD = ("", "v1", "Pod")


def shape(kind: GroupVersionKind) -> TypeDef:
    found = builtin.typedef(kind)
    assert found is not None
    return found


def at(kind: GroupVersionKind, path: str) -> TypeDef:
    """The shape at a path; `[]` steps into the items of a list."""
    found = shape(kind)
    for step in path.split("."):
        below = found.items if step == "[]" else found.child(step)
        assert below is not None, step
        found = below
    return found


@pytest.mark.parametrize("resource", resources.BUILT_IN, ids=lambda each: each.qualified)
def test_every_resource_that_is_served_is_in_the_table(resource: Resource) -> None:
    assert builtin.typedef((resource.group, resource.version, resource.kind)) is not None


def test_a_kind_that_is_not_built_in_has_no_fields_here() -> None:
    assert builtin.typedef(("ex.com", "v1", "Thing")) is None


LISTS: dict[str, tuple[str, str, tuple[str, ...], str]] = {
    "containers": ("spec.containers", typedefs.MAP, ("name",), "name"),
    "ports": ("spec.containers.[].ports", typedefs.MAP, ("containerPort", "protocol"), "containerPort"),
    "env": ("spec.containers.[].env", typedefs.MAP, ("name",), "name"),
    "volume mounts": ("spec.containers.[].volumeMounts", typedefs.MAP, ("mountPath",), "mountPath"),
    "arguments": ("spec.containers.[].args", typedefs.ATOMIC, (), ""),
    "tolerations": ("spec.tolerations", typedefs.ATOMIC, (), ""),
    "finalizers": ("metadata.finalizers", typedefs.SET, (), ""),
    "owners": ("metadata.ownerReferences", typedefs.MAP, ("uid",), "uid"),
    "conditions": ("status.conditions", typedefs.MAP, ("type",), "type"),
}


@pytest.mark.parametrize("path, relation, keys, merge_key", LISTS.values(), ids=LISTS)
def test_how_lists_of_a_pod_merge(path: str, relation: str, keys: tuple[str, ...], merge_key: str) -> None:
    found = at(POD, path)
    assert (found.relation, found.keys, found.merge_key) == (relation, keys, merge_key)


def test_volumes_retain_keys_and_selectors_are_atomic() -> None:
    assert at(POD, "spec.volumes").strategies == ("merge", "retainKeys")
    assert at(("apps", "v1", "Deployment"), "spec.selector").relation == typedefs.ATOMIC
    assert at(("apps", "v1", "Deployment"), "spec.strategy").strategies == ("retainKeys",)


def test_a_key_has_its_default() -> None:
    assert at(POD, "spec.containers.[].ports.[].protocol").default == "TCP"


def test_a_type_may_contain_itself() -> None:
    crd = ("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
    schema = at(crd, "spec.versions.[].schema.openAPIV3Schema")
    assert schema.fields["not"].fields is schema.fields


def test_every_reference_of_the_table_is_in_it() -> None:
    def references(node: object) -> set[str]:
        if isinstance(node, dict):
            own = {node["$ref"]} if isinstance(node.get("$ref"), str) else set()
            return own.union(*map(references, node.values()))
        return set().union(*map(references, node)) if isinstance(node, list) else set()

    assert references(list(builtin.models().values())) <= set(builtin.models())


def test_no_sentence_of_others_is_in_the_table() -> None:
    assert not any("description" in field for model in builtin.models().values() for field in [model, *fields(model)])


def fields(model: Tree) -> list[Tree]:
    return [field for name, field in model.get("properties", {}).items() if name != "description"]


UNKNOWN: dict[str, tuple[Tree, list[str]]] = {
    "none": ({"metadata": {"labels": {"anything": "goes"}}, "spec": {"nodeSelector": {"a": "b"}}}, []),
    "top": ({"spce": {"containers": []}}, ["spce"]),
    "in an item": ({"spec": {"containers": [{}, {"imagee": "x"}]}}, ["spec.containers[1].imagee"]),
    "several": ({"metadata": {"foo": 1}, "spec": {"unk": 1}}, ["metadata.foo", "spec.unk"]),
    "below an unknown one nothing counts": ({"spec": {"foo": {"bar": 1}}}, ["spec.foo"]),
    "resources by name": ({"spec": {"containers": [{"resources": {"limits": {"ex.com/a": "1"}}}]}}, []),
    "nothing is known of a raw value": ({"metadata": {"managedFields": [{"fieldsV1": {"f:x": {}}}]}}, []),
}


@pytest.mark.parametrize("tree, paths", UNKNOWN.values(), ids=UNKNOWN)
def test_unknown_fields_are_named_by_their_path(tree: Tree, paths: list[str]) -> None:
    assert list(typedefs.unknown_fields(tree, shape(POD))) == paths


NORMAL: dict[str, tuple[Tree, Tree]] = {
    "nulls go": ({"metadata": {"labels": None}}, {"metadata": {}}),
    "empty optional lists and maps go": ({"metadata": {"labels": {}, "finalizers": []}}, {"metadata": {}}),
    "unknown fields go": ({"spec": {"foo": 1}}, {"spec": {}}),
    "empty structs stay": ({"spec": {"volumes": [{"emptyDir": {}}]}}, {"spec": {"volumes": [{"emptyDir": {}}]}}),
    "required lists stay": ({"spec": {"containers": []}}, {"spec": {"containers": []}}),
    "null in a map of texts is empty": ({"metadata": {"labels": {"a": None}}}, {"metadata": {"labels": {"a": ""}}}),
    "zero stays": ({"spec": {"priority": 0}}, {"spec": {"priority": 0}}),
}


@pytest.mark.parametrize("tree, kept", NORMAL.values(), ids=NORMAL)
def test_objects_are_written_back_without_what_the_server_s_structs_lack(tree: Tree, kept: Tree) -> None:
    assert typedefs.without_empty(tree, shape(POD)) == kept
