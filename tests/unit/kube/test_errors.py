"""A refusal names the call, the object and the server's reason, and nothing gets through it into a log."""

import json

import pytest

from numalign.kube import errors, request
from numalign.kube.resources import PODS

ASKED = request.get(PODS.at("web", "default"))


def body(**fields: object) -> bytes:
    return json.dumps({"kind": "Status", **fields}).encode()


SENTENCES = {
    "a status": (
        404,
        body(reason="NotFound", message='pods "web" not found'),
        'get Pod default/web: 404 NotFound: pods "web" not found',
    ),
    "a page of a proxy": (502, b"<html>\nbad</html>", "get Pod default/web: 502: bad"),
    "quotes of both kinds": (422, body(message="'a' \"b\""), "get Pod default/web: 422: 'a' \"b\""),
    "nothing": (503, b"", "get Pod default/web: 503: no reason given"),
    "JSON of another kind": (500, b"[]", "get Pod default/web: 500: []"),
    "bytes": (500, b"\xff\x00", "get Pod default/web: 500: \ufffd\\x00"),
}


@pytest.mark.parametrize("code, raw, sentence", SENTENCES.values(), ids=SENTENCES)
def test_a_refusal_reads_as_a_sentence(code: int, raw: bytes, sentence: str) -> None:
    assert str(errors.refusal(ASKED, code, raw)) == sentence


CLASSES = {400: errors.BadRequest, 401: errors.Unauthorized, 403: errors.Forbidden, 404: errors.NotFound}
CLASSES |= {409: errors.Conflict, 410: errors.Gone, 422: errors.Invalid, 429: errors.TooManyRequests}
CLASSES |= {500: errors.ServerFailure, 503: errors.ServerFailure, 599: errors.ServerFailure, 418: errors.Refusal}


@pytest.mark.parametrize("code, kind", CLASSES.items())
def test_each_status_has_its_class(code: int, kind: type[errors.Refusal]) -> None:
    assert type(errors.refusal(ASKED, code, b"")) is kind


WAITS = {
    "in the header": ("7", {}, 7.0),
    "in the status": ("", {"retryAfterSeconds": 4}, 4.0),
    "in both": ("7", {"retryAfterSeconds": 4}, 7.0),
    "as a date": ("Mon, 16 Nov 2026 03:00:00 GMT", {}, None),
    "nowhere": ("", {}, None),
}


@pytest.mark.parametrize("header, details, wait", WAITS.values(), ids=WAITS)
def test_the_retry_time_is_read(header: str, details: dict[str, int], wait: float | None) -> None:
    assert errors.refusal(ASKED, 429, body(details=details), header).retry_after == wait


def test_a_flood_is_cut() -> None:
    assert len(str(errors.refusal(ASKED, 500, b"x" * 10**6))) < 2 * errors.LONGEST
