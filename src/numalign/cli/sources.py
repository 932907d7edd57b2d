"""Where a command learns what a cluster is like: from its API server, from a file, or from a live scheduler.

`explain` and `topology` take the same options. Files are dumps of the scheduler, or what kubectl prints of nodes, pods
and reports as JSON or YAML. Whatever cannot be had raises BadObject, whose text is made to be shown as it is."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from msgspec import Struct

from numalign.api.errors import BadObject
from numalign.cli import yamlfiles
from numalign.cli.scheduler import pages
from numalign.cli.scheduler.pages import ANYBODY, Reach

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from numalign.api.schedulerconfig.configuration import Configuration
    from numalign.cli.topology.writers import Publication
    from numalign.kube.client import Client
    from numalign.scheduler.snapshot.snapshot import Snapshot

T = TypeVar("T")

DUMP = "/debug/dump"

Kubeconfig = Annotated[str, typer.Option(metavar="FILE", help="whose cluster; without one, as kubectl finds it")]
Context = Annotated[str, typer.Option(help="which context of the kubeconfig")]
File = Annotated[
    str,
    typer.Option(
        "--snapshot",
        metavar="FILE",
        help="instead of a cluster: a scheduler's dump, or the output of kubectl get nodes,pods,noderesourcetopologies "
        "-A -o json; - is stdin",
    ),
]
Server = Annotated[str, typer.Option(metavar="URL", help="a scheduler's pages: what it knows counts, not the cluster")]
Config = Annotated[str, typer.Option("--config", metavar="FILE", help="the KubeSchedulerConfiguration that decides")]


class Source(Struct, frozen=True, kw_only=True):
    """As it was typed; empty: not given."""

    kubeconfig: str = ""
    context: str = ""
    snapshot: str = ""
    server: str = ""
    reach: Reach = ANYBODY
    config: str = ""

    @property
    def is_cluster(self) -> bool:
        return not self.snapshot and not self.server


@contextmanager
def at_once() -> Iterator[None]:
    """Without looking for garbage: the objects of a large cluster are many, and all of them are needed to the end.
    Nor are they looked through when the process ends."""
    was_enabled = gc.isenabled()
    gc.disable()
    atexit.register(gc.freeze)
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def taken(source: Source) -> Snapshot:
    """Everything that decisions depend on, as it is now or was then."""
    from numalign.scheduler.snapshot import files
    from numalign.scheduler.snapshot import snapshot as collect

    if sum(map(bool, (source.snapshot, source.server, source.kubeconfig or source.context))) > 1:
        raise BadObject("Options", "", "", "--snapshot, --server and --kubeconfig lead to different places; give one")
    config = _config(source.config)
    if source.snapshot:
        return files.read(_bytes(source.snapshot), yamlfiles.shown(source.snapshot), config)
    if source.server:
        return files.read(pages.fetch(source.server, DUMP, source.reach), source.server, config)
    return _asked(source, lambda client: collect.taken(client, config))


def publications(source: Source) -> dict[str, Publication]:
    """By node, who wrote its report and when; nothing where only the API server could tell."""
    from numalign.cli.topology import writers

    return _asked(source, writers.listed) if source.is_cluster else {}


def _asked(source: Source, ask: Callable[[Client], Awaitable[T]]) -> T:
    from numalign.kube import clock, errors
    from numalign.kube.access import access
    from numalign.kube.client import Client

    async def asked() -> T:
        async with Client(access.default(source.kubeconfig, source.context)) as client:
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
    document = yamlfiles.only(file)
    return settings.read(document.value, document.place)


def _bytes(path: str) -> bytes:
    """A little more than the limit at most, whatever the file is: a device may never end."""
    from numalign.scheduler.snapshot.files import LARGEST

    name = yamlfiles.shown(path)
    try:
        raw = yamlfiles.content(path, LARGEST + 1)
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or "not a file name"
        raise BadObject("File", name, "", f"cannot be read: {why}") from None
    if len(raw) > LARGEST:
        raise BadObject("File", name, "", f"larger than {LARGEST >> 30} GiB; no cluster is")
    return raw
