"""The door inside the process: subscriptions, events in two groups, and trees that belong to their holders."""

import pytest

from numalign.simulator.apiserver.storage.resources import CONFIGMAPS, EVENTS, NEW_EVENTS, PODS
from numalign.simulator.apiserver.verbs.api import Change
from tests.unit.simulator.apiserver import doors


def test_a_subscriber_hears_what_is_there_then_every_change_in_order() -> None:
    api = doors.door()
    api.create(PODS, doors.pod("a"))
    seen: list[Change] = []
    api.subscribe(PODS, seen.append)
    api.bind("a", "default", "node-1")
    api.delete(PODS, "a", "default", grace=0)
    assert [(each.kind, each.key, each.version) for each in seen] == [
        ("ADDED", ("default", "a"), 2),
        ("MODIFIED", ("default", "a"), 3),
        ("MODIFIED", ("default", "a"), 4),
        ("DELETED", ("default", "a"), 5),
    ]


def test_a_change_shows_before_and_after() -> None:
    door = doors.Door()
    door.api.create(PODS, doors.pod("a"))
    changes = door.changes(PODS)
    door.api.bind("a", "default", "node-1")
    (change,) = changes
    assert change.old is not None
    assert ("nodeName" in change.old["spec"], change.tree["spec"]["nodeName"]) == (False, "node-1")


def test_a_cancelled_subscription_hears_nothing() -> None:
    api = doors.door()
    seen: list[Change] = []
    api.subscribe(PODS, seen.append).cancel()
    api.create(PODS, doors.pod("a"))
    assert seen == []


def test_a_handler_that_writes_is_told_not_to() -> None:
    api = doors.door()

    def handler(change: Change) -> None:
        api.create(CONFIGMAPS, doors.named("c"))

    api.subscribe(PODS, handler)
    with pytest.raises(RuntimeError, match="must not write"):
        api.create(PODS, doors.pod("a"))


def test_an_event_has_other_names_in_its_younger_group() -> None:
    api = doors.door()
    api.create(
        NEW_EVENTS, doors.named("e") | {"note": "hello", "regarding": {"name": "web"}, "reportingController": "c"}
    )
    old, new = api.get(EVENTS, "e", "default"), api.get(NEW_EVENTS, "e", "default")
    assert (old["apiVersion"], old["message"], old["involvedObject"]) == ("v1", "hello", {"name": "web"})
    assert (new["apiVersion"], new["note"], new["reportingController"]) == ("events.k8s.io/v1", "hello", "c")


def test_versions_are_counted_over_all_resources() -> None:
    api = doors.door()
    versions = [
        api.create(resource, doors.named("x"))["metadata"]["resourceVersion"] for resource in (PODS, CONFIGMAPS, EVENTS)
    ]
    assert versions == ["2", "3", "4"]


def test_the_same_seed_gives_the_same_identities() -> None:
    one, other = (doors.door().create(PODS, {"metadata": {"generateName": "x-"}})["metadata"] for _ in range(2))
    assert one == other
