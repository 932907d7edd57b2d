"""`numalign dashboard`: pages for a browser that show a cluster, a scheduler, a file or a recording.

The command imports what it calls when it runs, so that help stays fast."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from numalign.api.errors import BadObject
from numalign.cli import dashboards, output, servers, sources
from numalign.cli.options import BindAddress, bundled
from numalign.cli.servers import Certificate, Key
from numalign.cli.sources import ClusterSource

if TYPE_CHECKING:
    import ssl

    from numalign.cli.results.moments.scene import Scene
    from numalign.cli.results.moments.sources import SceneSource

NAME: Final = "dashboard"
app = typer.Typer()

Recorded = Annotated[
    str, typer.Option(metavar="FOLDER", help="Show a recording of the scheduler, with a slider for its time.")
]
Port = Annotated[int, typer.Option(metavar="PORT", min=1, max=65535, help="Port of the pages.")]
TokenFile = Annotated[
    str,
    typer.Option(
        "--dashboard-token-file", metavar="FILE", help="The token that the pages ask for. Default: a new one each time."
    ),
]
Export = Annotated[
    str, typer.Option(metavar="DIR", help="Write the pages of this moment as files into a new folder, and end.")
]


@app.command(epilog="Example: numalign dashboard --snapshot dump.json.gz")
@bundled
def dashboard(
    source: ClusterSource,
    recording: Recorded = "",
    bind_address: BindAddress = "127.0.0.1",
    port: Port = 8270,
    tls_certificate: Certificate = "",
    tls_key: Key = "",
    dashboard_token_file: TokenFile = "",
    export: Export = "",
) -> None:
    """Show nodes, waiting pods and decisions in a browser. Nothing in the cluster is changed.

    A scheduler serves the same pages under /dashboard. Exit code: 0 after a signal or an export, 2 if the cluster
    cannot be read or the pages cannot be served."""
    dashboards.require(NAME)
    shown = _source(source, recording)
    if export:
        from numalign.cli.results.moments import files

        written = asyncio.run(files.export(shown, Path(export)))
        return output.show(f"wrote {written} files; open {Path(export, 'fleet.html')}")
    certificate = (
        servers.from_files(NAME, tls_certificate, tls_key)
        if tls_certificate or tls_key
        else servers.of_our_own(NAME, bind_address)
    )
    token = _token(dashboard_token_file)
    try:
        asyncio.run(_serve(shown, (bind_address, port), token, certificate.context if certificate else None))
    except OSError as problem:
        output.fail(f"{bind_address}:{port} cannot be served: {problem.strerror or problem}")


async def _serve(source: SceneSource, address: tuple[str, int], token: str, tls: ssl.SSLContext | None) -> None:
    from numalign.process import tasks

    async with dashboards.serving(source, address, token, tls):
        host = f"[{address[0]}]" if ":" in address[0] else address[0]
        output.show(f"{'https' if tls else 'http'}://{host}:{address[1]}/sign-in?token={token}")
        await tasks.until_signalled(asyncio.Event().wait())


def _token(file: str) -> str:
    if not file:
        return secrets.token_urlsafe(24)
    from numalign.kube.transport import auth

    return auth.token_text(auth.file_bytes(file, "", "--dashboard-token-file"), "", "--dashboard-token-file")


def _source(source: ClusterSource, recording: str) -> SceneSource:
    from numalign.cli.results.moments import scene
    from numalign.cli.results.moments.sources import FixedSource, ReadSource, RecordedSource

    if recording:
        if source.snapshot or source.server or source.kubeconfig or source.context:
            raise BadObject("Options", "", "", "--recording shows no cluster; give it alone")
        return RecordedSource(Path(recording))

    def read() -> Scene:
        with sources.at_once():
            return scene.of_snapshot(sources.taken(source), _origin(source), sources.publications(source))

    first = read()
    return FixedSource(first) if source.snapshot else ReadSource(read, first)


def _origin(source: ClusterSource) -> str:
    if source.snapshot:
        return f"file {source.snapshot}"
    if source.server:
        return f"scheduler {source.server}"
    from numalign.kube.access import access

    name = access.context_name(source.kubeconfig, source.context)
    return f"cluster {name}" if name else "the cluster of this pod"
