"""How apply treats lists with keys, sets, atomic values and parts of an object."""

from typing import Any

import pytest

from numalign.simulator.apiserver.patches import ApplyConflict
from numalign.simulator.apiserver.patches.apply import FieldManager
from numalign.simulator.apiserver.schemas import registry
from numalign.simulator.apiserver.schemas.structural import StructuralSchema
from numalign.simulator.trees import Tree
from tests.embedded import definitions

DEPLOYMENT = ("apps", "v1", "Deployment")
NOW = "2026-11-16T05:00:00Z"


def deployment(*containers: Tree, **spec: Any) -> Tree:
    template = {"spec": {"containers": list(containers)}} if containers else {}
    head: Tree = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
    return {**head, "spec": {**({"template": template} if template else {}), **spec}}


def applied(live: Tree | None, wanted: Tree, manager: str = "x", *, subresource: str = "") -> Tree:
    return FieldManager(DEPLOYMENT, NOW, subresource).apply(live, wanted, manager)


def containers(tree: Tree) -> list[Tree]:
    found: list[Tree] = tree["spec"]["template"]["spec"]["containers"]
    return found


def names(tree: Tree) -> list[str]:
    return [each["name"] for each in containers(tree)]


def test_items_are_owned_by_their_keys_and_defaults_of_keys_count() -> None:
    made = applied(None, deployment({"name": "c", "ports": [{"containerPort": 80}]}))
    fields = made["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:template"]["f:spec"]["f:containers"]
    port: Tree = {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}}
    assert fields == {'k:{"name":"c"}': {".": {}, "f:name": {}, "f:ports": port}}


def test_each_manager_has_its_own_items() -> None:
    live = applied(applied(None, deployment({"name": "a", "image": "1"})), deployment({"name": "b", "image": "2"}), "y")
    assert names(live) == ["a", "b"]
    assert names(applied(live, deployment({"name": "c", "image": "3"}))) == ["b", "c"]


ORDERS = {
    "new ones last": (["a", "b"], ["c"], ["a", "b", "c"]),
    "in the order applied": (["a", "b"], ["b", "a"], ["b", "a"]),
    "strangers stay before what they stood before": (["a", "z", "b"], ["a", "c", "b"], ["a", "z", "c", "b"]),
    "strangers behind stay behind": (["a", "b", "z"], ["b", "a"], ["b", "z", "a"]),
}


@pytest.mark.parametrize("live, wanted, order", ORDERS.values(), ids=ORDERS)
def test_the_order_of_items(live: list[str], wanted: list[str], order: list[str]) -> None:
    there = applied(None, deployment(*({"name": name} for name in live)), "other")
    assert names(applied(there, deployment(*({"name": name} for name in wanted)))) == order


def test_an_atomic_list_is_one_field() -> None:
    live = applied(None, deployment({"name": "c", "args": ["-a", "-b"]}))
    with pytest.raises(ApplyConflict, match=r'containers\[name="c"\]\.args'):
        applied(live, deployment({"name": "c", "args": ["-a"]}), "y")


def test_an_atomic_struct_is_one_field() -> None:
    live = applied(None, deployment(selector={"matchLabels": {"a": "1"}}))
    with pytest.raises(ApplyConflict, match=r'conflict with "x": \.spec\.selector'):
        applied(live, deployment(selector={"matchLabels": {"a": "1", "b": "2"}}), "y")


def test_the_status_is_not_owned_by_who_applies_the_object_nor_the_spec_by_who_applies_the_status() -> None:
    both = {**deployment(replicas=1), "status": {"replicas": 3}}
    main, part = (applied(None, both, subresource=part)["metadata"]["managedFields"][0] for part in ("", "status"))
    assert main["fieldsV1"] == {"f:spec": {"f:replicas": {}}}
    assert (part["fieldsV1"], part["subresource"]) == ({"f:status": {"f:replicas": {}}}, "status")


def test_a_conflict_over_a_part_names_it() -> None:
    live = applied(None, {**deployment(), "status": {"replicas": 3}}, subresource="status")
    with pytest.raises(ApplyConflict, match=r'conflict with "x" with subresource "status": \.status\.replicas'):
        applied(live, {**deployment(), "status": {"replicas": 4}}, "y", subresource="status")


def thing_schema() -> StructuralSchema:
    return registry.custom_resources(registry.completed_definition(definitions.THINGS, None, NOW))[0].schema


def thing(**spec: Any) -> Tree:
    return {"apiVersion": "ex.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": spec}


def on_things(live: Tree | None, wanted: Tree, manager: str = "x") -> Tree:
    return FieldManager(("ex.com", "v1", "Thing"), NOW, schema=thing_schema()).apply(live, wanted, manager)


CUSTOM: dict[str, tuple[Tree, Tree, Tree | None]] = {
    "a set takes from both": ({"set": ["a"]}, {"set": ["b"]}, {"set": ["a", "b"]}),
    "a map takes from both": ({"parts": {"a": "1"}}, {"parts": {"b": "2"}}, {"parts": {"a": "1", "b": "2"}}),
    "keyed items merge": (
        {"named": [{"name": "n", "a": "1"}]},
        {"named": [{"name": "n", "b": "2"}]},
        {"named": [{"name": "n", "a": "1", "b": "2"}]},
    ),
    "an atomic map conflicts": ({"whole": {"a": "1"}}, {"whole": {"b": "1"}}, None),
    "free fields merge as deep as they are maps": (
        {"free": {"a": {"b": 1}}},
        {"free": {"a": {"c": 2}}},
        {"free": {"a": {"b": 1, "c": 2}}},
    ),
    "free lists conflict": ({"free": [1]}, {"free": [2]}, None),
    "a number is not its text": ({"either": 1}, {"either": "1"}, None),
}


@pytest.mark.parametrize("first, second, merged", CUSTOM.values(), ids=CUSTOM)
def test_custom_resources_merge_by_their_schema(first: Tree, second: Tree, merged: Tree | None) -> None:
    live = on_things(None, thing(**first))
    if merged is None:
        with pytest.raises(ApplyConflict):
            on_things(live, thing(**second), "y")
    else:
        assert on_things(live, thing(**second), "y")["spec"] == merged


def test_a_report_of_a_node_is_replaced_zone_list_and_all() -> None:
    custom = registry.custom_resources(registry.completed_definition(definitions.REPORTS, None, NOW))[1]
    head = {"apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopology", "metadata": {"name": "n"}}
    fields = FieldManager(("topology.node.k8s.io", "v1alpha2", "NodeResourceTopology"), NOW, schema=custom.schema)
    live: Tree | None = None
    for zones in ([{"name": "node-0", "type": "Node"}], [{"name": "node-1", "type": "Node"}]):
        live = fields.apply(live, {**head, "zones": zones}, "agent")
    assert live is not None
    assert [zone["name"] for zone in live["zones"]] == ["node-1"]
    assert live["metadata"]["managedFields"][0]["fieldsV1"] == {"f:zones": {}}
