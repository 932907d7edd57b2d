"""What services and controllers say about which pods belong together."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.api.decode import decode
from numalign.api.objects.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from numalign.placement.rules.pods.owners import Owners
from tests.unit.placement.rules.neighbours import pod

META = {"name": "web", "namespace": "default"}
REPLICA_SET = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"}
OWNED = pod({"app": "web", "hash": "1"}, owner=REPLICA_SET)


def service(selector: dict[str, str] | None, name: str = "web") -> Service:
    return decode.decode(Service, {"metadata": META | {"name": name}, "spec": {"selector": selector}})


def controller(kind: type[Any], selector: Any) -> Any:
    return decode.decode(kind, {"metadata": META, "spec": {"selector": selector}})


def test_labels_of_all_services_and_of_the_controller_are_asked_for() -> None:
    owners = Owners()
    owners.put_service(service({"app": "web"}))
    owners.put_service(service({"tier": "front"}, name="unrelated"))
    owners.put_controller(controller(ReplicaSet, {"matchLabels": {"hash": "1"}}))
    found = owners.selector(OWNED)
    assert found.matches({"app": "web", "hash": "1"})
    assert not found.matches({"app": "web"})
    assert not found.matches({"hash": "1"})


EMPTY = {
    "nothing known": lambda owners: None,
    "a service without a selector": lambda owners: owners.put_service(service(None)),
    "a service for all": lambda owners: owners.put_service(service({})),
    "a service for others": lambda owners: owners.put_service(service({"app": "db"})),
    "a controller of another kind": lambda owners: owners.put_controller(
        controller(StatefulSet, {"matchLabels": {"app": "web"}})
    ),
    "a controller without a selector": lambda owners: owners.put_controller(controller(ReplicaSet, None)),
}


@pytest.mark.parametrize("result", EMPTY.values(), ids=EMPTY)
def test_the_selector_is_empty_when_nothing_is_said(result: Any) -> None:
    owners = Owners()
    result(owners)
    assert owners.selector(OWNED).is_empty


def test_what_is_dropped_says_nothing_any_more() -> None:
    owners = Owners()
    owners.put_service(service({"app": "web"}))
    owners.put_controller(controller(ReplicaSet, {"matchLabels": {"hash": "1"}}))
    owners.drop_service("default", "web")
    owners.drop_controller(ReplicaSet, "default", "web")
    assert owners.selector(OWNED).is_empty


def test_replication_controllers_have_plain_selectors() -> None:
    owners = Owners()
    owners.put_controller(controller(ReplicationController, {"app": "web"}))
    asking = pod({"app": "web"}, owner={"apiVersion": "v1", "kind": "ReplicationController", "name": "web"})
    assert owners.selector(asking).matches({"app": "web"})
    assert not owners.selector(asking).matches({"app": "db"})
