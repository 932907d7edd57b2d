"""Where a command reads a cluster from: an API server, a file, or the pages of a live scheduler.

`explain` and `topology` take the options of `ClusterSource`, the commands that look at a scheduler those of
`SchedulerPages`. Files are dumps of the scheduler, or what kubectl prints of nodes, pods and reports as JSON or YAML.
From outside the cluster, `kubectl port-forward` leads to the loopback of the scheduler's pod. Errors are raised as
BadObject, with a text to print as it is; it never contains the token."""

from __future__ import annotations

import atexit
import gc
import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import TYPE_CHECKING, Annotated, TypeVar
from urllib.parse import urlencode, urlsplit

import typer
from msgspec import Struct, structs

from numalign.api.errors import BadObject, clipped
from numalign.cli import fileio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from numalign.api.objects.pod import Pod
    from numalign.api.schedulerconfig.configuration import Configuration
    from numalign.cli.results.podfiles import PriorityClass
    from numalign.cli.results.topology import ReportWriter
    from numalign.kube.client import Client
    from numalign.kube.errors import KubeError
    from numalign.kube.resources import Named, Target
    from numalign.kube.transport.auth import Access
    from numalign.scheduler.explain.serving import SchedulerSigns
    from numalign.scheduler.snapshot.snapshot import Snapshot
    from numalign.simulator.registry import RunningCluster


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


Kubeconfig = Annotated[
    str, typer.Option(metavar="FILE", help="The kubeconfig of the cluster. Default: as kubectl finds it.")
]
Context = Annotated[str, typer.Option(metavar="NAME", help="The context of the kubeconfig.")]


class SchedulerPages(ServerAccess, frozen=True, kw_only=True):
    """A live scheduler, and the credentials for it; `found` fills in what was not given."""

    server: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="Where the scheduler serves its pages. Default: the scheduler in the embedded cluster of the "
            f"kubeconfig, else {DEFAULT}.",
        ),
    ] = ""
    kubeconfig: Kubeconfig = ""
    context: Context = ""

    def found(self) -> SchedulerPages:
        """With the address, and with the credentials that an embedded cluster keeps in files."""
        if self.server:
            return self
        cluster = _embedded(self.kubeconfig, self.context)
        if cluster is None:
            return structs.replace(self, server=DEFAULT)
        served = next((each for each in cluster.schedulers if each.pages), None)
        if served is None:
            why = "runs no numalign scheduler that has pages; start it with --with-scheduler, or give --server"
            raise BadObject("Cluster", cluster.name, "", why)
        return structs.replace(
            self,
            server=served.pages,
            token_file=served.token_file,
            certificate_authority=served.certificate_authority,
        )


def _embedded(kubeconfig: str, context: str) -> RunningCluster | None:
    """The embedded cluster of this machine that a kubeconfig leads to."""
    from numalign.simulator import registry

    running = {urlsplit(each.url).netloc: each for each in registry.every()}
    if not running:
        return None
    from numalign.kube.access import access

    try:
        return running.get(access.default(kubeconfig, context).server.authority)
    except BadObject:
        if kubeconfig or context:
            raise
        return None


ANONYMOUS = ServerAccess()


def fetch(server: str, path: str, access: ServerAccess = ANONYMOUS, **query: str) -> bytes:
    """The page's body."""
    return _asked(server, path, access, None, query)


def put(server: str, path: str, access: ServerAccess, content: bytes, **query: str) -> bytes:
    """The page's answer to a PUT."""
    return _asked(server, path, access, content, query)


def _asked(server: str, path: str, access: ServerAccess, content: bytes | None, query: Mapping[str, str]) -> bytes:
    connection = _connection(server, access)
    asked = f"{urlsplit(server).path.rstrip('/')}{path}" + (f"?{urlencode(query)}" if query else "")
    try:
        with closing(connection):
            connection.request("GET" if content is None else "PUT", asked, content, _headers(access))
            answer = connection.getresponse()
            body = answer.read()
    except ssl.SSLCertVerificationError as problem:
        hint = "give --certificate-authority, or --insecure-skip-tls-verify"
        raise _bad(server, f"is not trusted: {problem.verify_message}; {hint}") from None
    except (OSError, HTTPException) as problem:
        why = getattr(problem, "strerror", None) or str(problem) or type(problem).__name__
        raise _bad(server, f"cannot be reached: {why}{_hint(server)}") from None
    if answer.status != 200:
        raise _bad(server, f"answers {answer.status} to {path}: {_refusal(answer.status, body, access)}")
    return body


def _hint(server: str) -> str:
    if server != DEFAULT:
        return ""
    return (
        "; no scheduler serves its pages there: give --server, or reach the scheduler's pod with kubectl port-forward"
    )


def _refusal(status: int, body: bytes, access: ServerAccess) -> str:
    from numalign.kube import errors

    # Of a Status object, only the message is printed.
    message = errors.on_one_line(errors.read_status(body).message)
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
N = TypeVar("N", bound="Named")

DUMP = "/debug/dump"

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
    config = configuration(source.config) if isinstance(source, ProfiledSource) else None
    if source.snapshot:
        return files.read(content(source.snapshot), fileio.shown(source.snapshot), config)
    if source.server:
        return files.read(fetch(source.server, DUMP, source), source.server, config)
    return asked_of(source.kubeconfig, source.context, lambda client: snapshot.taken(client, config))


def publications(source: ClusterSource) -> dict[str, ReportWriter]:
    """By node, who wrote its report and when; empty where the source is not an API server."""
    from numalign.cli.results import topology

    return asked_of(source.kubeconfig, source.context, topology.listed) if source.is_cluster else {}


def selecting(selector: str) -> Callable[[Mapping[str, str]], bool]:
    """Whether labels match a selector as kubectl takes it; BadObject if it is none."""
    from numalign.simulator.apiserver.storage import labelselectors
    from numalign.simulator.apiserver.storage.errors import StatusError

    try:
        requirements = labelselectors.parse(selector)
    except StatusError as problem:
        raise BadObject("Option", "--selector", "", str(problem)) from None
    return lambda labels: labelselectors.matches(requirements, labels)


MOST_ASKED = 20
"""Pods without a trace of a scheduler whose Events are asked for."""


def signs(source: ClusterSource, pods: Sequence[Pod]) -> dict[str, SchedulerSigns]:
    """By uid, what the API server has about the schedulers that may serve pending pods; nothing from other sources."""
    from numalign.kube import errors, lists
    from numalign.kube.request import Selection
    from numalign.kube.resources import EVENTS, LEASES
    from numalign.scheduler.explain import serving

    async def listed(client: Client, target: Target[N], fields: str) -> list[N]:
        try:
            return lists.readable(await client.every(target, Selection(fields=fields)))
        except (errors.NotFound, errors.Forbidden):
            return []

    async def ask(client: Client) -> dict[str, SchedulerSigns]:
        leases = await listed(client, LEASES.everywhere(), f"metadata.namespace!={serving.NODE_LEASES}")
        found = {}
        for meta in (each.metadata for each in alone[:MOST_ASKED]):
            events = await listed(client, EVENTS.within(meta.namespace), f"regarding.uid={meta.uid}")
            found[meta.uid] = serving.SchedulerSigns(leases=leases, events=events)
        return found

    alone = [pod for pod in pods if serving.unattended(pod, (), serving.SchedulerSigns(), "") is not None]
    return asked_of(source.kubeconfig, source.context, ask) if source.is_cluster and alone else {}


def namespace(source: ClusterSource) -> str:
    """The namespace of the context, as kubectl takes it; `default` where no cluster is asked."""
    if not source.is_cluster:
        return "default"
    from numalign.kube import errors
    from numalign.kube.access import access

    try:
        return access.default(source.kubeconfig, source.context).namespace or "default"
    except errors.KubeError as problem:
        raise BadObject("Cluster", "", "", f"cannot be asked: {problem}") from None


def prioritised(source: ClusterSource, pods: list[Pod], written: Sequence[PriorityClass] = ()) -> list[Pod]:
    """Pods that are not of the cluster yet, with the priorities that its priority classes give them.

    `written`: classes that are in the pods' files, which would be those of the cluster once they are applied."""
    from numalign.cli import output
    from numalign.cli.results import podfiles
    from numalign.kube import errors, lists

    async def ask(client: Client) -> list[podfiles.PriorityClass]:
        try:
            return lists.readable(await client.every(podfiles.CLASSES.everywhere()))
        except (errors.NotFound, errors.Forbidden):
            return []

    classes = asked_of(source.kubeconfig, source.context, ask) if source.is_cluster else []
    found, unknown = podfiles.prioritised(pods, [*classes, *written])
    for name in unknown:
        output.warn(f"priority class {name} is not known; the priority of its pods counts as 0")
    return found


def asked_of(kubeconfig: str, context: str, ask: Callable[[Client], Awaitable[T]]) -> T:
    """What `ask` returns for a client of this cluster. BadObject if the cluster cannot be asked."""
    from numalign.kube import clock, errors
    from numalign.kube.client import Client

    found = _access(kubeconfig, context)

    async def asked() -> T:
        async with Client(found) as client:
            return await ask(client)

    try:
        with clock.event_loop_runner() as runner:
            return runner.run(asked())
    except errors.KubeError as problem:
        raise unanswered(found, problem) from None


def unanswered(found: Access, problem: KubeError) -> BadObject:
    """A call that failed, with the address of the API server and what to do."""
    server = f"{'https' if found.server.secure else 'http'}://{found.server.authority}"
    return BadObject("Cluster", server, "", f"cannot be asked: {problem}{_advice(problem)}")


def _access(kubeconfig: str, context: str) -> Access:
    """As kubectl finds it. Where there is none at all, the error says how to get one."""
    from numalign.kube.access import access
    from numalign.kube.access import kubeconfig as files
    from numalign.simulator import registry

    try:
        return access.default(kubeconfig, context)
    except BadObject as problem:
        if kubeconfig or context or os.environ.get(files.VARIABLE) or "cannot be read" not in problem.why:
            raise
        running = [each for each in registry.every() if each.kubeconfig]
        hint = f"; embedded clusters run: export KUBECONFIG={running[0].kubeconfig}" if running else ""
        why = f"{problem.why}; give --kubeconfig, or set KUBECONFIG{hint}"
        raise BadObject("Kubeconfig", problem.name, problem.field, why) from None


def _advice(problem: KubeError) -> str:
    from numalign.kube import errors

    match problem:
        case errors.Unauthorized():
            return "; log in again, or name another kubeconfig or --context: the API server does not know this user"
        case errors.Unreachable():
            return "; is the cluster up, and is this its kubeconfig?"
        # A list of nodes is there on every API server.
        case errors.NotFound(verb="list", status=status) if not status.reason:
            return "; is this a Kubernetes API server?"
    return ""


def configuration(file: str) -> Configuration | None:
    """The configuration of a file; None: no file is given."""
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
