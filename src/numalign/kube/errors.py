"""Errors of calls to the API server.

`Refusal` is an answer of the server: one class per status that callers distinguish, with its Status. `Unreachable` is a
failure of the network. Both name the call and the object; neither holds a header or a body, so no secret gets into a
log."""

import re
from dataclasses import dataclass
from typing import Final

import msgspec

from numalign.kube.request import Request
from numalign.kube.resources import Status

MARKUP: Final = re.compile(r"<(?:style|script)\b.*?</(?:style|script)>|<[^>]*>", re.DOTALL | re.IGNORECASE)
LONGEST: Final = 1000
"""Characters of a server's message that are kept."""

DISRUPTION: Final = "DisruptionBudget"
TOO_NEW: Final = "ResourceVersionTooLarge"


class KubeError(Exception):
    """Base of all errors of a call."""


@dataclass(eq=False)
class Refusal(KubeError):
    """Reads like: create Lease kube-system/numalign: 409 AlreadyExists: leases "numalign" already exists"""

    verb: str
    words: str
    code: int
    status: Status
    retry_after: float | None = None

    def __str__(self) -> str:
        reason = f" {self.status.reason}" if self.status.reason else ""
        return f"{self.verb} {self.words}: {self.code}{reason}: {on_one_line(self.status.message)}"

    def has_cause(self, reason: str) -> bool:
        return any(cause.reason == reason for cause in self.status.details.causes)


class BadRequest(Refusal):
    """400"""


class Unauthorized(Refusal):
    """401"""


class Forbidden(Refusal):
    """403"""


class NotFound(Refusal):
    """404"""


class Conflict(Refusal):
    """409: another client wrote first, or the object's state does not allow the call."""


class Gone(Refusal):
    """410: the resourceVersion or the continue token is too old."""


class Invalid(Refusal):
    """422"""


class TooManyRequests(Refusal):
    """429: throttled, or held back by a disruption budget."""


class ServerFailure(Refusal):
    """Any 5xx."""


@dataclass(eq=False)
class Unreachable(KubeError):
    """No answer arrived. With `sent`, the server may have acted on the call."""

    verb: str
    words: str
    why: str
    sent: bool = True

    def __str__(self) -> str:
        return f"{self.verb} {self.words}: {self.why}"


@dataclass(eq=False)
class Withdrawn(KubeError):
    """Not sent, or not sent again, because the caller no longer wants it. An earlier attempt may have arrived."""

    verb: str
    words: str

    def __str__(self) -> str:
        return f"{self.verb} {self.words}: no longer wanted"


class TimedOut(Unreachable):
    """No answer within the call's time limit."""


BY_CODE: Final[dict[int, type[Refusal]]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}


def refusal(request: Request, code: int, body: bytes, retry_after: str = "") -> Refusal:
    """The error for an unsuccessful answer, whether the server or a proxy wrote its body."""
    return refused(request, code, read_status(body), retry_after)


def refused(request: Request, code: int, status: Status, retry_after: str = "") -> Refusal:
    kind = ServerFailure if code >= 500 else BY_CODE.get(code, Refusal)
    wait = float(retry_after) if retry_after.isdecimal() else float(status.details.retry_after_seconds) or None
    return kind(request.verb, request.words, code, status, wait)


def read_status(body: bytes) -> Status:
    try:
        return msgspec.json.decode(body, type=Status)
    except (ValueError, RecursionError):
        return Status(message=_in_one_line(body[:LONGEST].decode("utf-8", "replace")) or "no reason given")


def _in_one_line(text: str) -> str:
    """The page of a proxy, without its markup."""
    return " ".join(MARKUP.sub(" ", text).split()) if text.lstrip().startswith("<") else text.strip()


def on_one_line(message: str) -> str:
    """Shortens and escapes foreign text, so that it can neither flood nor forge a log."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in message[:LONGEST])
