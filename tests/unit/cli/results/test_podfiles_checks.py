"""What the API server would refuse never reaches the model."""

from typing import Any

import pytest

from numalign.api.decode import decode
from numalign.api.objects import requests
from numalign.api.objects.pod import Pod
from numalign.cli.results import podfiles

C0 = "spec.containers[0].resources"


def problems(spec: dict[str, Any], **metadata: Any) -> list[podfiles.Problem]:
    written = {"metadata": {"name": "web", "namespace": "default", **metadata}, "spec": spec}
    return list(podfiles.problems(requests.defaulted(decode.decode(Pod, written))))


def with_resources(resources: dict[str, Any]) -> dict[str, Any]:
    return {"containers": [{"name": "c", "resources": resources}]}


RESOURCES = {
    "negative": ({"requests": {"cpu": "-1"}}, f"{C0}.requests[cpu]", "-1 is negative"),
    "above the limit": (
        {"requests": {"memory": "2Gi"}, "limits": {"memory": "1Gi"}},
        f"{C0}.requests[memory]",
        "2Gi is more than the limit of 1Gi",
    ),
    "half a device": ({"limits": {"a.com/x": "0.5"}}, f"{C0}.limits[a.com/x]", "500m is not a whole number"),
    "a device without limit": ({"requests": {"a.com/x": 1}}, f"{C0}.requests[a.com/x]", "needs a limit"),
    "fewer devices than the limit": (
        {"requests": {"a.com/x": 1}, "limits": {"a.com/x": 2}},
        f"{C0}.requests[a.com/x]",
        "1 differs from the limit of 2",
    ),
    "a page and a half": (
        {"limits": {"cpu": 1, "hugepages-2Mi": "3Mi"}},
        f"{C0}.limits[hugepages-2Mi]",
        "3Mi is not a multiple of the page size",
    ),
    "hugepages alone": ({"limits": {"hugepages-2Mi": "2Mi"}}, C0, "hugepages need cpu or memory"),
    "hugepages of no size": ({"limits": {"cpu": 1, "hugepages-x": 1}}, f"{C0}.limits[hugepages-x]", "no page size"),
    "hugepages of size zero": ({"limits": {"cpu": 1, "hugepages-0": 1}}, f"{C0}.limits[hugepages-0]", "no page size"),
    "a resource of no domain": ({"limits": {"gpu": 1}}, f"{C0}.limits[gpu]", "not a resource"),
    "a resource of two slashes": ({"limits": {"a/b/c": 1}}, f"{C0}.limits[a/b/c]", "not a resource"),
}


@pytest.mark.parametrize("resources, field, why", RESOURCES.values(), ids=RESOURCES)
def test_bad_amounts_are_named_by_their_field(resources: dict[str, Any], field: str, why: str) -> None:
    found = problems(with_resources(resources))[0]
    assert found.field == field
    assert why in found.why


GOOD = {
    "guaranteed": {"limits": {"cpu": "1500m", "memory": "1Gi", "a.com/x": 2}},
    "burstable": {"requests": {"cpu": 1}, "limits": {"cpu": 2}},
    "hugepages": {"limits": {"memory": "1Gi", "hugepages-1Gi": "2Gi"}},
    "nothing": {},
    "zero": {"limits": {"cpu": 0, "a.com/x": 0}},
    "native with a domain": {"requests": {"kubernetes.io/thing": "1.5"}},
    "storage": {"requests": {"ephemeral-storage": "1Gi"}},
}


@pytest.mark.parametrize("resources", GOOD.values(), ids=GOOD)
def test_good_amounts_pass(resources: dict[str, Any]) -> None:
    assert problems(with_resources(resources)) == []


@pytest.mark.parametrize("name", ["", "A", "a_b", "-a", "a-", "a..b", "x" * 254, "ü", "a\n"])
def test_names_of_pods_follow_the_rules(name: str) -> None:
    assert [found.field for found in problems(with_resources({}), name=name)] == ["metadata.name"]


@pytest.mark.parametrize("namespace", ["A", "a.b", "x" * 64])
def test_names_of_namespaces_follow_the_rules(namespace: str) -> None:
    assert [found.field for found in problems(with_resources({}), namespace=namespace)] == ["metadata.namespace"]


SPECS = {
    "no container": ({}, "spec.containers", "a pod has one container or more"),
    "no name": ({"containers": [{}]}, "spec.containers[0].name", "cannot be a container's name"),
    "a name twice": (
        {"containers": [{"name": "a"}], "initContainers": [{"name": "a"}]},
        "spec.containers[0].name",
        "spec.initContainers[0] has the same name",
    ),
    "negative overhead": (
        {"containers": [{"name": "a"}], "overhead": {"cpu": "-1"}},
        "spec.overhead[cpu]",
        "-1 is negative",
    ),
    "devices for the whole pod": (
        {"containers": [{"name": "a"}], "resources": {"limits": {"a.com/x": 1}}},
        "spec.resources.limits[a.com/x]",
        "not a resource of whole pods",
    ),
    "more in containers than in the pod": (
        {
            "containers": [{"name": n, "resources": {"requests": {"cpu": 2}}} for n in ("a", "b")],
            "resources": {"requests": {"cpu": 3}},
        },
        "spec.resources.requests[cpu]",
        "3 is less than the containers' 4 together",
    ),
    "a container limit above the pod's": (
        {
            "containers": [{"name": "a", "resources": {"requests": {"cpu": 1}, "limits": {"cpu": 4}}}],
            "resources": {"requests": {"cpu": 3}, "limits": {"cpu": 3}},
        },
        "spec.containers[0].resources.limits[cpu]",
        "4 is more than the pod's limit of 3",
    ),
}


@pytest.mark.parametrize("spec, field, why", SPECS.values(), ids=SPECS)
def test_bad_specs_are_named_by_their_field(spec: dict[str, Any], field: str, why: str) -> None:
    found = problems(spec)[0]
    assert found.field == field
    assert why in found.why
