"""Requests and responses as values, and the head of a response as bytes.

`connection` makes a `Request` of what it parsed and writes the `Response` of the application."""

import re
from collections.abc import Mapping
from functools import cached_property
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl, unquote

JSON: Final = "application/json"
TEXT: Final = "text/plain; charset=utf-8"
REASONS: Final = {status.value: status.phrase for status in HTTPStatus}
LINE_ENDS: Final = re.compile(r"[\r\n\0]+")
FIXED_LINES: Final = 4
"""The status line, Content-Type, Content-Length, and the empty line."""


class Request:
    """Has only the headers that the application reads, by lower-case name."""

    def __init__(self, method: str, target: bytes, headers: Mapping[str, str], body: bytes = b"") -> None:
        path, _, query = target.decode("latin-1").partition("?")
        self.method = method
        self.path = unquote(path) if "%" in path else path
        self.headers = headers
        self.body = body
        self.raw_query = query

    @cached_property
    def query(self) -> dict[str, str]:
        """The last value of each parameter."""
        return dict(parse_qsl(self.raw_query, keep_blank_values=True)) if self.raw_query else {}

    @property
    def accept(self) -> str:
        return self.headers.get("accept", "")

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "")

    def flag(self, name: str) -> bool:
        return self.query.get(name, "").lower() in ("1", "true", "t")


class Response:
    __slots__ = ("body", "code", "content_type", "headers")

    def __init__(self, code: int, body: bytes, content_type: str = JSON, headers: tuple[tuple[str, str], ...] = ()):
        self.code = code
        self.body = body
        self.content_type = content_type
        self.headers = headers


def head(response: Response, added: str = "") -> bytes:
    """Status line and headers; `added` has whole lines.

    No value can begin another line, whatever a client managed to put into it."""
    written = _head(response, added)
    expected = FIXED_LINES + len(response.headers) + added.count("\n")
    if written.count(b"\n") == expected == written.count(b"\r"):
        return written
    headers = tuple((_one_line(name), _one_line(value)) for name, value in response.headers)
    return _head(Response(response.code, response.body, _one_line(response.content_type), headers), added)


def lines(headers: tuple[tuple[str, str], ...]) -> str:
    return "".join([f"{name}: {value}\r\n" for name, value in headers])


def _head(response: Response, added: str) -> bytes:
    code, more = response.code, lines(response.headers) if response.headers else ""
    return (
        f"HTTP/1.1 {code} {REASONS.get(code, '')}\r\nContent-Type: {response.content_type}\r\n"
        f"Content-Length: {len(response.body)}\r\n{added}{more}\r\n"
    ).encode("utf-8", "replace")


def _one_line(text: str) -> str:
    return LINE_ENDS.sub(" ", text)
