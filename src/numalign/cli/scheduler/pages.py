"""A live scheduler's pages, fetched: by HTTP from the loopback, or by HTTPS with a token.

`numalign scheduler state` and `dump`, and `explain --server`, read them. From outside of the cluster, `kubectl
port-forward` leads to the loopback of the scheduler's pod. Whatever goes wrong raises BadObject, whose text never
holds the token."""

from __future__ import annotations

import http.client
import ssl
from contextlib import closing
from typing import Annotated
from urllib.parse import urlencode, urlsplit

import typer
from msgspec import Struct

from numalign.api.errors import BadObject, clipped

DEFAULT = "http://127.0.0.1:10259"
PORT = 10259
PATIENCE = 60.0

Server = Annotated[str, typer.Option(metavar="URL", help="where the scheduler serves its pages")]
TokenFile = Annotated[str, typer.Option(metavar="FILE", help="a bearer token that the API server knows")]
Authority = Annotated[
    str, typer.Option("--certificate-authority", metavar="FILE", help="who vouches for the scheduler's certificate")
]
Insecure = Annotated[
    bool, typer.Option("--insecure-skip-tls-verify", help="take whatever certificate the scheduler shows")
]


class Reach(Struct, frozen=True, kw_only=True):
    """As whom, and how carefully."""

    token_file: str = ""
    authority: str = ""
    insecure: bool = False


ANYBODY = Reach()


def fetch(server: str, path: str, reach: Reach = ANYBODY, **query: str) -> bytes:
    """The page's body."""
    connection = _connection(server, reach)
    asked = f"{urlsplit(server).path.rstrip('/')}{path}" + (f"?{urlencode(query)}" if query else "")
    try:
        with closing(connection):
            connection.request("GET", asked, headers=_headers(reach))
            answer = connection.getresponse()
            body = answer.read()
    except ssl.SSLCertVerificationError as problem:
        hint = "give --certificate-authority, or --insecure-skip-tls-verify"
        raise _bad(server, f"is not trusted: {problem.verify_message}; {hint}") from None
    except (OSError, http.client.HTTPException) as problem:
        why = getattr(problem, "strerror", None) or str(problem) or type(problem).__name__
        raise _bad(server, f"cannot be reached: {why}") from None
    if answer.status != 200:
        raise _bad(server, f"answers {answer.status} to {path}: {_refusal(answer.status, body, reach)}")
    return body


def _refusal(status: int, body: bytes, reach: Reach) -> str:
    from numalign.kube import errors

    # Of a guard's answer, a whole object, the message is what people want to read.
    said = clipped(errors.on_one_line(errors.read_status(body).message))
    is_stranger = status in (401, 403) and not reach.token_file
    return f"{said}; give --token-file with a token that may see it" if is_stranger else said


def _connection(server: str, reach: Reach) -> http.client.HTTPConnection:
    try:
        parts = urlsplit(server)
        host, port = parts.hostname, parts.port or PORT
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https"):
        raise _bad(server, f"is no address of a scheduler's pages; write something like {DEFAULT}")
    if parts.scheme == "http":
        if reach.token_file:
            raise _bad(server, "is no place for a token: it would travel in the clear; write https://")
        return http.client.HTTPConnection(host, port, timeout=PATIENCE)
    return http.client.HTTPSConnection(host, port, timeout=PATIENCE, context=_context(reach))


def _context(reach: Reach) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=reach.authority or None)
    except (OSError, ssl.SSLError) as problem:
        raise BadObject("File", reach.authority, "", f"holds no certificate authority: {problem}") from None
    if reach.insecure:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _headers(reach: Reach) -> dict[str, str]:
    if not reach.token_file:
        return {}
    from numalign.kube.transport import auth

    token = auth.token_text(auth.file_bytes(reach.token_file, "", "--token-file"), "", "--token-file")
    return dict(auth.bearer(token))


def _bad(server: str, why: str) -> BadObject:
    return BadObject("Scheduler", clipped(server), "", why)
