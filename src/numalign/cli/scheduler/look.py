"""`numalign scheduler state`, `dump` and `repeat`: a look inside, taken along, and one decision made again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from numalign.cli import output
from numalign.cli.output import Format
from numalign.cli.scheduler import pages
from numalign.cli.scheduler.pages import DEFAULT, Authority, Insecure, PagesServer, ServerAccess, TokenFile

if TYPE_CHECKING:
    from numalign.scheduler.snapshot.snapshot import Snapshot

DIFFERS = 1
GZIP = ".gz"

Pod = Annotated[str, typer.Option("--pod", metavar="NAMESPACE/NAME", help="one pod: its story, and where it stands")]
Node = Annotated[str, typer.Option("--node", metavar="NAME", help="one node: its zones, and the pods in them")]
Nodes = Annotated[bool, typer.Option("--nodes", help="every node, too")]
Output = Annotated[Format, typer.Option("--output", "-o", help="How to print the answer.")]
Written = Annotated[
    str, typer.Option("--file", "-f", metavar="FILE", help="where to; packed if it ends in .gz; - is stdout")
]
Dump = Annotated[str, typer.Argument(metavar="FILE", help="A scheduler's dump, or what kubectl prints of a cluster.")]
Whose = Annotated[str, typer.Option("--pod", metavar="NAMESPACE/NAME", help="whose decision")]
There = Annotated[str, typer.Option("--node", metavar="NAME", help="one node in depth: why not, its score, its zones")]


def state(
    server: PagesServer = DEFAULT,
    pod: Pod = "",
    node: Node = "",
    nodes: Nodes = False,
    fmt: Output = Format.TABLE,
    token_file: TokenFile = "",
    certificate_authority: Authority = "",
    insecure: Insecure = False,
) -> None:
    """Show what a running scheduler knows: who waits and why, who is on the way, and how nodes stand.

    Exit code: 0, or 2 if the scheduler cannot be asked or does not know the pod or node."""
    from numalign.cli.scheduler import draw

    query = {"pod": _qualified(pod), "node": node, "nodes": "all" if nodes else ""}
    reach = ServerAccess(token_file=token_file, authority=certificate_authority, insecure=insecure)
    told = _page(server, "/debug/state", reach, **{name: value for name, value in query.items() if value})
    if fmt is not Format.TABLE:
        return output.show(output.structured(told, fmt))
    try:
        drawn = draw.state(told)
    except (LookupError, TypeError, AttributeError, ValueError):
        output.fail(f"Scheduler {server}: tells its state in a way that is not known here; -o json shows it as it came")
    if query["pod"] and not draw.knows_pod(told):
        output.fail(f"Scheduler {server}: knows no pod {query['pod']}; it remembers those that it tried lately")
    if node and not draw.knows_node(told):
        output.fail(f"Scheduler {server}: knows no node {node}")
    output.show(drawn)


def dump(
    file: Written,
    server: PagesServer = DEFAULT,
    token_file: TokenFile = "",
    certificate_authority: Authority = "",
    insecure: Insecure = False,
) -> None:
    """Write down everything that a running scheduler decides by, to be looked at or repeated elsewhere.

    There are no secrets in it: of pods only what decisions look at. Exit code: 0, or 2 if it cannot be had."""
    from numalign.api.errors import BadObject

    try:
        reach = ServerAccess(token_file=token_file, authority=certificate_authority, insecure=insecure)
        text = pages.fetch(server, "/debug/dump", reach)
    except BadObject as problem:
        output.fail(str(problem))
    if file == "-":
        return output.show(text.decode())
    _write(file, text)


def repeat(file: Dump, pod: Whose, node: There = "", fmt: Output = Format.TABLE) -> None:
    """Make one decision of a dump again, and hold it against what the scheduler had decided.

    Exit code: 0 if it comes out the same or was not remembered, 1 if it does not, 2 if the file cannot be used."""
    from numalign.api.errors import BadObject
    from numalign.cli.scheduler import replay as schedulerrepeat
    from numalign.scheduler.explain import replay as repeating

    try:
        again = repeating.repeated(_snapshot(file), _qualified(pod), node)
    except BadObject as problem:
        output.fail(str(problem))
    for left_out in again.problems:
        output.warn(left_out)
    is_table = fmt is Format.TABLE
    output.show(schedulerrepeat.drawn(again) if is_table else output.structured(schedulerrepeat.plain(again), fmt))
    if again.agrees is False:
        raise typer.Exit(DIFFERS)


def _qualified(pod: str) -> str:
    return pod if not pod or "/" in pod else f"default/{pod}"


def _page(server: str, path: str, reach: ServerAccess, **query: str) -> dict[str, Any]:
    import msgspec

    from numalign.api.errors import BadObject

    try:
        told: dict[str, Any] = msgspec.json.decode(pages.fetch(server, path, reach, **query), type=dict)
    except BadObject as problem:
        output.fail(str(problem))
    except msgspec.MsgspecError:
        output.fail(f"Scheduler {server}: answers with something else than its state; is it a scheduler of ours?")
    return told


def _snapshot(file: str) -> Snapshot:
    from numalign.cli import sources

    return sources.taken(sources.Source(snapshot=file))


def _write(file: str, text: bytes) -> None:
    from numalign.scheduler.snapshot import files

    try:
        _replace(Path(file).resolve(), files.packed(text) if file.endswith(GZIP) else text)
    except (OSError, ValueError, RuntimeError) as problem:
        output.fail(f"{file} cannot be written: {getattr(problem, 'strerror', None) or 'not a file name'}")


def _replace(path: Path, content: bytes) -> None:
    """What was there stays until all of the new is there, unless it is a device."""
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_bytes(content)
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise
