"""Serves the static files: the style sheet, our script, htmx and the icon. Their names are a fixed list."""

from __future__ import annotations

import gzip
from functools import cache
from importlib import resources
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

FOLDER: Final = resources.files("numalign.dashboard") / "static"
TYPES: Final = {
    "dashboard.css": "text/css; charset=utf-8",
    "details.css": "text/css; charset=utf-8",
    "dashboard.js": "text/javascript; charset=utf-8",
    "htmx.min.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
KEPT: Final = "public, max-age=31536000, immutable"
"""The address of a file has a fingerprint of its content."""


@cache
def content(name: str) -> bytes:
    return (FOLDER / name).read_bytes()


@cache
def _packed(name: str) -> bytes:
    return gzip.compress(content(name), mtime=0)


async def answer(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in TYPES:
        raise HTTPException(404, "There is no such file")
    headers = {"Cache-Control": KEPT, "Vary": "Accept-Encoding"}
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(content(name), media_type=TYPES[name], headers=headers)
    return Response(_packed(name), media_type=TYPES[name], headers=headers | {"Content-Encoding": "gzip"})
