"""What a recording never contains: environments, arguments, and annotations of others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from numalign.kube.resources import PODS, Resource
from numalign.scheduler.record import entries
from numalign.scheduler.snapshot.snapshot import RESOURCES

SECRET = "hunter2"
CONTAINER: dict[str, Any] = {
    "name": "main",
    "image": "registry.example/app:1",
    "command": ["sh", "-c", SECRET],
    "args": [f"--token={SECRET}"],
    "env": [{"name": "PASSWORD", "value": SECRET}, {"name": SECRET, "value": "x"}],
    "lifecycle": {"preStop": {"exec": {"command": [SECRET]}}},
    "livenessProbe": {"httpGet": {"port": 80, "httpHeaders": [{"name": "Authorization", "value": SECRET}]}},
    "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}},
}
METADATA: dict[str, Any] = {
    "name": "hostile",
    "namespace": "default",
    "uid": "u",
    "annotations": {
        "example.com/token": SECRET,
        "kubectl.kubernetes.io/last-applied-configuration": json.dumps({"env": SECRET}),
        f"kubernetes.io.example.com/{SECRET}": "x",
    },
    "managedFields": [{"manager": SECRET, "fieldsV1": {"f:x": {SECRET: {}}}}],
}
POD_SPEC: dict[str, Any] = {
    "containers": [CONTAINER],
    "initContainers": [CONTAINER | {"name": "init"}],
    "hostAliases": [{"ip": "1.2.3.4", "hostnames": [SECRET]}],
    "securityContext": {"seLinuxOptions": {"level": SECRET}},
}
STATUS: dict[str, Any] = {
    "phase": "Running",
    "containerStatuses": [
        {
            "name": "main",
            "state": {"terminated": {"exitCode": 1, "message": SECRET}},
            "lastState": {"terminated": {"exitCode": 1, "message": SECRET}},
        }
    ],
}


def hostile(resource: Resource[Any]) -> bytes:
    """An object with a secret wherever such objects have free text."""
    spec: dict[str, Any] = {}
    if resource is PODS:
        spec = POD_SPEC
    elif resource.plural in ("replicasets", "statefulsets", "replicationcontrollers"):
        spec = {"template": {"metadata": METADATA, "spec": POD_SPEC}}
    written = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": METADATA, "spec": spec}
    return json.dumps(written | ({"status": STATUS} if resource is PODS else {})).encode()


def line(resource: Resource[Any], thing: Any) -> bytes:
    """What a recording has of the object."""
    return entries.lines([entries.ObjectSeen(1.0, resource.plural, entries.discreet(thing))])


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda each: each.plural)
def test_no_object_of_a_recording_has_a_secret(resource: Resource[Any]) -> None:
    written = line(resource, resource.read(hostile(resource)))
    assert b"hostile" in written
    assert SECRET.encode() not in written


def test_a_recorded_pod_has_what_decisions_read() -> None:
    pod = PODS.read(hostile(PODS))
    entry = entries.read(line(PODS, pod))
    assert isinstance(entry, entries.ObjectSeen)
    again = PODS.read(bytes(entry.object))
    assert again.spec == pod.spec
    assert again.status == pod.status
