"""Field selectors: the few fields of each kind, and the real refusal of all others."""

import pytest

from numalign.simulator.apiserver.storage import resources
from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import Resource
from tests.unit.simulator.apiserver import doors

CASES = {
    "metadata.name=a": ["a"],
    "metadata.name!=a": ["b"],
    "spec.nodeName=node-1": ["b"],
    "spec.nodeName=": ["a"],
    "spec.nodeName!=node-1": ["a"],
    "spec.host=node-1": ["b"],
    "spec.hostNetwork=false": ["a", "b"],
    "status.phase=Running": ["b"],
    "status.phase!=Running,metadata.namespace=default": ["a"],
    "metadata.namespace==other": [],
    "status.podIP=10.0.0.1": ["b"],
}


@pytest.mark.parametrize("fields, names", CASES.items(), ids=CASES)
def test_pods_are_found_by_their_fields(fields: str, names: list[str]) -> None:
    api = doors.door()
    api.create(resources.PODS, doors.pod("a"))
    api.create(resources.PODS, doors.pod("b", node="node-1"))
    status = {"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}
    api.update(resources.PODS, doors.pod("b") | {"status": status}, subresource="status")
    assert [tree["metadata"]["name"] for tree in api.list(resources.PODS, fields=fields).items] == names


COMPLAINTS = {
    "pods": (resources.PODS, "spec.foo=b", "field label not supported: spec.foo"),
    "no term": (resources.PODS, "foo", "invalid selector: 'foo'; can't understand 'foo'"),
    "nodes": (resources.NODES, "status.x=b", "field label not supported: status.x"),
    "deployments": (
        resources.DEPLOYMENTS,
        "spec.foo=b",
        '"spec.foo" is not a known field selector: only "metadata.name", "metadata.namespace"',
    ),
    "events": (resources.EVENTS, "foo=1", "field label not supported: foo"),
    "jobs": (resources.JOBS, "spec.x=1", 'field label "spec.x" not supported for Job'),
}


@pytest.mark.parametrize("resource, fields, sentence", COMPLAINTS.values(), ids=COMPLAINTS)
def test_other_fields_are_refused(resource: Resource, fields: str, sentence: str) -> None:
    with pytest.raises(StatusError) as caught:
        doors.door().list(resource, fields=fields)
    assert (caught.value.code, caught.value.message) == (400, sentence)


def test_nodes_are_found_by_being_schedulable() -> None:
    api = doors.door()
    api.create(resources.NODES, doors.named("a", ""))
    api.create(resources.NODES, doors.named("b", "") | {"spec": {"unschedulable": True}})
    found = api.list(resources.NODES, fields="spec.unschedulable=true")
    assert [tree["metadata"]["name"] for tree in found.items] == ["b"]


def test_events_are_found_by_either_group_s_names() -> None:
    api = doors.door()
    api.create(resources.EVENTS, doors.named("e") | {"involvedObject": {"kind": "Pod", "name": "web"}, "reason": "Why"})
    old = api.list(resources.EVENTS, fields="involvedObject.name=web,reason=Why").items
    new = api.list(resources.NEW_EVENTS, fields="regarding.kind=Pod").items
    assert [tree["metadata"]["name"] for tree in old + new] == ["e", "e"]
