"""Requests that are refused, with the Status that a kube-apiserver 1.37 gave to the same ones."""

from typing import Any

import pytest

from tests.strategies import hostileyaml
from tests.unit.simulator.apiserver import definitions, doors
from tests.unit.simulator.apiserver.asked import PLACE, ask, furnished, tree

NOT_FOUND = "the server could not find the requested resource"
NOT_ALLOWED = "the server does not allow this method on the requested resource"
UNREADABLE = "the object provided is unrecognized (must be of type Pod): "
UNFIT = 'ListOptions.meta.k8s.io "" is invalid: '
NO_VERSION = "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"

REFUSALS = {
    "an unknown resource": ("GET", "/api/v1/foos", b"", 404, NOT_FOUND),
    "an unknown resource of a namespace": ("GET", f"{PLACE}/foos/x", b"", 404, NOT_FOUND),
    "an unknown version": ("GET", "/api/v2/pods", b"", 404, NOT_FOUND),
    "a part that the kind has not": ("PUT", f"{PLACE}/configmaps/c/status", {}, 404, NOT_FOUND),
    "a missing object": ("GET", f"{PLACE}/pods/z", b"", 404, 'pods "z" not found'),
    "a create without a namespace": ("POST", "/api/v1/pods", doors.pod("b"), 405, NOT_ALLOWED),
    "a put on a collection": ("PUT", f"{PLACE}/pods", doors.pod("b"), 405, NOT_ALLOWED),
    "a post on an object": ("POST", f"{PLACE}/pods/a", doors.pod("a"), 405, NOT_ALLOWED),
    "all namespaces at once": ("DELETE", "/api/v1/namespaces", b"", 405, NOT_ALLOWED),
    "a deleted scale": ("DELETE", "/apis/apps/v1/namespaces/default/deployments/d/scale", b"", 405, NOT_ALLOWED),
    "a read of a binding": ("GET", f"{PLACE}/pods/a/binding", b"", 405, NOT_ALLOWED),
    "reviews that were kept": ("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", b"", 405, NOT_ALLOWED),
    "another namespace": (
        "POST",
        f"{PLACE}/pods",
        doors.pod("b") | {"metadata": {"name": "b", "namespace": "x"}},
        400,
        "the namespace of the provided object does not match the namespace sent on the request",
    ),
    "another name": (
        "PUT",
        f"{PLACE}/pods/a",
        doors.pod("b"),
        400,
        "the name of the object (b) does not match the name on the URL (a)",
    ),
    "half a JSON": (
        "POST",
        f"{PLACE}/pods",
        b'{"a":',
        400,
        f'{UNREADABLE}couldn\'t get version/kind; json parse error: unexpected end of JSON input ({{"a":)',
    ),
    "no JSON at all": (
        "POST",
        f"{PLACE}/pods",
        b"",
        400,
        f"{UNREADABLE}couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)",
    ),
    "a list": (
        "POST",
        f"{PLACE}/pods",
        b"[1]",
        400,
        f"{UNREADABLE}couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type "
        r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" } (5b315d)',
    ),
    "another kind": (
        "POST",
        f"{PLACE}/pods",
        {"apiVersion": "v1", "kind": "Node"},
        400,
        'Node in version "v1" cannot be handled as a Pod: converting (v1.Node) to (core.Pod): unknown conversion',
    ),
    "no kind that is known": (
        "POST",
        f"{PLACE}/pods",
        {"apiVersion": "v2", "kind": "Pod"},
        400,
        'Pod in version "v2" cannot be handled as a Pod: no kind "Pod" is registered for version "v2" in scheme '
        '"pkg/runtime/scheme.go:111"',
    ),
    "a spec that is a word": (
        "POST",
        f"{PLACE}/pods",
        doors.named("b") | {"spec": "x"},
        400,
        'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal string into Go struct field Pod.spec '
        "of type v1.PodSpec",
    ),
    "a limit that is a word": (
        "GET",
        f"{PLACE}/pods?limit=x",
        b"",
        400,
        'strconv.ParseInt: parsing "x": invalid syntax',
    ),
    "a match without a version": ("GET", f"{PLACE}/pods?resourceVersionMatch=Exact", b"", 422, UNFIT + NO_VERSION),
    "an exact anything": (
        "GET",
        f"{PLACE}/pods?resourceVersionMatch=Exact&resourceVersion=0",
        b"",
        422,
        f'{UNFIT}resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
    ),
    "initial events of a list": (
        "GET",
        f"{PLACE}/pods?sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
        b"",
        422,
        f"{UNFIT}[{NO_VERSION}, sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list]",
    ),
    "initial events without a match": (
        "GET",
        f"{PLACE}/pods?watch=1&sendInitialEvents=true",
        b"",
        422,
        f"{UNFIT}resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to "
        "NotOlderThan",
    ),
    "a dry run of something": (
        "POST",
        f"{PLACE}/configmaps?dryRun=x",
        doors.named("p"),
        422,
        'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["x"]: supported values: "All"',
    ),
    "an unknown policy": (
        "DELETE",
        f"{PLACE}/configmaps/c",
        {"propagationPolicy": "Foo"},
        422,
        'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Foo": supported values: '
        '"Foreground", "Background", "Orphan", "nil"',
    ),
    "a custom object that is not there": (
        "PUT",
        "/apis/example.com/v1/namespaces/default/widgets/w",
        definitions.widget("w"),
        404,
        'widgets.example.com "w" not found',
    ),
    "a log": (
        "GET",
        f"{PLACE}/pods/a/log",
        b"",
        501,
        "the embedded API server does not serve the log of pods: its nodes are simulated",
    ),
}


@pytest.mark.parametrize("method, target, body, code, sentence", REFUSALS.values(), ids=REFUSALS)
def test_what_is_refused(method: str, target: str, body: Any, code: int, sentence: str) -> None:
    answer = ask(furnished(), method, target, body)
    assert (answer.code, tree(answer)["message"], tree(answer)["code"]) == (code, sentence, code)


TYPES = {
    "of an object": (
        "POST",
        f"{PLACE}/pods",
        "the body of the request was in an unknown format - accepted media types include: application/json, "
        "application/yaml, application/vnd.kubernetes.protobuf",
    ),
    "of a patch": ("PATCH", f"{PLACE}/pods/a", "415: Unsupported Media Type"),
}


@pytest.mark.parametrize("method, target, sentence", TYPES.values(), ids=TYPES)
def test_a_content_type_that_nobody_reads(method: str, target: str, sentence: str) -> None:
    answer = ask(furnished(), method, target, b"<x/>", content_type="text/xml")
    assert (answer.code, tree(answer)["message"]) == (415, sentence)


@pytest.mark.parametrize("text, why", hostileyaml.ATTACKS.values(), ids=hostileyaml.ATTACKS)
@pytest.mark.parametrize(
    "method, target, media",
    [
        ("POST", "configmaps", "application/yaml"),
        ("PATCH", "configmaps/c?fieldManager=m", "application/apply-patch+yaml"),
    ],
    ids=["create", "apply"],
)
def test_hostile_yaml_is_refused(method: str, target: str, media: str, text: str, why: str) -> None:
    answer = ask(furnished(), method, f"{PLACE}/{target}", text.encode(), content_type=media)
    assert (answer.code, why in tree(answer)["message"]) == (400, True), tree(answer)["message"][:300]


def nested(depth: int) -> bytes:
    return b'{"data":' * depth + b"1" + b"}" * depth


PATCHED = "application/merge-patch+json"
DEEP = {
    "a list": ("POST", "configmaps", "application/json", b"[" * 100_000),
    "an object": ("POST", "configmaps", "application/json", nested(100_000)),
    "an object that can just be decoded": ("POST", "configmaps", "application/json", nested(900)),
    "a merge patch": ("PATCH", "configmaps/c", PATCHED, nested(900)),
    "a strategic patch": ("PATCH", "pods/a", "application/strategic-merge-patch+json", nested(900)),
}


@pytest.mark.parametrize("method, target, media, body", DEEP.values(), ids=DEEP)
def test_deep_bodies_are_refused_without_a_trace(
    method: str, target: str, media: str, body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    answer = ask(furnished(), method, f"{PLACE}/{target}", body, content_type=media)
    assert answer.code in (400, 422)
    assert caplog.records == []


NOWHERE = ("/foo", "/apis/foo.io/v1/x", "/api2")


@pytest.mark.parametrize("target", NOWHERE)
def test_paths_that_lead_nowhere_are_answered_in_plain_text(target: str) -> None:
    answer = ask(furnished(), "GET", target)
    assert (answer.code, answer.body) == (404, b"404 page not found\n")
