"""An ASGI application behind the project's HTTP server: alone, and below a path of other pages."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from numalign.process import asgi
from numalign.process.http.messages import Request
from numalign.process.serve import Mounted, PageRequest, PageResponse, Pages, PagesServer


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answers with what it was asked."""
    body = (await receive())["body"]
    words = (scope["scheme"], scope["method"], scope["root_path"], scope["path"], scope["query_string"].decode(), "")
    text = " ".join(words)
    headers = [
        (b"content-type", b"text/x"),
        (b"x-seen", dict(scope["headers"]).get(b"cookie", b"")),
        (b"content-length", b"7"),
    ]
    await send({"type": "http.response.start", "status": 201, "headers": headers})
    await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
    await send({"type": "http.response.body", "body": body})


def test_a_request_reaches_the_application_and_its_answer_the_client() -> None:
    request = Request("POST", b"/a/b%20c?x=1", {"cookie": "k=v"}, b"body")
    answer = asyncio.run(asgi.answered(echo, request, "/a", secure=True))
    assert (answer.code, answer.content_type) == (201, "text/x")
    assert answer.body == b"https POST /a /a/b c x=1 body"
    # The server writes the length itself.
    assert answer.headers == (("x-seen", "k=v"),)


class Client:
    """Stands in for a connection."""

    def __init__(self) -> None:
        self.answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def finish(self, response: Any = None) -> None:
        self.answered.set_result(response)


async def asked(server: Any, path: bytes) -> Any:
    client = Client()
    server.answer(Request("GET", path, {})).open(client)
    return await client.answered


def test_an_application_that_fails_is_an_internal_error_without_details() -> None:
    async def fails(scope: Any, receive: Any, send: Any) -> None:
        raise ValueError("secret")

    answer = asyncio.run(asked(asgi.AsgiServer(fails, secure=False), b"/"))
    assert (answer.code, b"secret" in answer.body) == (500, False)


@pytest.mark.parametrize("path", [b"/apps", b"/apps/", b"/apps/x"])
def test_everything_below_the_path_of_an_application_is_its_own(path: bytes) -> None:
    server = PagesServer(Pages({}, mounted={"/apps": Mounted(echo, secure=False)}))
    answer = asyncio.run(asked(server, path))
    assert answer.code == 201
    assert "cookie" in server.headers


@pytest.mark.parametrize("path", [b"/appsx", b"/app", b"/"])
def test_other_paths_are_pages_behind_the_guard(path: bytes) -> None:
    async def guard(asked: PageRequest) -> PageResponse | None:
        return PageResponse("no", 401)

    pages = Pages(
        {path.decode(): lambda _: PageResponse("page")}, guard, mounted={"/apps": Mounted(echo, secure=False)}
    )
    assert asyncio.run(asked(PagesServer(pages), path)).code == 401
