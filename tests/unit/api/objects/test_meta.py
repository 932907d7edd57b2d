"""Metadata that every object carries: names for messages, the owner that controls it."""

import pytest

from numalign.api.decode import decode
from numalign.api.objects import meta

NAMES = {
    "namespaced": (meta.ObjectMeta(name="web", namespace="default"), "default/web"),
    "cluster-wide": (meta.ObjectMeta(name="worker-7"), "worker-7"),
    "nothing known": (meta.ObjectMeta(), ""),
}


@pytest.mark.parametrize("metadata, name", NAMES.values(), ids=NAMES)
def test_messages_name_the_object_by_namespace_and_name(metadata: meta.ObjectMeta, name: str) -> None:
    assert metadata.full_name == name


def test_the_controller_is_the_owner_that_says_so() -> None:
    helper = meta.OwnerReference(kind="Node", name="n", uid="1")
    controller = meta.OwnerReference(kind="ReplicaSet", name="web-5", uid="2", controller=True)
    assert meta.ObjectMeta(owner_references=(helper, controller)).controller is controller
    assert meta.ObjectMeta(owner_references=(helper,)).controller is None


WRITTEN = b"""{
  "name": "web-5-x", "generateName": "web-5-", "namespace": "default", "uid": "u",
  "resourceVersion": "12", "generation": 3, "managedFields": [{"manager": "x"}],
  "creationTimestamp": null, "deletionTimestamp": "2026-11-01T10:00:00Z", "deletionGracePeriodSeconds": 30,
  "labels": {"app": "web"}, "annotations": {"note": ""}, "finalizers": ["example.com/wait"],
  "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5", "uid": "r", "controller": true}]
}"""


def test_it_is_read_from_the_wire() -> None:
    owner = meta.OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="web-5", uid="r", controller=True)
    assert decode.decode(meta.ObjectMeta, WRITTEN) == meta.ObjectMeta(
        name="web-5-x",
        generate_name="web-5-",
        namespace="default",
        uid="u",
        resource_version="12",
        generation=3,
        deletion_timestamp="2026-11-01T10:00:00Z",
        deletion_grace_period_seconds=30,
        labels={"app": "web"},
        annotations={"note": ""},
        owner_references=(owner,),
        finalizers=("example.com/wait",),
    )
