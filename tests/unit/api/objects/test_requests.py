"""A pod's total request, and what the API server fills in, as the stock code computes them."""

from typing import Any

import pytest
from hypothesis import given

from numalign.api.decode import decode
from numalign.api.objects import pod, requests
from tests.strategies import api

Amounts = dict[str, str]


def container(name: str, **amounts: Amounts) -> dict[str, Any]:
    return {"name": name, "resources": amounts}


def sidecar(name: str, **amounts: Amounts) -> dict[str, Any]:
    return {**container(name, **amounts), "restartPolicy": "Always"}


def read(**spec: Any) -> pod.Pod:
    return decode.decode(pod.Pod, {"spec": spec})


def texts(amounts: pod.ResourceList) -> Amounts:
    return {name: str(amount) for name, amount in amounts.items()}


ONE, TWO, FIVE = {"cpu": "1"}, {"cpu": "2"}, {"cpu": "5"}
APPS = [container("a", requests={"cpu": "1", "memory": "1Gi"}), container("b", requests=TWO)]

EFFECTIVE: dict[str, tuple[dict[str, Any], Amounts]] = {
    "nothing": ({}, {}),
    "apps run together": ({"containers": APPS}, {"cpu": "3", "memory": "1Gi"}),
    "init runs before": (
        {"initContainers": [container("i", requests=FIVE)], "containers": APPS},
        {"cpu": "5", "memory": "1Gi"},
    ),
    "inits run one by one": ({"initContainers": [container("i", requests=ONE), container("j", requests=TWO)]}, TWO),
    "sidecar runs beside the apps": (
        {"initContainers": [sidecar("s", requests=TWO)], "containers": APPS},
        {"cpu": "5", "memory": "1Gi"},
    ),
    "sidecar runs beside a later init": (
        {
            "initContainers": [sidecar("s", requests=TWO), container("i", requests=FIVE)],
            "containers": APPS,
        },
        {"cpu": "7", "memory": "1Gi"},
    ),
    "sidecar not beside an earlier init": (
        {
            "initContainers": [container("i", requests=FIVE), sidecar("s", requests=ONE)],
            "containers": APPS,
        },
        {"cpu": "5", "memory": "1Gi"},
    ),
    "resource of an init only": (
        {"initContainers": [container("i", requests={"example.com/nic": "1"})], "containers": APPS},
        {"cpu": "3", "memory": "1Gi", "example.com/nic": "1"},
    ),
    "overhead is added": ({"containers": APPS, "overhead": {"cpu": "250m"}}, {"cpu": "3250m", "memory": "1Gi"}),
    "overhead of something else": ({"overhead": {"memory": "1Mi"}}, {"memory": "1Mi"}),
    "pod level wins, smaller or not": (
        {"containers": APPS, "resources": {"requests": {"cpu": "1", "hugepages-2Mi": "2Mi"}}, "overhead": ONE},
        {"cpu": "2", "memory": "1Gi", "hugepages-2Mi": "2Mi"},
    ),
    "pod level of other resources is ignored": (
        {"containers": APPS, "resources": {"requests": {"example.com/nic": "9"}}},
        {"cpu": "3", "memory": "1Gi"},
    ),
    "limits ask for nothing": ({"containers": [container("a", limits=FIVE)], "resources": {"limits": FIVE}}, {}),
}


@pytest.mark.parametrize("spec, total", EFFECTIVE.values(), ids=EFFECTIVE)
def test_effective(spec: dict[str, Any], total: Amounts) -> None:
    assert texts(requests.effective(read(**spec))) == total


def test_effective_limits_count_containers_alone() -> None:
    inits = [sidecar("s", limits=TWO), container("i", limits=ONE)]
    some = read(initContainers=inits, containers=[container("a", limits=FIVE)], overhead=ONE, resources={"limits": ONE})
    assert texts(requests.effective_limits(some)) == {"cpu": "7"}


CONTAINER_DEFAULTS: dict[str, tuple[dict[str, Amounts], Amounts]] = {
    "nothing": ({}, {}),
    "limits become requests": ({"limits": {"cpu": "2", "example.com/nic": "1"}}, {"cpu": "2", "example.com/nic": "1"}),
    "each by itself": ({"limits": {"cpu": "2", "memory": "1Gi"}, "requests": ONE}, {"cpu": "1", "memory": "1Gi"}),
    "zero is a request": ({"limits": TWO, "requests": {"cpu": "0"}}, {"cpu": "0"}),
    "requests do not become limits": ({"requests": ONE}, ONE),
}


@pytest.mark.parametrize("amounts, completed", CONTAINER_DEFAULTS.values(), ids=CONTAINER_DEFAULTS)
@pytest.mark.parametrize("kind", ["containers", "initContainers"])
def test_container_requests_default_to_limits(kind: str, amounts: dict[str, Amounts], completed: Amounts) -> None:
    (only,) = requests.defaulted(read(**{kind: [container("c", **amounts)]})).in_admission_order()
    assert texts(only.resources.requests) == completed
    assert texts(only.resources.limits) == amounts.get("limits", {})


LIMITED = container("a", limits={"cpu": "2", "memory": "1Gi", "hugepages-2Mi": "4Mi"})
UNLIMITED = container("b", requests=ONE)

POD_DEFAULTS: dict[str, tuple[list[dict[str, Any]], dict[str, Amounts], dict[str, Amounts]]] = {
    "nothing stated, nothing filled in": ([LIMITED], {}, {"requests": {}, "limits": {}}),
    "requests from containers": (
        [UNLIMITED],
        {"limits": {"cpu": "4", "memory": "8Gi"}},
        {"requests": {"cpu": "1", "memory": "8Gi"}, "limits": {"cpu": "4", "memory": "8Gi"}},
    ),
    "requests from limits": ([], {"limits": FIVE}, {"requests": FIVE, "limits": FIVE}),
    "limits where all containers have one": (
        [LIMITED],
        {"requests": {"cpu": "1", "memory": "2Gi"}},
        {
            "requests": {"cpu": "1", "memory": "2Gi", "hugepages-2Mi": "4Mi"},
            "limits": {"cpu": "2", "memory": "2Gi", "hugepages-2Mi": "4Mi"},
        },
    ),
    "no limit where one container has none": (
        [UNLIMITED, container("c", limits=TWO)],
        {"requests": ONE},
        {"requests": ONE, "limits": {}},
    ),
    "hugepages with a request get no limit from it": (
        [container("a")],
        {"requests": {"hugepages-2Mi": "2Mi"}},
        {"requests": {"hugepages-2Mi": "2Mi"}, "limits": {}},
    ),
}


@pytest.mark.parametrize("containers, stated, completed", POD_DEFAULTS.values(), ids=POD_DEFAULTS)
def test_pod_level_defaults(
    containers: list[dict[str, Any]], stated: dict[str, Amounts], completed: dict[str, Amounts]
) -> None:
    whole = requests.defaulted(read(containers=containers, resources=stated)).spec.resources
    assert {"requests": texts(whole.requests), "limits": texts(whole.limits)} == completed


@pytest.mark.parametrize("kind", ["requests", "limits"])
@pytest.mark.parametrize(
    "name, counts", [("cpu", True), ("memory", True), ("hugepages-1Gi", True), ("example.com/nic", False)]
)
def test_pod_level_resources_are_cpu_memory_and_hugepages(kind: str, name: str, counts: bool) -> None:
    assert requests.has_pod_level_resources(read(resources={kind: {name: "1"}})) is counts


def test_a_pod_without_them_has_no_pod_level_resources() -> None:
    assert not requests.has_pod_level_resources(read(containers=APPS))


@given(api.pods())
def test_defaulting_twice_changes_nothing(some: pod.Pod) -> None:
    once = requests.defaulted(some)
    assert requests.defaulted(once) == once


@given(api.pods())
def test_the_total_covers_every_app_container(some: pod.Pod) -> None:
    total = requests.effective(pod.Pod(spec=pod.PodSpec(containers=some.spec.containers)))
    for app in some.spec.containers:
        assert all(total[name] >= amount for name, amount in app.resources.requests.items())
