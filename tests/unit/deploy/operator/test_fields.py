"""What of an object in the cluster differs from the wanted one, and whose it is."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest

from numalign.api.decode import decode
from numalign.deploy.operator import fields
from numalign.deploy.operator.objects import Live

WANTED: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "a", "labels": {"l": "1"}},
    "spec": {
        "replicas": 2,
        "template": {
            "spec": {"containers": [{"name": "c", "image": "i:1", "ports": [{"containerPort": 80}], "env": []}]}
        },
    },
}
CONTAINER = 'k:{"name":"c"}'
PORT = 'k:{"containerPort":80,"protocol":"TCP"}'
OWN: dict[str, Any] = {
    "f:metadata": {"f:labels": {"f:l": {}}},
    "f:spec": {
        "f:replicas": {},
        "f:template": {
            "f:spec": {
                "f:containers": {
                    CONTAINER: {
                        ".": {},
                        "f:name": {},
                        "f:image": {},
                        "f:ports": {PORT: {".": {}, "f:containerPort": {}}},
                    }
                }
            }
        },
    },
}


def live(tree: dict[str, Any] | None = None, own: Any = OWN, **others: Any) -> Live:
    """With defaults of the server, and what other managers own."""
    made = copy.deepcopy(WANTED if tree is None else tree)
    made["metadata"] |= {"resourceVersion": "7", "uid": "u"}
    made["spec"]["revisionHistoryLimit"] = 10
    for container in made["spec"]["template"]["spec"]["containers"]:
        container.pop("env", None)
        container["imagePullPolicy"] = "Always"
    entries = [{"manager": fields.MANAGER, "operation": "Apply", "fieldsV1": own}] if own is not None else []
    entries += [{"manager": name, "operation": "Update", "fieldsV1": owned} for name, owned in others.items()]
    return decode.decode(Live, msgspec.json.encode(made | {"metadata": made["metadata"] | {"managedFields": entries}}))


def changed(path: str, value: Any) -> dict[str, Any]:
    made = copy.deepcopy(WANTED)
    *steps, last = [int(each) if each.isdigit() else each for each in path.split(".")]
    place: Any = made
    for step in steps:
        place = place[step]
    place[last] = value
    return made


CONTAINERS = "spec.template.spec.containers"


def test_an_object_with_the_servers_defaults_does_not_differ() -> None:
    assert not fields.difference(WANTED, live())


@pytest.mark.parametrize(
    "tree",
    [
        changed("spec.replicas", 3),
        changed(f"{CONTAINERS}.0.image", "evil"),
        changed(f"{CONTAINERS}.0.ports", []),
        changed("metadata.labels", {}),
        changed(CONTAINERS, [{"name": "other", "image": "i:1"}]),
    ],
)
def test_a_value_that_somebody_changed_is_applied_again(tree: dict[str, Any]) -> None:
    assert fields.difference(WANTED, live(tree)).apply


def test_a_field_that_is_no_longer_wanted_is_applied_away() -> None:
    assert fields.difference(WANTED, live(own={**OWN, "f:spec": {**OWN["f:spec"], "f:paused": {}}})).apply


def test_an_object_that_was_never_applied_or_lost_its_managers_is_applied() -> None:
    assert fields.difference(WANTED, live(own=None)).apply


def test_what_others_added_to_the_content_goes_and_metadata_and_status_stay() -> None:
    tree = changed("spec.paused", True)
    tree["spec"]["template"]["spec"]["containers"] += [{"name": "a/b", "image": "x"}, {"name": "d", "image": "x"}]
    tree["metadata"]["annotations"] = {"theirs": "x"}
    more: Any = {'k:{"name":"a/b"}': {".": {}, "f:image": {}}, 'k:{"name":"d"}': {".": {}}}
    other = {
        "f:metadata": {"f:annotations": {"f:theirs": {}}},
        "f:spec": {"f:paused": {}, "f:template": {"f:spec": {"f:containers": more}}},
        "f:status": {"f:replicas": {}},
    }
    found = live(tree, kubectl=other)
    difference = fields.difference(WANTED, found)
    assert not difference.apply
    assert fields.removal(difference.strangers, found) == [
        {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
        {"op": "remove", "path": "/spec/template/spec/containers/2"},
        {"op": "remove", "path": "/spec/template/spec/containers/1"},
        {"op": "remove", "path": "/spec/paused"},
    ]


def test_a_restart_that_somebody_asked_for_stays() -> None:
    restart: Any = {"f:metadata": {"f:annotations": {".": {}, "f:kubectl.kubernetes.io/restartedAt": {}}}}
    assert not fields.difference(WANTED, live(kubectl={"f:spec": {"f:template": restart}}))
    both: Any = {"f:metadata": {"f:annotations": {".": {}, "f:other": {}, "f:kubectl.kubernetes.io/restartedAt": {}}}}
    assert fields.difference(WANTED, live(kubectl={"f:spec": {"f:template": both}})).strangers
