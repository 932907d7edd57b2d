"""Where a command reads a cluster from: an API server, a file, or the pages of a live scheduler.

`explain` and `topology` take the options of `ClusterSource`, the commands that look at a scheduler those of
`SchedulerPages`. Files are dumps of the scheduler, or what kubectl prints of nodes, pods and reports as JSON or YAML.
From outside the cluster, `kubectl port-forward` leads to the loopback of the scheduler's pod. Errors are raised as
BadObject, with a text to print as it is; it never contains the token."""

from __future__ import annotations

import atexit
import gc
import ssl
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import TYPE_CHECKING, Annotated, TypeVar
from urllib.parse import urlencode, urlsplit

import typer
from msgspec import Struct

from numalign.api.errors import BadObject, clipped
from numalign.cli import fileio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from numalign.api.schedulerconfig.configuration import Configuration
    from numalign.cli.results.topology import ReportWriter
    from numalign.kube.client import Client
    from numalign.scheduler.snapshot.snapshot import Snapshot


DEFAULT = "http://127.0.0.1:10259"
PORT = 10259
PATIENCE = 60.0

TokenFile = Annotated[str, typer.Option(metavar="FILE", help="A bearer token that the API server accepts.")]
Authority = Annotated[
    str, typer.Option(metavar="FILE", help="The certificate authority that signed the scheduler's certificate.")
]
Insecure = Annotated[
    bool, typer.Option("--insecure-skip-tls-verify", help="Do not verify the scheduler's certificate.")
]


class ServerAccess(Struct, frozen=True, kw_only=True):
    """The credentials for a scheduler's pages, and whether its certificate is verified."""

    token_file: TokenFile = ""
    certificate_authority: Authority = ""
    insecure: Insecure = False


class SchedulerPages(ServerAccess, frozen=True, kw_only=True):
    """A live scheduler, and the credentials for it."""

    server: Annotated[str, typer.Option(metavar="URL", help="Where the scheduler serves its pages.")] = DEFAULT


ANONYMOUS = ServerAccess()


def fetch(server: str, path: str, access: ServerAccess = ANONYMOUS, **query: str) -> bytes:
    """The page's body."""
    connection = _connection(server, access)
    asked = f"{urlsplit(server).path.rstrip('/')}{path}" + (f"?{urlencode(query)}" if query else "")
    try:
        with closing(connection):
            connection.request("GET", asked, headers=_headers(access))
            answer = connection.getresponse()
            body = answer.read()
    except ssl.SSLCertVerificationError as problem:
        hint = "give --certificate-authority, or --insecure-skip-tls-verify"
        raise _bad(server, f"is not trusted: {problem.verify_message}; {hint}") from None
    except (OSError, HTTPException) as problem:
        why = getattr(problem, "strerror", None) or str(problem) or type(problem).__name__
        raise _bad(server, f"cannot be reached: {why}") from None
    if answer.status != 200:
        raise _bad(server, f"answers {answer.status} to {path}: {_refusal(answer.status, body, access)}")
    return body


def _refusal(status: int, body: bytes, access: ServerAccess) -> str:
    from numalign.kube import errors

    # Of a Status object, only the message is printed.
    message = clipped(errors.on_one_line(errors.read_status(body).message))
    is_stranger = status in (401, 403) and not access.token_file
    return f"{message}; give --token-file with a token that may see it" if is_stranger else message


def _connection(server: str, access: ServerAccess) -> HTTPConnection:
    try:
        parts = urlsplit(server)
        host, port = parts.hostname, parts.port or PORT
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https"):
        raise _bad(server, f"is not the address of a scheduler's pages; write something like {DEFAULT}")
    if parts.scheme == "http":
        if access.token_file:
            raise _bad(server, "is not encrypted, so a token is not sent to it; write https://")
        return HTTPConnection(host, port, timeout=PATIENCE)
    return HTTPSConnection(host, port, timeout=PATIENCE, context=_context(access))


def _context(access: ServerAccess) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=access.certificate_authority or None)
    except (OSError, ssl.SSLError) as problem:
        raise BadObject(
            "File", access.certificate_authority, "", f"holds no certificate authority: {problem}"
        ) from None
    if access.insecure:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _headers(access: ServerAccess) -> dict[str, str]:
    if not access.token_file:
        return {}
    from numalign.kube.transport import auth

    token = auth.token_text(auth.file_bytes(access.token_file, "", "--token-file"), "", "--token-file")
    return dict(auth.bearer(token))


def _bad(server: str, why: str) -> BadObject:
    return BadObject("Scheduler", clipped(server), "", why)


T = TypeVar("T")

DUMP = "/debug/dump"

Kubeconfig = Annotated[
    str, typer.Option(metavar="FILE", help="The kubeconfig of the cluster. Default: as kubectl finds it.")
]
Context = Annotated[str, typer.Option(help="The context of the kubeconfig.")]
File = Annotated[
    str,
    typer.Option(
        metavar="FILE",
        help="Read a file instead of a cluster: a scheduler's dump, or the output of "
        "kubectl get nodes,pods,noderesourcetopologies -A -o json; - is stdin.",
    ),
]
Server = Annotated[str, typer.Option(metavar="URL", help="Read the pages of a live scheduler instead of a cluster.")]
Config = Annotated[str, typer.Option(metavar="FILE", help="The KubeSchedulerConfiguration whose profiles decide.")]


class ClusterSource(ServerAccess, frozen=True, kw_only=True):
    """The options that say where a cluster is read from; empty: not given."""

    kubeconfig: Kubeconfig = ""
    context: Context = ""
    snapshot: File = ""
    server: Server = ""

    @property
    def is_cluster(self) -> bool:
        return not self.snapshot and not self.server


class ProfiledSource(ClusterSource, frozen=True, kw_only=True):
    """The same for commands that decide by the profiles of a scheduler."""

    config: Config = ""


@contextmanager
def at_once() -> Iterator[None]:
    """Disables garbage collection: a large cluster has many objects, and all of them live until the process ends."""
    was_enabled = gc.isenabled()
    gc.disable()
    atexit.register(gc.freeze)
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def taken(source: ClusterSource) -> Snapshot:
    """Everything that decisions depend on, as it is now or was when the file was written."""
    from numalign.scheduler.snapshot import files, snapshot

    if sum(map(bool, (source.snapshot, source.server, source.kubeconfig or source.context))) > 1:
        raise BadObject("Options", "", "", "--snapshot, --server and --kubeconfig are exclusive; give one")
    config = _config(source.config) if isinstance(source, ProfiledSource) else None
    if source.snapshot:
        return files.read(content(source.snapshot), fileio.shown(source.snapshot), config)
    if source.server:
        return files.read(fetch(source.server, DUMP, source), source.server, config)
    return asked_of(source.kubeconfig, source.context, lambda client: snapshot.taken(client, config))


def publications(source: ClusterSource) -> dict[str, ReportWriter]:
    """By node, who wrote its report and when; empty where the source is not an API server."""
    from numalign.cli.results import topology

    return asked_of(source.kubeconfig, source.context, topology.listed) if source.is_cluster else {}


def asked_of(kubeconfig: str, context: str, ask: Callable[[Client], Awaitable[T]]) -> T:
    """What `ask` returns for a client of this cluster. BadObject if the cluster cannot be asked."""
    from numalign.kube import clock, errors
    from numalign.kube.access import access
    from numalign.kube.client import Client

    async def asked() -> T:
        async with Client(access.default(kubeconfig, context)) as client:
            return await ask(client)

    try:
        with clock.event_loop_runner() as runner:
            return runner.run(asked())
    except errors.KubeError as problem:
        raise BadObject("Cluster", "", "", f"cannot be asked: {problem}") from None


def _config(file: str) -> Configuration | None:
    from numalign.scheduler import settings

    if not file:
        return None
    document = fileio.only(file)
    return settings.read(document.value, document.place)


def content(path: str) -> bytes:
    """At most a little more than the limit: a device may never end."""
    from numalign.kube.dumps import LARGEST

    name = fileio.shown(path)
    try:
        raw = fileio.content(path, LARGEST + 1)
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or "not a file name"
        raise BadObject("File", name, "", f"cannot be read: {why}") from None
    if len(raw) > LARGEST:
        raise BadObject("File", name, "", f"larger than {LARGEST >> 30} GiB; no cluster is")
    return raw
