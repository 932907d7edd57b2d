"""Custom resources: served from the write that defines them, held to their schema, gone with their definition."""

import pytest

from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import CUSTOMRESOURCEDEFINITIONS as DEFINITIONS
from numalign.simulator.apiserver.verbs.api import Api, Patch
from tests.unit.simulator.apiserver import doors
from tests.unit.simulator.apiserver.definitions import OLD_WIDGETS, WIDGETS, widget, widgets


def defined() -> Api:
    api = doors.door()
    api.create(DEFINITIONS, widgets())
    return api


def test_a_definition_is_established_at_once() -> None:
    conditions = defined().get(DEFINITIONS, "widgets.example.com")["status"]["conditions"]
    assert {each["type"]: each["status"] for each in conditions} == {"NamesAccepted": "True", "Established": "True"}


def test_objects_are_pruned_and_completed() -> None:
    made = defined().create(WIDGETS, widget("w", colour="red"))
    assert made["spec"] == {"size": 3}


def test_objects_that_break_the_schema_are_refused() -> None:
    with pytest.raises(StatusError) as caught:
        defined().create(WIDGETS, widget("w", size="big"))
    assert caught.value.code == 422
    assert caught.value.message.startswith('Widget.example.com "w" is invalid: spec.size: Invalid value: "string"')


def test_an_undefined_resource_has_no_objects() -> None:
    with pytest.raises(StatusError) as caught:
        doors.door().list(WIDGETS)
    assert (caught.value.code, caught.value.message) == (404, "the server could not find the requested resource")


def test_versions_show_the_same_objects() -> None:
    api = defined()
    api.create(OLD_WIDGETS, widget("w", size=4))
    assert [(each["apiVersion"], each["spec"]) for each in api.list(WIDGETS).items] == [("example.com/v1", {"size": 4})]
    assert api.get(OLD_WIDGETS, "w", "default")["apiVersion"] == "example.com/v1alpha1"


def test_a_definition_takes_its_objects_along() -> None:
    door = doors.Door()
    door.api.create(DEFINITIONS, widgets())
    door.api.create(WIDGETS, widget("w"))
    changes = door.changes(WIDGETS)
    door.api.delete(DEFINITIONS, "widgets.example.com")
    assert [each.kind for each in changes] == ["DELETED"]
    with pytest.raises(StatusError):
        door.api.list(WIDGETS)


def test_the_generation_counts_everything_but_metadata_and_status() -> None:
    api = defined()
    api.create(WIDGETS, widget("w"))
    generations = [
        api.patch(WIDGETS, "w", "default", Patch("merge", body), subresource=part)["metadata"]["generation"]
        for body, part in (
            ({"metadata": {"labels": {"a": "b"}}}, ""),
            ({"status": {"size": 1}}, "status"),
            ({"spec": {"size": 9}}, ""),
        )
    ]
    assert generations == [1, 1, 2]


def test_a_scale_goes_by_the_paths_of_the_definition() -> None:
    api = defined()
    api.create(WIDGETS, widget("w"))
    scale = api.patch(WIDGETS, "w", "default", Patch("merge", {"spec": {"replicas": 8}}), subresource="scale")
    assert (scale["spec"], api.get(WIDGETS, "w", "default")["spec"]) == ({"replicas": 8}, {"size": 8})


def test_custom_objects_take_no_strategic_patches() -> None:
    api = defined()
    api.create(WIDGETS, widget("w"))
    with pytest.raises(StatusError) as caught:
        api.patch(WIDGETS, "w", "default", Patch("strategic", {"spec": {"size": 1}}))
    assert caught.value.code == 415


def test_an_apply_creates_and_owns() -> None:
    api = defined()
    wanted = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 5}}
    made = api.patch(WIDGETS, "w", "default", Patch("apply", wanted), manager="me")
    assert [each["manager"] for each in made["metadata"]["managedFields"]] == ["me"]
    assert api.patch(WIDGETS, "w", "default", Patch("apply", wanted), manager="me") == made
