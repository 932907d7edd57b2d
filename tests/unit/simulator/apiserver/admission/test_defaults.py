"""What a real server made of objects when it took them in, and what we make of them."""

import re
from typing import Any

import pytest

from numalign.simulator.apiserver import admission
from numalign.simulator.apiserver.defaults import podspecs
from numalign.simulator.apiserver.storage import resources
from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.trees import Tree
from tests.unit.simulator.apiserver.admission import recorded
from tests.unit.simulator.apiserver.admission.recorded import World

DEFAULTS = recorded.load("defaults")
EMPTY: tuple[Any, ...] = (None, {}, [], "")
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
# Addresses and ports of the node are drawn, and of headless services the real one assumes two families of addresses.
DRAWN = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")


def completed(tree: Tree, world: World = recorded.THERE, **given: str) -> Tree:
    resource = recorded.KINDS[tree["apiVersion"], tree["kind"]]
    return admission.prepare(resource, recorded.arrived(tree, **given), None, world)


def solid(thing: Any) -> Any:
    """Without what is empty: the real server leaves some of that out by the tags of its structs."""
    if isinstance(thing, list):
        return [solid(each) for each in thing]
    if not isinstance(thing, dict):
        return thing
    return {key: value for key, value in ((key, solid(each)) for key, each in thing.items()) if value not in EMPTY}


def comparable(tree: Tree, written: Tree) -> Any:
    """Without what we leave out on purpose, or what the recording server did."""
    spec = tree.get("spec") or {}
    if tree["kind"] == "Service":
        spec = {key: value for key, value in spec.items() if key not in DRAWN}
        spec["ports"] = [{**port, "nodePort": "drawn"} for port in spec.get("ports") or ()]
    if tree["kind"] == "Node":
        spec = spec | {"taints": [taint for taint in spec.get("taints") or () if taint != NOT_READY]}
    if tree["kind"] == "Pod" and "serviceAccountName" not in written["spec"]:
        spec = {key: value for key, value in spec.items() if not key.startswith("serviceAccount")}
    return solid(tree | {"spec": spec})


@pytest.mark.parametrize("written, kept", DEFAULTS.values(), ids=DEFAULTS)
def test_an_object_is_completed_as_by_the_real_server(written: Any, kept: Any) -> None:
    given = {
        key: kept["metadata"][key] for key in ("uid", "creationTimestamp", "generation") if key in kept["metadata"]
    }
    assert comparable(completed(written, **given), written) == comparable(kept, written)


@pytest.mark.parametrize("kept", [kept for _, kept in DEFAULTS.values()], ids=DEFAULTS)
def test_completing_what_is_complete_changes_nothing(kept: Any) -> None:
    resource, kept = recorded.KINDS[kept["apiVersion"], kept["kind"]], podspecs.without_nulls(kept)
    again = admission.prepare(resource, kept | {"metadata": dict(kept["metadata"])}, kept, recorded.THERE)
    assert solid(again) == solid(kept)
    assert not admission.errors(resource, again, kept)


@pytest.mark.parametrize("addresses", [{}, {"clusterIPs": []}, {"clusterIPs": ["10.96.0.7"]}], ids=str)
def test_a_service_has_its_address_in_the_list_as_well(addresses: dict[str, list[str]]) -> None:
    spec = {"ports": [{"port": 80}], "clusterIP": "10.96.0.9"} | addresses
    kept = completed({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": spec})
    assert kept["spec"]["clusterIPs"] == ["10.96.0.9"]


def pod(**spec: Any) -> Tree:
    containers = [{"name": "c", "image": "b"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers} | spec}


def test_a_pod_runs_under_the_default_account_without_a_token() -> None:
    spec = completed(pod())["spec"]
    assert spec["serviceAccountName"] == spec["serviceAccount"] == "default"
    assert "volumes" not in spec


def test_a_container_shows_that_it_asks_for_nothing() -> None:
    spec = completed(pod())["spec"]
    assert spec["containers"][0]["resources"] == {}
    assert spec["securityContext"] == {}


def test_two_pods_of_one_spec_do_not_share_it() -> None:
    first, second = completed(pod()), completed(pod())
    first["spec"]["containers"][0]["image"] = "other"
    assert second["spec"]["containers"][0]["image"] == "b"


def priority_class(name: str, value: int, **more: Any) -> tuple[Any, Tree]:
    return resources.PRIORITYCLASSES, {"metadata": {"name": name}, "value": value} | more


PRIORITIES = {
    "no class": ({}, World(), ("", 0, "PreemptLowerPriority")),
    "a class of the system": (
        {"priorityClassName": "system-cluster-critical"},
        World(),
        ("system-cluster-critical", 2_000_000_000, "PreemptLowerPriority"),
    ),
    "the default class": (
        {},
        World(priority_class("all", 7, globalDefault=True, preemptionPolicy="Never")),
        ("all", 7, "Never"),
    ),
    "of two defaults the lower": (
        {},
        World(priority_class("b", 9, globalDefault=True), priority_class("a", 3, globalDefault=True)),
        ("a", 3, "PreemptLowerPriority"),
    ),
    "its own over the default": (
        {"priorityClassName": "b"},
        World(priority_class("b", 9), priority_class("a", 3, globalDefault=True)),
        ("b", 9, "PreemptLowerPriority"),
    ),
}


@pytest.mark.parametrize("spec, world, meaning", PRIORITIES.values(), ids=PRIORITIES)
def test_priority_comes_from_the_class(spec: Tree, world: World, meaning: tuple[str, int, str]) -> None:
    kept = completed(pod(**spec), world)["spec"]
    assert (kept.get("priorityClassName", ""), kept["priority"], kept["preemptionPolicy"]) == meaning


HEAVY: Tree = {
    "metadata": {"name": "heavy"},
    "handler": "heavy",
    "overhead": {"podFixed": {"cpu": "0.5", "memory": "1Gi"}},
    "scheduling": {"nodeSelector": {"kind": "vm"}, "tolerations": [{"key": "vm", "operator": "Exists"}]},
}
OF_CLASSES = World((resources.RUNTIMECLASSES, HEAVY))


def test_overhead_and_place_come_from_the_runtime_class() -> None:
    spec = completed(pod(runtimeClassName="heavy", nodeSelector={"zone": "a"}), OF_CLASSES)["spec"]
    assert spec["overhead"] == {"cpu": "500m", "memory": "1Gi"}
    assert spec["nodeSelector"] == {"zone": "a", "kind": "vm"}
    assert {"key": "vm", "operator": "Exists"} in spec["tolerations"]


@pytest.mark.parametrize(
    "spec, why",
    [
        ({"runtimeClassName": "light"}, 'pod rejected: RuntimeClass "light" not found'),
        ({"overhead": {"cpu": "1"}}, "pod rejected: Pod Overhead set without corresponding RuntimeClass"),
        ({"runtimeClassName": "heavy", "overhead": {"cpu": "1"}}, "pod rejected: Pod's Overhead doesn't match"),
        ({"runtimeClassName": "heavy", "nodeSelector": {"kind": "metal"}}, "conflict: runtimeClass.scheduling.nodeS"),
    ],
)
def test_a_pod_that_contradicts_its_runtime_class_is_rejected(spec: Tree, why: str) -> None:
    with pytest.raises(StatusError, match=re.escape(why)):
        completed(pod(**spec), OF_CLASSES)


def service(name: str, **spec: Any) -> Tree:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "uid": name}, "spec": spec}


def test_services_get_addresses_of_their_own() -> None:
    first = completed(service("a", type="NodePort", ports=[{"port": 80}]))
    second = completed(service("b", type="NodePort", ports=[{"port": 80}]), World((resources.SERVICES, first)))
    assert (first["spec"]["clusterIP"], second["spec"]["clusterIP"]) == ("10.96.0.1", "10.96.0.2")
    assert [each["spec"]["ports"][0]["nodePort"] for each in (first, second)] == [30000, 30001]


def test_an_update_that_leaves_the_address_out_keeps_it() -> None:
    first = completed(service("a", ports=[{"port": 80}]))
    other = World((resources.SERVICES, first), (resources.SERVICES, completed(service("b", clusterIP="10.96.0.7"))))
    again = admission.prepare(resources.SERVICES, service("a", ports=[{"port": 81}]), first, other)
    assert again["spec"]["clusterIP"] == first["spec"]["clusterIP"]
