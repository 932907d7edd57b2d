"""New objects: what the server gives them, and what it does not let them bring."""

import re

import pytest

from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import CONFIGMAPS, DEPLOYMENTS, NODES, PODS
from numalign.simulator.apiserver.verbs import create
from tests.unit.simulator.apiserver import doors


def test_a_new_object_gets_its_identity() -> None:
    metadata = doors.door().create(PODS, doors.pod("web"))["metadata"]
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", metadata.pop("uid"))
    assert metadata == {
        "name": "web",
        "namespace": "default",
        "resourceVersion": "2",
        "generation": 1,
        "creationTimestamp": "2026-11-16T05:00:00Z",
    }


BROUGHT = {"uid": "mine", "generation": 7, "selfLink": "/x", "deletionTimestamp": "2020-01-01T00:00:00Z"}


@pytest.mark.parametrize("field, value", BROUGHT.items(), ids=BROUGHT)
def test_what_the_server_gives_cannot_be_brought(field: str, value: object) -> None:
    made = doors.door().create(CONFIGMAPS, doors.named("a", "default", **{field: value}))
    assert made["metadata"].get(field) != value


def test_a_status_cannot_be_brought_except_by_nodes() -> None:
    api = doors.door()
    assert "status" not in api.create(DEPLOYMENTS, doors.deployment("d") | {"status": {"replicas": 9}})
    assert api.create(NODES, doors.named("n", "") | {"status": {"phase": "x"}})["status"] == {"phase": "x"}


def test_a_name_that_is_taken_is_refused() -> None:
    api = doors.door()
    api.create(DEPLOYMENTS, doors.deployment("d"))
    with pytest.raises(StatusError) as caught:
        api.create(DEPLOYMENTS, doors.deployment("d"))
    assert caught.value.status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'deployments.apps "d" already exists',
        "reason": "AlreadyExists",
        "details": {"name": "d", "group": "apps", "kind": "deployments"},
        "code": 409,
    }


def test_generated_names_end_in_five_letters_that_cannot_be_misread() -> None:
    api = doors.door()
    name = api.create(PODS, {"metadata": {"generateName": "web-"}})["metadata"]["name"]
    assert re.fullmatch(f"web-[{create.SUFFIX_ALPHABET}]{{5}}", name)


def test_a_long_base_leaves_room_for_the_letters() -> None:
    name = doors.door().create(PODS, {"metadata": {"generateName": "w" * 80}})["metadata"]["name"]
    assert len(name) == 63


def test_a_generated_name_that_is_taken_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter(["web-22222", "web-22222", "web-44444"])
    monkeypatch.setattr(create, "generated_name", lambda base, chance: next(drawn))
    api = doors.door()
    names = [api.create(PODS, {"metadata": {"generateName": "web-"}})["metadata"]["name"] for _ in range(2)]
    assert names == ["web-22222", "web-44444"]


REFUSED = {
    "no name": (
        {"metadata": {}},
        422,
        'Pod "" is invalid: metadata.name: Required value: name or generateName is required',
    ),
    "a version": (
        doors.named("a", resourceVersion="5"),
        500,
        "resourceVersion should not be set on objects to be created",
    ),
}


@pytest.mark.parametrize("tree, code, sentence", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_created_is_refused(tree: dict[str, object], code: int, sentence: str) -> None:
    with pytest.raises(StatusError) as caught:
        doors.door().create(PODS, tree)
    assert (caught.value.code, caught.value.message) == (code, sentence)


def test_a_dry_run_leaves_no_trace() -> None:
    door = doors.Door()
    changes = door.changes(PODS)
    made = door.api.create(PODS, doors.pod("web"), dry_run=True)
    assert "resourceVersion" not in made["metadata"]
    assert (changes, door.api.list(PODS).items) == ([], [])


def test_the_caller_s_tree_stays_the_caller_s() -> None:
    api, tree = doors.door(), doors.pod("web")
    api.create(PODS, tree)["spec"]["nodeName"] = "changed"
    assert tree == doors.pod("web")
    assert "nodeName" not in api.get(PODS, "web", "default")["spec"]
