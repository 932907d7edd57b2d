"""lightkube against an embedded cluster: typed objects read, written, patched and watched, reports of topology too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import msgspec
import pytest

from tests.embedded import clusters, peers
from tests.embedded.clusters import Up

lightkube, types = peers.imported("lightkube"), peers.imported("lightkube.types")
core, apps = peers.imported("lightkube.resources.core_v1"), peers.imported("lightkube.resources.apps_v1")
models, metas = peers.imported("lightkube.models.core_v1"), peers.imported("lightkube.models.meta_v1")
generic = peers.imported("lightkube.generic_resource")
workloads, scales = peers.imported("lightkube.models.apps_v1"), peers.imported("lightkube.models.autoscaling_v1")
NAMESPACE = "lightkube"
NODES = ["node-0", "node-1", "node-2", "node-3"]
REPORTS = ("topology.node.k8s.io", "v1alpha2", "NodeResourceTopology", "noderesourcetopologies")
Report = generic.create_global_resource(*REPORTS)


@pytest.fixture(scope="module")
def client(embedded: Up) -> Iterator[Any]:
    config = lightkube.KubeConfig.from_file(str(embedded.kubeconfig))
    with lightkube.Client(config=config, namespace=NAMESPACE, field_manager="lightkube") as made:
        made.create(core.Namespace(metadata=metas.ObjectMeta(name=NAMESPACE)))
        yield made


def metadata(name: str) -> Any:
    return metas.ObjectMeta(name=name, namespace=NAMESPACE, labels={"app": name})


def pod(name: str, **spec: str) -> Any:
    containers = [models.Container(name="main", image="a")]
    return core.Pod(metadata=metadata(name), spec=models.PodSpec(containers=containers, **spec))


def deployment(name: str, replicas: int) -> Any:
    template = models.PodTemplateSpec(metadata=metas.ObjectMeta(labels={"app": name}), spec=pod(name).spec)
    selector = metas.LabelSelector(matchLabels={"app": name})
    return apps.Deployment(
        metadata=metadata(name), spec=workloads.DeploymentSpec(replicas=replicas, selector=selector, template=template)
    )


def test_nodes_are_complete_enough_for_its_types(client: Any) -> None:
    nodes = list(client.list(core.Node))
    assert [node.metadata.name for node in nodes] == NODES
    assert {node.status.capacity["cpu"] for node in nodes} == {"32"}


def test_lists_come_in_pages(client: Any) -> None:
    assert [node.metadata.name for node in client.list(core.Node, chunk_size=3)] == NODES


def test_a_pod_is_created_read_patched_and_deleted(client: Any) -> None:
    made = client.create(pod("one", schedulerName="nobody"))
    change = {"metadata": {"labels": {"tier": "front"}}}
    patched = client.patch(core.Pod, "one", change, patch_type=types.PatchType.MERGE)
    assert [each.metadata.name for each in client.list(core.Pod, labels={"tier": "front"})] == ["one"]
    assert patched.metadata.uid == made.metadata.uid == client.get(core.Pod, "one").metadata.uid
    client.delete(core.Pod, "one", grace_period=0)
    with pytest.raises(lightkube.ApiError, match='pods "one" not found') as caught:
        client.get(core.Pod, "one")
    assert (caught.value.status.code, caught.value.status.reason) == (404, "NotFound")


def test_a_replacement_of_an_old_version_conflicts(client: Any) -> None:
    old = client.create(core.ConfigMap(metadata=metadata("settings"), data={"a": "1"}))
    client.patch(core.ConfigMap, "settings", {"data": {"a": "2"}})
    with pytest.raises(lightkube.ApiError, match="the object has been modified"):
        client.replace(old)


def test_server_side_apply(client: Any) -> None:
    wanted = core.ConfigMap(metadata=metas.ObjectMeta(name="applied", namespace=NAMESPACE), data={"a": "1"})
    assert client.apply(wanted).data == {"a": "1"}
    wanted.data = {"a": "2"}
    with pytest.raises(lightkube.ApiError, match=r'conflict with "lightkube": \.data\.a'):
        client.apply(wanted, field_manager="other")
    assert client.apply(wanted, field_manager="other", force=True).data == {"a": "2"}


def test_a_deployment_becomes_available_and_scales(client: Any) -> None:
    client.create(deployment("web", replicas=1))
    client.wait(apps.Deployment, "web", for_conditions=["Available"])
    scale = client.get(apps.Deployment.Scale, "web")
    scale.spec = scales.ScaleSpec(replicas=0)
    assert client.replace(scale, "web").spec.replicas == 0
    client.delete(apps.Deployment, "web", cascade=types.CascadeType.FOREGROUND)
    clusters.awaited(lambda: not list(client.list(apps.Deployment)))


def test_a_watch_shows_every_change_in_order(client: Any) -> None:
    made = client.create(core.ConfigMap(metadata=metadata("watched")))
    client.patch(core.ConfigMap, "watched", {"data": {"a": "1"}})
    client.delete(core.ConfigMap, "watched")
    start = made.metadata.resourceVersion
    with closing(client.watch(core.ConfigMap, labels={"app": "watched"}, resource_version=start)) as events:
        seen = [next(events)[0] for _ in range(2)]
    assert seen == ["MODIFIED", "DELETED"]


def test_reports_of_topology_are_generic_resources(client: Any) -> None:
    report = client.get(Report, "node-0")
    assert [zone["name"] for zone in report["zones"]] == ["node-0", "node-1"]
    patched = client.patch(Report, "node-3", {"metadata": {"labels": {"a": "b"}}}, patch_type=types.PatchType.MERGE)
    assert [each.metadata.name for each in client.list(Report, labels={"a": "b"})] == [patched.metadata.name]


def test_a_binding_is_made_although_its_types_cannot_read_the_answer(client: Any) -> None:
    client.create(pod("bound", schedulerName="nobody"))
    binding = core.Pod.Binding(metadata=metadata("bound"), target=models.ObjectReference(kind="Node", name="node-1"))
    with pytest.raises(msgspec.ValidationError, match="missing required field `target`"):
        client.create(binding, "bound")
    assert client.get(core.Pod, "bound").spec.nodeName == "node-1"
