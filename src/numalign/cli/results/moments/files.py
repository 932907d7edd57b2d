"""Writes the dashboard's pages of one moment as files, to attach to a bug report.

`numalign dashboard --export` calls `export`. The files need no server and lead to one another; what a server has to
answer, such as another order of the nodes, is not among them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final
from urllib.parse import quote

from numalign.api.errors import BadObject
from numalign.dashboard import app, statics
from numalign.dashboard.pages import fleet
from numalign.dashboard.rendering import Links
from numalign.dashboard.source import Source
from numalign.process import asgi
from numalign.process.http.messages import Request

PAGES: Final = ("fleet", "waiting", "decisions", "health")
MOST_NODES: Final = 500
"""Nodes with a page of their own."""
MOST_PODS: Final = 200
MOST_DECISIONS: Final = 200
OK: Final = 200


class FileLinks(Links):
    """The names of the files."""

    def __init__(self, written: set[tuple[str, ...]]) -> None:
        """`written`: the pages that become files; a link to another one leads nowhere."""
        super().__init__(".")
        self._written = written

    def __call__(self, page: str, *names: str, **query: object) -> str:
        filled = (page, *names, f"{query['resource']}") if "resource" in query else ()
        named = filled if filled in self._written else (page, *names)
        return file_name(*named) if named in self._written else "#main"

    def static(self, name: str) -> str:
        return name


def file_name(page: str, *names: str) -> str:
    """Names of objects may be no names of files, or longer ones."""
    if not names:
        return f"{page}.html"
    return f"{page}-{hashlib.blake2s('/'.join(names).encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}.html"


async def export(source: Source, folder: Path) -> int:
    """Returns how many files it wrote. BadObject if the folder is there, or cannot be written."""
    shown = await source.moment()
    pages: list[tuple[str, ...]] = [(page,) for page in PAGES]
    # The fleet once more for each further resource: a file has no form to choose one.
    queries: dict[tuple[str, ...], str] = {
        ("fleet", name): f"/fleet?resource={quote(name, safe='')}" for name in fleet.resources_of(shown)[1:]
    }
    pages += queries
    pages += [("node", name) for name in list(shown.nodes)[:MOST_NODES]]
    pages += [("waiting", *pod.name.split("/", 1)) for pod in shown.waiting[:MOST_PODS]]
    pages += [("decisions", each.key) for each in shown.decisions[:MOST_DECISIONS]]
    application = app.application(source, links=FileLinks(set(pages)))
    try:
        folder.mkdir(parents=True)
        for name in statics.TYPES:
            (folder / name).write_bytes(statics.content(name))
        for page in pages:
            path = queries.get(page) or "/" + "/".join(quote(each, safe="") for each in page)
            answer = await asgi.answered(application, Request("GET", path.encode(), {}), secure=False)
            if answer.code == OK:
                (folder / file_name(*page)).write_bytes(answer.body)
    except OSError as problem:
        raise BadObject("Folder", str(folder), "--export", f"cannot be written: {problem.strerror}") from None
    return sum(1 for _ in folder.iterdir())
