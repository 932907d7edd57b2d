"""Changed objects: parts are kept apart, only the latest may be replaced, and nothing happens where nothing changed."""

from typing import Any

import pytest

from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import CONFIGMAPS, DEPLOYMENTS, LEASES, NAMESPACES, PODS
from numalign.simulator.apiserver.verbs.api import Api, Patch
from numalign.simulator.trees import Tree
from tests.unit.simulator.apiserver import doors


def deployed() -> tuple[Api, Tree]:
    api = doors.door()
    return api, api.create(DEPLOYMENTS, doors.deployment("d"))


def merge(body: Tree) -> Patch:
    return Patch("merge", body)


def test_a_stale_version_is_a_conflict() -> None:
    api, old = deployed()
    api.patch(DEPLOYMENTS, "d", "default", merge({"spec": {"replicas": 3}}))
    with pytest.raises(StatusError) as caught:
        api.update(DEPLOYMENTS, old)
    assert (caught.value.code, caught.value.reason) == (409, "Conflict")
    assert caught.value.message == (
        'Operation cannot be fulfilled on deployments.apps "d": the object has been modified; please apply your '
        "changes to the latest version and try again"
    )


def test_without_a_version_the_last_one_wins() -> None:
    api, _ = deployed()
    assert api.update(DEPLOYMENTS, doors.deployment("d", replicas=7))["spec"]["replicas"] == 7


@pytest.mark.parametrize("version", ["", "1"], ids=["of no version", "of an old version"])
def test_another_uid_is_a_conflict(version: str) -> None:
    api, old = deployed()
    old["metadata"] |= {"uid": "somebody-else", "resourceVersion": version}
    with pytest.raises(StatusError) as caught:
        api.update(DEPLOYMENTS, old)
    assert caught.value.code == 409
    assert "Precondition failed: UID in precondition: somebody-else" in caught.value.message


def test_nothing_happens_where_nothing_changed() -> None:
    door = doors.Door()
    old = door.api.create(DEPLOYMENTS, doors.deployment("d"))
    changes = door.changes(DEPLOYMENTS)
    assert door.api.update(DEPLOYMENTS, old) == old
    assert changes == []


def test_a_write_of_the_object_leaves_its_status_and_the_reverse() -> None:
    api, old = deployed()
    api.update(DEPLOYMENTS, old | {"status": {"replicas": 2}, "spec": {"replicas": 9}}, subresource="status")
    changed = api.update(DEPLOYMENTS, doors.deployment("d", replicas=5) | {"status": {"replicas": 77}})
    assert (changed["spec"]["replicas"], changed["status"]) == (5, {"replicas": 2})


def test_the_generation_counts_changes_of_the_spec_only() -> None:
    api, _ = deployed()
    generations = [
        api.update(DEPLOYMENTS, doors.deployment("d", replicas=3))["metadata"]["generation"],
        api.update(DEPLOYMENTS, doors.deployment("d", replicas=3) | {"status": {}}, subresource="status")["metadata"][
            "generation"
        ],
        api.patch(DEPLOYMENTS, "d", "default", merge({"metadata": {"labels": {"a": "b"}}}))["metadata"]["generation"],
        api.patch(DEPLOYMENTS, "d", "default", merge({"spec": {"paused": True}}))["metadata"]["generation"],
    ]
    assert generations == [2, 2, 2, 3]


LABELS = {"pods take labels with their status": (PODS, {"a": "b"}), "deployments do not": (DEPLOYMENTS, None)}


@pytest.mark.parametrize("resource, labels", LABELS.values(), ids=LABELS)
def test_labels_beside_a_status(resource: Any, labels: object) -> None:
    api = doors.door()
    api.create(resource, doors.named("x") | {"spec": {}})
    changed = api.update(resource, doors.named("x", labels={"a": "b"}) | {"status": {"x": "y"}}, subresource="status")
    assert (changed["metadata"].get("labels"), changed["status"]) == (labels, {"x": "y"})


def test_identity_cannot_be_changed() -> None:
    api, old = deployed()
    given = doors.deployment("d")
    given["metadata"] |= {"creationTimestamp": "2000-01-01T00:00:00Z", "generation": 99, "generateName": "x"}
    kept = api.update(DEPLOYMENTS, given)["metadata"]
    assert (kept["creationTimestamp"], kept["generation"]) == (old["metadata"]["creationTimestamp"], 1)


def test_an_update_creates_a_lease_but_no_config_map() -> None:
    api = doors.door()
    assert api.update(LEASES, doors.named("l"))["metadata"]["name"] == "l"
    with pytest.raises(StatusError) as caught:
        api.update(CONFIGMAPS, doors.named("c"))
    assert (caught.value.code, caught.value.message) == (404, 'configmaps "c" not found')


def test_the_last_finalizer_takes_a_deleted_object_with_it() -> None:
    door = doors.Door()
    door.api.create(CONFIGMAPS, doors.named("c", finalizers=["a/b", "c/d"]))
    door.api.delete(CONFIGMAPS, "c", "default")
    changes = door.changes(CONFIGMAPS)
    for left in (["a/b"], []):
        door.api.patch(CONFIGMAPS, "c", "default", merge({"metadata": {"finalizers": left}}))
    assert [change.kind for change in changes] == ["MODIFIED", "DELETED"]


def test_a_deleted_object_takes_no_new_finalizers() -> None:
    api = doors.door()
    api.create(PODS, doors.pod("f", finalizers=["a.b/c"]))
    api.delete(PODS, "f", "default")
    with pytest.raises(StatusError) as caught:
        api.patch(PODS, "f", "default", merge({"metadata": {"finalizers": ["a.b/c", "d.e/f"]}}))
    assert caught.value.message == (
        'Pod "f" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being '
        'deleted, found new finalizers []string{"d.e/f"}'
    )


def test_a_namespace_goes_when_it_is_finalized() -> None:
    api = doors.door()
    api.create(NAMESPACES, {"metadata": {"name": "t"}, "spec": {"finalizers": ["kubernetes"]}})
    assert api.delete(NAMESPACES, "t")["status"] == {"phase": "Terminating"}
    assert len(api.list(NAMESPACES).items) == 1
    api.update(NAMESPACES, {"metadata": {"name": "t"}, "spec": {}}, subresource="finalize")
    assert api.list(NAMESPACES).items == []
