"""Pods whose devices are allocated dynamically are left alone: by claims, or by what a DeviceClass stands for."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.api.decode import decode
from numalign.api.objects.workloads import DeviceClass
from numalign.placement.rules.clusterstate import ClusterState
from numalign.scheduler.choose import plugins
from numalign.scheduler.choose.plugins import LEFT_ALONE, DynamicResources
from tests.unit.scheduler import waitingpods

GPU = "example.com/gpu"


def device_class(name: str, resource: str = "") -> DeviceClass:
    return decode.decode(DeviceClass, {"metadata": {"name": name}, "spec": {"extendedResourceName": resource}})


def rule(*classes: DeviceClass) -> DynamicResources:
    shelf = plugins.shelf()
    for each in classes:
        shelf.put(each)
    return DynamicResources(shelf)


def requesting(resource: str, amount: int = 1, role: str = "containers") -> dict[str, Any]:
    return {role: [{"name": "c", "resources": {"requests": {"cpu": 1, resource: amount}}}]}


FAST = device_class("fast", GPU)
IMPLIED = "deviceclass.resource.kubernetes.io/fast"
PODS: dict[str, tuple[dict[str, Any], str]] = {
    "nothing of the kind": ({}, ""),
    "a resource of a device plugin": (requesting("example.com/nic"), ""),
    "a class's resource": (requesting(GPU), GPU),
    "by an init container": (requesting(GPU, role="initContainers"), GPU),
    "none of it": (requesting(GPU, 0), ""),
    "a class by its name": (requesting(IMPLIED), IMPLIED),
    "a class that is not there": (requesting(f"{IMPLIED}er"), ""),
}


@pytest.mark.parametrize("spec, resource", PODS.values(), ids=PODS)
def test_a_pod_that_asks_for_what_a_class_stands_for_is_refused_and_told_why(spec: Any, resource: str) -> None:
    pod, known = waitingpods.pod("p", spec), rule(FAST)
    found = known.prepare(pod, ClusterState())
    expected = plugins.BACKED.format(resource=resource, name="fast") if resource else None
    assert (found.reasons[0] if found is not None else None) == expected
    assert known.concerns(pod) == bool(resource)


def test_claims_are_told_first() -> None:
    spec = {**requesting(GPU), "resourceClaims": [{"name": "gpu", "resourceClaimName": "mine"}]}
    assert rule(FAST).prepare(waitingpods.pod("p", spec), ClusterState()) is LEFT_ALONE


def test_what_no_class_stands_for_any_more_is_a_resource_like_any_other() -> None:
    shelf = plugins.shelf()
    shelf.put(FAST)
    known, pod = DynamicResources(shelf), waitingpods.pod("p", requesting(GPU))
    assert known.concerns(pod)
    shelf.put(device_class("fast"))
    assert not known.concerns(pod)
