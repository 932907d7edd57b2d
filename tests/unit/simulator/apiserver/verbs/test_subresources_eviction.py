"""Evictions: the budget's status decides, and is charged at once."""

import pytest

from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import PODDISRUPTIONBUDGETS, PODS
from numalign.simulator.apiserver.verbs.api import Api
from numalign.simulator.trees import Tree
from tests.unit.simulator.apiserver import doors

READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
UNREADY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}
ALLOWS = {"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1}
FORBIDS = {"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1}


def cluster(pod_status: Tree, *budgets: Tree, **spec: object) -> Api:
    api = doors.door()
    api.create(PODS, doors.pod("web", node="node-1", labels={"app": "web"}))
    api.update(PODS, doors.pod("web", labels={"app": "web"}) | {"status": pod_status}, subresource="status")
    for number, status in enumerate(budgets):
        selector = {"selector": {"matchLabels": {"app": "web"}}, **spec}
        api.create(PODDISRUPTIONBUDGETS, doors.named(f"b{number}") | {"spec": selector})
        api.update(PODDISRUPTIONBUDGETS, doors.named(f"b{number}") | {"status": status}, subresource="status")
    return api


def is_leaving(api: Api) -> bool:
    return "deletionTimestamp" in api.get(PODS, "web", "default")["metadata"]


GOES = {
    "without a budget": cluster(READY),
    "where the budget allows it": cluster(READY, ALLOWS),
    "unready, where the healthy are enough": cluster(UNREADY, FORBIDS),
    "unready, by policy": cluster(UNREADY, FORBIDS | {"currentHealthy": 0}, unhealthyPodEvictionPolicy="AlwaysAllow"),
}


@pytest.mark.parametrize("api", GOES.values(), ids=GOES)
def test_a_pod_goes(api: Api) -> None:
    api.evict("web", "default", grace=7)
    assert is_leaving(api)


def test_a_pod_says_why_it_goes() -> None:
    api = cluster(READY)
    version = api.get(PODS, "web", "default")["metadata"]["resourceVersion"]
    api.evict("web", "default")
    pod = api.get(PODS, "web", "default")
    assert [(each["type"], each.get("reason")) for each in pod["status"]["conditions"]] == [
        ("Ready", None),
        ("DisruptionTarget", "EvictionByEvictionAPI"),
    ]
    assert int(pod["metadata"]["resourceVersion"]) == int(version) + 2


def test_a_pod_that_has_not_started_goes_against_any_budget() -> None:
    api = cluster({"phase": "Pending"}, FORBIDS)
    api.evict("web", "default")
    assert is_leaving(api)


def test_an_eviction_is_charged_to_the_budget() -> None:
    api = cluster(READY, ALLOWS)
    api.evict("web", "default")
    status = api.get(PODDISRUPTIONBUDGETS, "b0", "default")["status"]
    assert (status["disruptionsAllowed"], status["disruptedPods"]) == (0, {"web": "2026-11-16T05:00:00Z"})
    assert [each["reason"] for each in status["conditions"]] == ["InsufficientPods"]


VIOLATION = "Cannot evict pod as it would violate the pod's disruption budget."
STAYS = {
    "no disruption allowed": (
        cluster(READY, FORBIDS),
        429,
        VIOLATION,
        "The disruption budget b0 needs 1 healthy pods and has 1 currently",
    ),
    "not yet looked at": (
        cluster(READY, ALLOWS | {"observedGeneration": 0}),
        429,
        VIOLATION,
        "The disruption budget b0 is still being processed by the server.",
    ),
    "two budgets": (
        cluster(READY, ALLOWS, ALLOWS),
        500,
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
        "",
    ),
}


@pytest.mark.parametrize("api, code, sentence, cause", STAYS.values(), ids=STAYS)
def test_a_pod_stays(api: Api, code: int, sentence: str, cause: str) -> None:
    with pytest.raises(StatusError) as caught:
        api.evict("web", "default")
    causes = [each["message"] for each in (caught.value.details or {}).get("causes", ())]
    assert (caught.value.code, caught.value.message, "".join(causes)) == (code, sentence, cause)
    assert not is_leaving(api)


def test_a_dry_run_charges_nothing() -> None:
    api = cluster(READY, ALLOWS)
    api.evict("web", "default", dry_run=True)
    assert api.get(PODDISRUPTIONBUDGETS, "b0", "default")["status"] == ALLOWS
    assert not is_leaving(api)
