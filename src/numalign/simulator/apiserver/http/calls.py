"""A request and its answer as values, between the sockets and the verbs.

`server` makes a `Call` of what came over the wire and writes the `Answer`; everything between the two is plain
functions. `Following` is the answer that goes on: a watch."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

from numalign.simulator import trees
from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import Resource
from numalign.simulator.apiserver.verbs.list import Selection
from numalign.simulator.apiserver.verbs.watch import Since

JSON: Final = "application/json"
TEXT: Final = "text/plain; charset=utf-8"


class Call:
    """Of headers only those are kept that anybody here looks at."""

    def __init__(self, method: str, target: bytes, headers: Mapping[str, str], body: bytes = b"") -> None:
        path, _, query = target.decode("latin-1").partition("?")
        self.method = method
        self.path = unquote(path) if "%" in path else path
        self.headers = headers
        self.body = body
        self._query = query

    @cached_property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(self._query, keep_blank_values=True)) if self._query else {}

    @property
    def accept(self) -> str:
        return self.headers.get("accept", "")

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "")

    @property
    def manager(self) -> str:
        """Who writes: by name, or else by the program."""
        return self.query.get("fieldManager") or self.headers.get("user-agent", "").partition("/")[0] or "unknown"

    def flag(self, name: str) -> bool:
        return self.query.get(name, "").lower() in ("1", "true", "t")


class Answer:
    __slots__ = ("body", "code", "content_type", "headers")

    def __init__(self, code: int, body: bytes, content_type: str = JSON, headers: tuple[tuple[str, str], ...] = ()):
        self.code = code
        self.body = body
        self.content_type = content_type
        self.headers = headers


class Following:
    """A watch to be opened."""

    def __init__(self, resource: Resource, chosen: Selection, since: Since) -> None:
        self.resource = resource
        self.chosen = chosen
        self.since = since
        self.bookmarks = False
        self.seconds = 0.0
        """After which the server ends it."""
        self.accept = ""
        self.include = ""


def answer(tree: Any, code: int = 200) -> Answer:
    return Answer(code, trees.encoded(tree))


def refusal(problem: StatusError) -> Answer:
    details = problem.details or {}
    retry = details.get("retryAfterSeconds")
    headers = (("Retry-After", str(retry)),) if retry else ()
    return Answer(problem.code, trees.encoded(problem.status()), JSON, headers)


def text(body: str, code: int = 200) -> Answer:
    return Answer(code, body.encode(), TEXT)
