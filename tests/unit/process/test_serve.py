"""A small server: short answers, and nothing that a client does can hurt it."""

from __future__ import annotations

import asyncio

import pytest

from numalign.process import serve
from numalign.process.serve import Guard, Page, PageRequest, PageResponse, Pages


async def _guard(asked: PageRequest) -> PageResponse | None:
    return None if asked.headers.get("authorization") == "Bearer t" else PageResponse("who are you\n", 401)


async def _slow(asked: PageRequest) -> PageResponse:
    await asyncio.sleep(0)
    return PageResponse(asked.query.get("say", ""))


def _broken(asked: PageRequest) -> PageResponse:
    raise RuntimeError("broken")


PAGES: dict[str, Page] = {
    "/ok": lambda asked: PageResponse("ok"),
    "/slow": _slow,
    "/broken": _broken,
    "/put": lambda asked: PageResponse(asked.body.decode()),
    "/all": lambda asked: PageResponse("+".join(asked.every("a"))),
}


def answered(sent: bytes, pages: Pages | None = None) -> tuple[str, str]:
    """Status line and body."""

    async def exchange() -> bytes:
        async with serve.serving(pages or Pages(PAGES), ("127.0.0.1", 0)) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            answer = await reader.read()
            writer.close()
            return answer

    head, _, body = asyncio.run(exchange()).decode().partition("\r\n\r\n")
    return head.split("\r\n")[0], body


@pytest.mark.parametrize(
    "sent, status, body",
    {
        "a page": (b"GET /ok HTTP/1.1\r\n\r\n", "200 OK", "ok"),
        "a query": (b"GET /slow?say=a%20b HTTP/1.1\r\n\r\n", "200 OK", "a b"),
        "a query with one of a name": (b"GET /all?a=1 HTTP/1.1\r\n\r\n", "200 OK", "1"),
        "a query with two of a name": (b"GET /all?a=1&b=&a=2 HTTP/1.1\r\n\r\n", "200 OK", "1+2"),
        "no body for HEAD": (b"HEAD /ok HTTP/1.1\r\n\r\n", "200 OK", ""),
        "nothing under a page": (b"GET /ok/a HTTP/1.1\r\n\r\n", "404 Not Found", "404 page not found\n"),
        "a body": (b"PUT /put HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi", "200 OK", "hi"),
        "no such page": (b"GET /no HTTP/1.1\r\n\r\n", "404 Not Found", "404 page not found\n"),
        "another method": (b"POST /ok HTTP/1.1\r\n\r\n", "405 Method Not Allowed", "method not allowed\n"),
        "no request at all": (b"\x16\x03\x01\r\n\r\n", "400 Bad Request", "the request is not HTTP/1.1\n"),
        "a length that is none": (
            b"PUT /put HTTP/1.1\r\nContent-Length: x\r\n\r\n",
            "400 Bad Request",
            "the request is not HTTP/1.1\n",
        ),
        "too much": (
            b"PUT /put HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n",
            "413 Request Entity Too Large",
            "Request entity too large: limit is 1048576\n",
        ),
        "a page that fails": (b"GET /broken HTTP/1.1\r\n\r\n", "500 Internal Server Error", "internal error\n"),
    }.values(),
    ids=lambda value: None,
)
def test_what_is_answered(sent: bytes, status: str, body: str) -> None:
    assert answered(sent) == (f"HTTP/1.1 {status}", body)


def test_a_guard_is_asked_before_the_page() -> None:
    pages = Pages(PAGES, _guard)
    assert answered(b"GET /ok HTTP/1.1\r\n\r\n", pages)[1] == "who are you\n"
    assert answered(b"GET /ok HTTP/1.1\r\nAuthorization: Bearer t\r\n\r\n", pages)[1] == "ok"


@pytest.mark.parametrize("sent", [b"GET /no HTTP/1.1\r\n\r\n", b"BREW /ok HTTP/1.1\r\n\r\n"], ids=["path", "method"])
def test_a_guard_is_not_asked_about_what_is_not_served(sent: bytes) -> None:
    asked: list[str] = []

    async def counting(request: PageRequest) -> PageResponse | None:
        asked.append(request.path)
        return None

    assert answered(sent, Pages(PAGES, counting))[0] != "HTTP/1.1 200 OK"
    assert asked == []


def test_an_endless_head_is_refused() -> None:
    status, _ = answered(b"GET /ok HTTP/1.1\r\n" + b"a: b\r\n" * 6000)
    assert status == "HTTP/1.1 431 Request Header Fields Too Large"


@pytest.mark.parametrize("header", ["Host: evil.example", "Origin: http://evil.example", "Sec-Fetch-Site: cross-site"])
def test_web_pages_see_no_page_that_needs_no_login(header: str) -> None:
    sent = f"GET /ok HTTP/1.1\r\n{header}\r\n\r\n".encode()
    assert answered(sent)[0].split()[1] in ("403", "421")
    assert answered(sent, Pages(PAGES, _guard))[1] == "who are you\n"


@pytest.mark.parametrize("host, guard, warned", [("0.0.0.0", None, True), ("0.0.0.0", _guard, False), ("", None, True)])
def test_pages_that_anyone_can_read_are_announced(
    host: str, guard: Guard | None, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def briefly() -> None:
        async with serve.serving(Pages(PAGES, guard), (host, 0)):
            pass

    asyncio.run(briefly())
    assert ("without authentication" in caplog.text) is warned
