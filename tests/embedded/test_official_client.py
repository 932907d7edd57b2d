"""The official Python client against an embedded cluster: typed objects and custom ones, patches, watches, refusals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.embedded import peers
from tests.embedded.clusters import Up

client, config, watch = (peers.imported(f"kubernetes.{name}") for name in ("client", "config", "watch"))
ApiException = peers.imported("kubernetes.client.exceptions").ApiException
NAMESPACE = "official"
REPORTS = ("topology.node.k8s.io", "v1alpha2", "noderesourcetopologies")


@pytest.fixture(scope="module")
def core(embedded: Up) -> Iterator[Any]:
    with config.new_client_from_config(str(embedded.kubeconfig)) as made:
        api = client.CoreV1Api(made)
        api.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=NAMESPACE)))
        yield api


def metadata(name: str) -> Any:
    return client.V1ObjectMeta(name=name, labels={"app": name})


def pod(name: str) -> Any:
    spec = client.V1PodSpec(containers=[client.V1Container(name="main", image="a")], scheduler_name="nobody")
    return client.V1Pod(metadata=metadata(name), spec=spec)


def deployment(name: str) -> Any:
    containers = [client.V1Container(name="main", image="a")]
    template = client.V1PodTemplateSpec(metadata=metadata(name), spec=client.V1PodSpec(containers=containers))
    selector = client.V1LabelSelector(match_labels={"app": name})
    return client.V1Deployment(
        metadata=metadata(name), spec=client.V1DeploymentSpec(replicas=1, selector=selector, template=template)
    )


def test_nodes_are_complete_enough_for_its_types(core: Any) -> None:
    nodes = core.list_node().items
    assert [node.metadata.name for node in nodes] == ["node-0", "node-1", "node-2", "node-3"]
    assert {node.status.node_info.operating_system for node in nodes} == {"linux"}


def test_a_pod_is_created_read_patched_and_deleted(core: Any) -> None:
    made = core.create_namespaced_pod(NAMESPACE, pod("one"))
    core.patch_namespaced_pod("one", NAMESPACE, {"metadata": {"labels": {"tier": "front"}}})
    found = core.list_namespaced_pod(NAMESPACE, label_selector="tier=front").items
    assert [each.metadata.uid for each in found] == [made.metadata.uid]
    core.delete_namespaced_pod("one", NAMESPACE, grace_period_seconds=0)
    with pytest.raises(ApiException) as caught:
        core.read_namespaced_pod("one", NAMESPACE)
    assert (caught.value.status, json.loads(caught.value.body)["message"]) == (404, 'pods "one" not found')


def test_a_replacement_of_an_old_version_conflicts(core: Any) -> None:
    old = core.create_namespaced_config_map(NAMESPACE, client.V1ConfigMap(metadata=metadata("settings")))
    core.patch_namespaced_config_map("settings", NAMESPACE, {"data": {"a": "1"}})
    with pytest.raises(ApiException) as caught:
        core.replace_namespaced_config_map("settings", NAMESPACE, old)
    assert (caught.value.status, caught.value.reason) == (409, "Conflict")


def test_a_deployment_is_watched_until_it_is_available(core: Any) -> None:
    apps = client.AppsV1Api(core.api_client)
    apps.create_namespaced_deployment(NAMESPACE, deployment("web"))
    with closing(watch.Watch().stream(apps.list_namespaced_deployment, NAMESPACE, timeout_seconds=20)) as events:
        available = next(event["object"] for event in events if event["object"].status.available_replicas)
    assert (available.metadata.name, available.status.available_replicas) == ("web", 1)
    scaled = apps.patch_namespaced_deployment_scale("web", NAMESPACE, {"spec": {"replicas": 0}})
    assert scaled.spec.replicas == 0
    assert apps.delete_namespaced_deployment("web", NAMESPACE)["status"] == "Success"


def test_a_watch_shows_every_change_in_order(core: Any) -> None:
    start = core.list_namespaced_config_map(NAMESPACE).metadata.resource_version
    core.create_namespaced_config_map(NAMESPACE, client.V1ConfigMap(metadata=metadata("watched")))
    core.patch_namespaced_config_map("watched", NAMESPACE, {"data": {"a": "1"}})
    core.delete_namespaced_config_map("watched", NAMESPACE)
    chosen: dict[str, Any] = {"label_selector": "app=watched", "resource_version": start, "timeout_seconds": 2}
    with closing(watch.Watch().stream(core.list_namespaced_config_map, NAMESPACE, **chosen)) as events:
        seen = [next(events)["type"] for _ in range(3)]
    assert seen == ["ADDED", "MODIFIED", "DELETED"]


def test_reports_of_topology_are_custom_objects(core: Any) -> None:
    custom = client.CustomObjectsApi(core.api_client)
    report = custom.get_cluster_custom_object(*REPORTS, "node-0")
    assert [zone["name"] for zone in report["zones"]] == ["node-0", "node-1"]
    made = {"apiVersion": "/".join(REPORTS[:2]), "kind": "NodeResourceTopology", "metadata": {"name": "mine"}}
    custom.create_cluster_custom_object(*REPORTS, made | {"zones": []})
    custom.patch_cluster_custom_object(*REPORTS, "mine", {"topologyPolicies": ["None"]})
    names = [each["metadata"]["name"] for each in custom.list_cluster_custom_object(*REPORTS)["items"]]
    assert names == ["mine", "node-0", "node-1", "node-2", "node-3"]
    assert custom.delete_cluster_custom_object(*REPORTS, "mine")["status"] == "Success"


def test_a_report_that_does_not_fit_is_refused_with_causes(core: Any) -> None:
    made = {"apiVersion": "/".join(REPORTS[:2]), "kind": "NodeResourceTopology", "metadata": {"name": "bad"}}
    with pytest.raises(ApiException) as caught:
        client.CustomObjectsApi(core.api_client).create_cluster_custom_object(*REPORTS, made)
    (cause,) = json.loads(caught.value.body)["details"]["causes"]
    assert (caught.value.status, cause["field"], cause["message"]) == (422, "zones", "Required value")


def test_a_binding_is_made_although_its_types_cannot_read_the_answer(core: Any) -> None:
    core.create_namespaced_pod(NAMESPACE, pod("bound"))
    target = client.V1ObjectReference(kind="Node", name="node-1")
    with pytest.raises(ValueError, match="target"):
        core.create_namespaced_pod_binding(
            "bound", NAMESPACE, client.V1Binding(metadata=metadata("bound"), target=target)
        )
    assert core.read_namespaced_pod("bound", NAMESPACE).spec.node_name == "node-1"
