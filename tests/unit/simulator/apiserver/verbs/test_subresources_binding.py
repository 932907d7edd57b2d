"""A pod gets its node once; what stands against it is said in the real server's words."""

from typing import Any

import pytest

from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import PODS
from numalign.simulator.apiserver.verbs import subresources
from numalign.simulator.apiserver.verbs.api import Api
from numalign.simulator.trees import Tree
from tests.unit.simulator.apiserver import doors


def with_pod(**metadata: Any) -> Api:
    api = doors.door()
    api.create(PODS, doors.pod("web", **metadata))
    return api


def test_a_bound_pod_has_its_node_and_says_that_it_is_scheduled() -> None:
    api = with_pod()
    api.bind("web", "default", "node-1")
    pod = api.get(PODS, "web", "default")
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
    assert pod["spec"]["nodeName"] == "node-1"
    assert pod["status"]["conditions"] == [scheduled | {"lastTransitionTime": "2026-11-16T05:00:00Z"}]
    assert pod["metadata"]["generation"] == 1


def test_labels_and_annotations_of_the_binding_go_over_to_the_pod() -> None:
    api = with_pod(labels={"a": "1", "b": "2"})
    body = doors.named("web", labels={"b": "3"}, annotations={"c": "4"}) | {"target": {"name": "node-1"}}
    subresources.bind(api.state, subresources.read_binding(body, "web", "default"))
    metadata = api.get(PODS, "web", "default")["metadata"]
    assert (metadata["labels"], metadata["annotations"]) == ({"a": "1", "b": "3"}, {"c": "4"})


def bound(api: Api) -> None:
    api.bind("web", "default", "node-1")


def leaving(api: Api) -> None:
    bound(api)
    api.delete(PODS, "web", "default")


def gated(api: Api) -> None:
    pod = api.get(PODS, "web", "default")
    pod["spec"]["schedulingGates"] = [{"name": "example.com/gate"}]
    api.update(PODS, pod)


CONFLICT = 'Operation cannot be fulfilled on pods/binding "web": pod web '
AGAINST = {
    "bound": (bound, f'{CONFLICT}is already assigned to node "node-1"'),
    "leaving": (leaving, f"{CONFLICT}is being deleted, cannot be assigned to a host"),
    "gated": (gated, f"{CONFLICT}has non-empty .spec.schedulingGates"),
}


@pytest.mark.parametrize("prepare, sentence", AGAINST.values(), ids=AGAINST)
def test_what_stands_against_a_binding_is_a_conflict(prepare: object, sentence: str) -> None:
    api = with_pod()
    prepare(api)  # type: ignore[operator]
    with pytest.raises(StatusError) as caught:
        api.bind("web", "default", "node-2")
    assert (caught.value.code, caught.value.message) == (409, sentence)
    assert caught.value.details == {"name": "web", "kind": "pods/binding"}


def test_a_pod_that_is_gone_is_not_found() -> None:
    with pytest.raises(StatusError) as caught:
        doors.door().bind("web", "default", "node-1")
    assert (caught.value.code, caught.value.message) == (404, 'pods "web" not found')


def test_another_pod_of_the_same_name_is_not_bound() -> None:
    with pytest.raises(StatusError) as caught:
        with_pod().bind("web", "default", "node-1", uid="another")
    assert "UID in precondition: another" in caught.value.message


BODIES = {
    "another name": (
        doors.named("other") | {"target": {"name": "n"}},
        400,
        "name in URL does not match name in Binding object",
    ),
    "no target": (doors.named("web"), 500, "target.name: Required value"),
    "not a node": (
        doors.named("web") | {"target": {"kind": "Pod", "name": "n"}},
        500,
        'target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"',
    ),
}


@pytest.mark.parametrize("body, code, sentence", BODIES.values(), ids=BODIES)
def test_bodies_that_are_no_binding(body: Tree, code: int, sentence: str) -> None:
    with pytest.raises(StatusError) as caught:
        subresources.read_binding(body, "web", "default")
    assert (caught.value.code, caught.value.message) == (code, sentence)


def test_a_dry_run_binds_nothing() -> None:
    api = with_pod()
    api.bind("web", "default", "node-1", dry_run=True)
    assert "nodeName" not in api.get(PODS, "web", "default")["spec"]
