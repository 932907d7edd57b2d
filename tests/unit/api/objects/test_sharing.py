"""Objects come out of sharing as they went in, and what is equal in them is one object."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from numalign.api.decode import decode
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod, PodStatus
from numalign.api.objects.sharing import SharedNodes, SharedPods


def pod(name: str, node: str = "", cpu: str = "1", **status: Any) -> Pod:
    amounts = {"cpu": cpu, "memory": "1Gi"}
    containers = [{"name": "main", "image": "app:v1", "resources": {"requests": amounts, "limits": amounts}}]
    meta = {"name": name, "namespace": "default", "uid": name, "generateName": "web-", "labels": {"app": "web"}}
    spec = {"containers": containers, "nodeName": node, "volumes": [{"name": f"token-{name}"}]}
    return decode.decode(Pod, {"metadata": meta, "spec": spec, "status": status})


def condition(kind: str) -> dict[str, str]:
    return {"type": kind, "status": "True", "lastTransitionTime": "2026-11-16T00:00:01Z"}


def running(at: str) -> dict[str, Any]:
    return {"name": "main", "started": True, "state": {"running": {"startedAt": at}}}


@pytest.mark.parametrize("other", [pod("b"), pod("b", node="n1"), pod("b", cpu="2"), pod("b", phase="Running")])
def test_what_comes_out_is_what_went_in(other: Pod) -> None:
    sharing = SharedPods()
    assert [sharing.shared(pod("a")), sharing.shared(other)] == [pod("a"), other]


def test_pods_of_a_kind_share_containers_labels_and_owners_but_not_their_volumes() -> None:
    sharing = SharedPods()
    one, two = sharing.shared(pod("a", node="n1")), sharing.shared(pod("b", node="n2"))
    assert one.spec.containers is two.spec.containers
    assert one.metadata.labels is two.metadata.labels
    assert (one.spec.volumes[0].name, two.spec.volumes[0].name) == ("token-a", "token-b")


def test_other_amounts_under_the_same_name_are_kept_apart() -> None:
    sharing = SharedPods()
    one, two = sharing.shared(pod("a")), sharing.shared(pod("b", cpu="2"))
    assert one.spec.containers != two.spec.containers


def test_pods_that_take_turns_with_sizes_share_with_those_of_their_size() -> None:
    sharing = SharedPods()
    sizes = ("1", "2", "1", "2", "1")
    small, large, *again = (sharing.shared(pod(f"p{at}", cpu=cpu)).spec.containers for at, cpu in enumerate(sizes))
    assert [each is small for each in again] == [True, False, True]
    assert again[1] is large


def test_conditions_that_decide_nothing_are_dropped_and_times_of_running_containers() -> None:
    kinds = ["Ready", "PodScheduled", "PodResizePending", "DisruptionTarget", "Initialized"]
    told = pod("a", conditions=list(map(condition, kinds)), containerStatuses=[running("2026-11-16T00:00:01Z")])
    status = SharedPods().shared(told).status
    assert [each.type for each in status.conditions] == ["PodScheduled", "PodResizePending", "DisruptionTarget"]
    assert status.container_statuses[0].has_started


def test_running_replicas_share_their_container_statuses() -> None:
    sharing = SharedPods()
    told = (pod(name, containerStatuses=[running(f"2026-11-16T00:00:0{name}Z")]) for name in "12")
    one, two = map(sharing.shared, told)
    assert one.status.container_statuses is two.status.container_statuses


def test_a_pod_without_status_stays_without() -> None:
    assert SharedPods().shared(pod("a")).status == PodStatus()


def node(name: str, *images: str) -> Node:
    listed = [{"names": [image], "sizeBytes": 5} for image in images]
    conditions = [{"type": "Ready", "status": "True"}]
    return decode.decode(Node, {"metadata": {"name": name}, "status": {"images": listed, "conditions": conditions}})


def test_nodes_share_images_and_conditions() -> None:
    sharing = SharedNodes()
    one, two = sharing.shared(node("a", "x", "y")), sharing.shared(node("b", "y"))
    assert (one, two) == (node("a", "x", "y"), node("b", "y"))
    assert one.status.images[1] is two.status.images[0]
    assert one.status.conditions is two.status.conditions


def test_a_node_with_an_unchanged_status_keeps_its_list() -> None:
    sharing = SharedNodes()
    first = sharing.shared(node("a", "x"))
    again = sharing.shared(structs.replace(node("a", "x")))
    assert again.status.images is first.status.images
    assert sharing.shared(node("a", "z")).status.images == node("a", "z").status.images
