"""Requests and answers, without sockets: which verb a path and a method are, and in which form objects come back."""

import msgspec
import pytest

from numalign.process.http.messages import Request
from numalign.simulator.apiserver.http.requests import WatchRequest
from numalign.simulator.apiserver.http.routes import Router
from numalign.simulator.apiserver.storage.resources import CONFIGMAPS, PODS
from numalign.simulator.trees import Tree
from tests.unit.simulator.apiserver import definitions, doors
from tests.unit.simulator.apiserver.asked import JSON, PLACE, ask, furnished, tree

ALLOWED_ALL = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}


def test_a_list_s_items_leave_out_what_the_list_has_said() -> None:
    found = tree(ask(furnished(), "GET", f"{PLACE}/configmaps"))
    assert (found["kind"], found["apiVersion"], list(found["items"][0])) == ("ConfigMapList", "v1", ["metadata"])


def test_custom_items_say_it_again() -> None:
    api = furnished()
    api.create(definitions.WIDGETS, definitions.widget("w"))
    (item,) = tree(ask(api, "GET", "/apis/example.com/v1/widgets"))["items"]
    assert (item["kind"], item["apiVersion"]) == ("Widget", "example.com/v1")


def test_an_update_of_a_custom_object_has_to_name_the_version() -> None:
    api = furnished()
    api.create(definitions.WIDGETS, definitions.widget("w"))
    answer = ask(api, "PUT", "/apis/example.com/v1/namespaces/default/widgets/w", definitions.widget("w", size=1))
    assert (answer.code, tree(answer)["message"]) == (
        422,
        'widgets.example.com "w" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an '
        "update",
    )


BODIES = {
    "JSON": (JSON, msgspec.json.encode(doors.named("new") | {"data": {"a": "b"}})),
    "YAML": ("application/yaml", b"metadata: {name: new}\ndata: {a: b}\n"),
    "YAML with a time": (
        "application/yaml",
        b"metadata: {name: new, creationTimestamp: 2020-01-01T00:00:00Z}\ndata: {a: b}",
    ),
    "nulls": (JSON, b'{"metadata":{"name":"new","creationTimestamp":null},"data":{"a":"b"}}'),
}


@pytest.mark.parametrize("media, body", BODIES.values(), ids=BODIES)
def test_bodies_are_read(media: str, body: bytes) -> None:
    answer = ask(furnished(), "POST", f"{PLACE}/configmaps", body, content_type=media)
    assert (answer.code, tree(answer)["data"]) == (201, {"a": "b"})


def test_a_deletion_is_answered_with_a_status() -> None:
    answer = ask(furnished(), "DELETE", f"{PLACE}/configmaps/c")
    found = tree(answer)
    assert found["details"].pop("uid")
    assert (answer.code, found["status"], found["details"]) == (200, "Success", {"name": "c", "kind": "configmaps"})


def test_a_deleted_pod_is_shown() -> None:
    assert tree(ask(furnished(), "DELETE", f"{PLACE}/pods/a"))["kind"] == "Pod"


def test_a_collection_is_deleted_by_its_selector() -> None:
    api = furnished()
    api.create(CONFIGMAPS, doors.named("keep", labels={"app": "blue"}))
    gone = tree(ask(api, "DELETE", f"{PLACE}/configmaps?labelSelector=app%3Dred"))
    assert (gone["kind"], [item["metadata"]["name"] for item in gone["items"]]) == ("ConfigMapList", ["c"])
    assert [item["metadata"]["name"] for item in api.list(CONFIGMAPS).items] == ["keep"]


FORMS = {
    "a table": ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "Table"),
    "metadata": ("application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", "PartialObjectMetadataList"),
    "protobuf, or else JSON": ("application/vnd.kubernetes.protobuf,application/json", "ConfigMapList"),
    "anything": ("*/*", "ConfigMapList"),
}


@pytest.mark.parametrize("accept, kind", FORMS.values(), ids=FORMS)
def test_forms_are_negotiated(accept: str, kind: str) -> None:
    assert tree(ask(furnished(), "GET", f"{PLACE}/configmaps", accept=accept))["kind"] == kind


def test_who_takes_only_protobuf_is_refused() -> None:
    assert ask(furnished(), "GET", f"{PLACE}/pods", accept="application/vnd.kubernetes.protobuf").code == 406


def test_yaml_is_written_where_it_is_asked_for() -> None:
    answer = ask(furnished(), "GET", f"{PLACE}/configmaps/c", accept="application/yaml")
    assert (answer.content_type, answer.body[:15]) == ("application/yaml", b"apiVersion: v1\n")


def test_an_unknown_field_is_an_error_or_a_warning_as_asked() -> None:
    body = doors.named("q") | {"foo": 1}
    strict = ask(furnished(), "POST", f"{PLACE}/configmaps?fieldValidation=Strict", body)
    warned = ask(furnished(), "POST", f"{PLACE}/configmaps?fieldValidation=Warn", body)
    assert tree(strict)["message"] == (
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "foo"'
    )
    assert (warned.code, warned.headers) == (201, (("Warning", r'299 - "unknown field \"foo\""'),))


REVIEWS = {
    "selfsubjectaccessreviews": {"allowed": True},
    "selfsubjectrulesreviews": {
        "resourceRules": [ALLOWED_ALL],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        "incomplete": False,
    },
}


@pytest.mark.parametrize("plural, status", REVIEWS.items(), ids=REVIEWS)
def test_everything_is_allowed(plural: str, status: Tree) -> None:
    answer = ask(furnished(), "POST", f"/apis/authorization.k8s.io/v1/{plural}", {"spec": {}})
    assert (answer.code, tree(answer)["status"]) == (201, status)


PLAIN = {
    "/healthz": b"ok",
    "/livez": b"ok",
    "/readyz": b"ok",
    "/readyz?verbose": b"[+]ping ok\nreadyz check passed\n",
}


@pytest.mark.parametrize("target, body", PLAIN.items(), ids=PLAIN)
def test_the_server_is_well(target: str, body: bytes) -> None:
    assert ask(doors.door(), "GET", target).body == body


@pytest.mark.parametrize("target", ["/version", "/version/"])
def test_the_version_is_told_with_or_without_a_slash(target: str) -> None:
    assert tree(ask(doors.door(), "GET", target))["minor"] == "37"


def test_discovery_is_answered_once_per_change() -> None:
    api = furnished()
    first = ask(api, "GET", "/apis")
    etag = dict(first.headers)["ETag"]
    assert ask(api, "GET", "/apis", if_none_match=etag).code == 304


def test_an_eviction_and_a_binding_are_answered_with_a_status() -> None:
    api = furnished()
    bound = ask(api, "POST", f"{PLACE}/pods/a/binding", doors.named("a") | {"target": {"name": "node-1"}})
    evicted = ask(api, "POST", f"{PLACE}/pods/a/eviction", doors.named("a"))
    success = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    assert [tree(bound), tree(evicted)] == [success, success]


WATCHES = (f"{PLACE}/pods?watch=1", f"{PLACE}/pods?watch=true", "/api/v1/watch/namespaces/default/pods")


@pytest.mark.parametrize("target", WATCHES)
def test_a_watch_is_to_be_followed(target: str) -> None:
    found = Router(furnished().state).answer(Request("GET", target.encode(), {}))
    assert isinstance(found, WatchRequest)
    assert (found.resource, found.predicate.namespace) == (PODS, "default")


def test_what_goes_wrong_inside_is_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    api = furnished()
    monkeypatch.setattr(api.state.store, "entry", lambda *_: 1 / 0)
    answer = ask(api, "GET", f"{PLACE}/pods/a")
    assert (answer.code, tree(answer)["reason"]) == (500, "InternalError")
