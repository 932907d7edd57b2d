"""Patches of all kinds on their way to a write: who is patched, and what a patch must not change."""

import pytest

from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import CONFIGMAPS, CUSTOMRESOURCEDEFINITIONS, DEPLOYMENTS
from numalign.simulator.apiserver.verbs.api import Api, Patch
from tests.unit.simulator.apiserver import definitions, doors


def with_map() -> Api:
    api = doors.door()
    api.create(CONFIGMAPS, doors.named("c") | {"data": {"a": "1"}})
    return api


APPLIED = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"b": "2"}}
PATCHES = {
    "json": Patch("json", [{"op": "add", "path": "/data/b", "value": "2"}]),
    "json bytes": Patch("json", b'[{"op":"add","path":"/data/b","value":"2"}]'),
    "merge": Patch("merge", {"data": {"b": "2"}}),
    "merge bytes": Patch("merge", b'{"data":{"b":"2"}}'),
    "strategic": Patch("strategic", {"data": {"b": "2"}}),
    "apply": Patch("apply", APPLIED),
    "apply YAML": Patch("apply", b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {b: '2'}\n"),
}


@pytest.mark.parametrize("patch", PATCHES.values(), ids=PATCHES)
def test_every_kind_of_patch_changes_the_object(patch: Patch) -> None:
    api = with_map()
    api.patch(CONFIGMAPS, "c", "default", patch, manager="me")
    assert api.get(CONFIGMAPS, "c", "default")["data"] == {"a": "1", "b": "2"}


REFUSED = {
    "another name": (
        {"metadata": {"name": "z"}},
        400,
        "the name of the object (z) does not match the name on the URL (c)",
    ),
    "another uid": (
        {"metadata": {"uid": "1"}},
        422,
        'ConfigMap "c" is invalid: metadata.uid: Invalid value: "1": field is immutable',
    ),
    "an old version": (
        {"metadata": {"resourceVersion": "1"}},
        409,
        'Operation cannot be fulfilled on configmaps "c": the object has been modified; please apply your changes to '
        "the latest version and try again",
    ),
}


@pytest.mark.parametrize("body, code, sentence", REFUSED.values(), ids=REFUSED)
def test_what_a_patch_must_not_change(body: dict[str, object], code: int, sentence: str) -> None:
    with pytest.raises(StatusError) as caught:
        with_map().patch(CONFIGMAPS, "c", "default", Patch("merge", body))
    assert (caught.value.code, caught.value.message) == (code, sentence)


def test_a_patch_of_nothing_is_not_found() -> None:
    with pytest.raises(StatusError) as caught:
        doors.door().patch(CONFIGMAPS, "c", "default", Patch("merge", {}))
    assert caught.value.code == 404


def test_an_apply_that_would_take_a_field_away_names_its_owner() -> None:
    api = with_map()
    api.patch(CONFIGMAPS, "c", "default", Patch("apply", APPLIED), manager="first")
    taking = APPLIED | {"data": {"b": "3"}}
    with pytest.raises(StatusError) as caught:
        api.patch(CONFIGMAPS, "c", "default", Patch("apply", taking), manager="second")
    assert (caught.value.code, caught.value.reason) == (409, "Conflict")
    assert (caught.value.details or {})["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "first"', "field": ".data.b"}
    ]
    forced = api.patch(CONFIGMAPS, "c", "default", Patch("apply", taking), manager="second", force=True)
    assert forced["data"]["b"] == "3"


def test_a_write_after_an_apply_keeps_the_books() -> None:
    api = with_map()
    api.patch(CONFIGMAPS, "c", "default", Patch("apply", APPLIED), manager="first")
    changed = api.patch(CONFIGMAPS, "c", "default", Patch("merge", {"data": {"b": "9"}}), manager="editor")
    owners = [each["manager"] for each in changed["metadata"]["managedFields"] if "f:b" in str(each["fieldsV1"])]
    assert owners == ["editor"]


def test_a_scale_is_patched_through_its_own_shape() -> None:
    api = doors.door()
    api.create(DEPLOYMENTS, doors.deployment("d"))
    scale = api.patch(DEPLOYMENTS, "d", "default", Patch("merge", {"spec": {"replicas": 6}}), subresource="scale")
    assert (scale["kind"], scale["spec"], scale["status"]) == (
        "Scale",
        {"replicas": 6},
        {"replicas": 0, "selector": "app=d"},
    )
    assert api.get(DEPLOYMENTS, "d", "default")["metadata"]["generation"] == 2


def test_a_scale_below_nothing_is_refused() -> None:
    api = doors.door()
    api.create(DEPLOYMENTS, doors.deployment("d"))
    with pytest.raises(StatusError) as caught:
        api.update(DEPLOYMENTS, doors.named("d") | {"spec": {"replicas": -5}}, subresource="scale")
    assert caught.value.message == (
        'Scale.autoscaling "d" is invalid: spec.replicas: Invalid value: -5: must be greater than or equal to 0'
    )


def test_a_custom_object_takes_no_strategic_patch_whether_it_is_there_or_not() -> None:
    api = doors.door()
    api.create(CUSTOMRESOURCEDEFINITIONS, definitions.widgets())
    with pytest.raises(StatusError) as caught:
        api.patch(definitions.WIDGETS, "nobody", "default", Patch("strategic", {}))
    assert caught.value.code == 415
