import json
from typing import Any

import pytest

from numalign.simulator.apiserver.http import discovery
from numalign.simulator.apiserver.storage import resources
from numalign.simulator.apiserver.storage.resources import Resource

CUSTOM = [
    Resource("demo.example.com", version, "widgets", "Widget", namespaced=True, short_names=("wd",), custom=True)
    for version in ("v1alpha1", "v1", "v2beta1", "v10", "odd")
]
SERVED = [*resources.BUILT_IN, *CUSTOM]
V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
V2BETA1 = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
KUBECTL = f"{V2},{V2BETA1},application/json"


def read(path: str, accept: str = "application/json") -> Any:
    document = discovery.document(path, accept, SERVED)
    return None if document is None else json.loads(document.body)


ACCEPTS = {KUBECTL: "v2", f"{V2BETA1},application/json": "v2beta1", f"application/json,{V2}": "", "*/*": "", "": ""}


@pytest.mark.parametrize("accept, version", ACCEPTS.items(), ids=ACCEPTS)
def test_the_client_says_which_discovery_it_wants(accept: str, version: str) -> None:
    assert discovery.aggregation(accept) == version


def test_aggregated_discovery_tells_everything_at_once() -> None:
    groups = {each["metadata"]["name"]: each for each in read("/apis", KUBECTL)["items"]}
    deployments = next(each for each in groups["apps"]["versions"][0]["resources"] if each["resource"] == "deployments")
    assert deployments["shortNames"] == ["deploy"]
    assert [each["subresource"] for each in deployments["subresources"]] == ["scale", "status"]
    assert deployments["subresources"][0]["responseKind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}


def test_core_is_a_group_without_a_name() -> None:
    items = read("/api", KUBECTL)["items"]
    assert [each["metadata"] for each in items] == [{}]
    assert {each["resource"] for each in items[0]["versions"][0]["resources"]} >= {"pods", "nodes", "events"}


def test_the_content_type_says_what_was_agreed_on() -> None:
    document = discovery.document("/apis", KUBECTL, SERVED)
    assert document is not None
    assert document.content_type == V2


def test_the_best_version_comes_first() -> None:
    group = read("/apis/demo.example.com")
    assert [each["version"] for each in group["versions"]] == ["v10", "v1", "v2beta1", "v1alpha1", "odd"]
    assert group["preferredVersion"]["version"] == "v10"


def test_old_clients_walk_from_list_to_list() -> None:
    assert read("/api")["versions"] == ["v1"]
    assert "batch" in [each["name"] for each in read("/apis")["groups"]]
    assert read("/api/v1")["groupVersion"] == "v1"
    assert read("/apis/apps/v1")["groupVersion"] == "apps/v1"


ENTRIES = {
    "pods/eviction": {"group": "policy", "version": "v1", "kind": "Eviction", "verbs": ["create"]},
    "pods/binding": {"kind": "Binding", "verbs": ["create"]},
    "pods/status": {"kind": "Pod", "verbs": ["get", "patch", "update"]},
    "replicationcontrollers/scale": {"group": "autoscaling", "kind": "Scale"},
}


@pytest.mark.parametrize("name, wanted", ENTRIES.items(), ids=ENTRIES)
def test_a_subresource_names_its_own_kind(name: str, wanted: dict[str, Any]) -> None:
    entry = next(each for each in read("/api/v1")["resources"] if each["name"] == name)
    assert entry | wanted == entry


@pytest.mark.parametrize("path", ["/apis/nope", "/apis/apps/v9", "/api/v9", "/apis/apps/v1/deployments"])
def test_where_nothing_is_there_is_no_document(path: str) -> None:
    assert discovery.document(path, "", SERVED) is None


def test_reviews_can_only_be_created() -> None:
    entries = read("/apis/authorization.k8s.io/v1")["resources"]
    assert {tuple(each["verbs"]) for each in entries} == {("create",)}


def test_the_tag_changes_with_the_document() -> None:
    before, same = discovery.document("/apis", V2, SERVED), discovery.document("/apis", V2, SERVED)
    after = discovery.document("/apis", V2, resources.BUILT_IN)
    assert before == same
    assert before is not None
    assert after is not None
    assert before.etag != after.etag
