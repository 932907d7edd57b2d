"""Serves the dashboard: by `numalign dashboard` alone, or below a path of a scheduler's pages.

Alone it asks for a token that it makes itself, on the loopback, too: every user of a machine can reach its loopback. In
a scheduler it asks the same guard as the other pages do. The functions import what they call when they run."""

from __future__ import annotations

import hmac
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from numalign.api.errors import BadObject

if TYPE_CHECKING:
    from numalign.dashboard.source import Source
    from numalign.process.serve import Guard, Mounted
    from numalign.scheduler.main import Scheduler

PATH: Final = "/dashboard"
"""Where a scheduler serves it."""
COOKIE: Final = "numalign-dashboard"
OK: Final = 200
UNAUTHORIZED: Final = 401
EXTRA: Final = "needs the packages jinja2 and starlette: pip install 'numalign[dashboard]'"


def is_installed() -> bool:
    from importlib.util import find_spec

    return find_spec("starlette") is not None and find_spec("jinja2") is not None


def require(command: str) -> None:
    if not is_installed():
        raise BadObject(command, "", "", EXTRA)


@asynccontextmanager
async def serving(
    source: Source, address: tuple[str, int], token: str, tls: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """Serves until the block is left; yields the port. OSError where the port is taken."""
    from numalign.dashboard import app
    from numalign.dashboard.sessions import Sessions
    from numalign.process import asgi
    from numalign.process.http import listen, origins
    from numalign.process.http.connection import Served

    async def verify(given: str) -> int:
        return OK if hmac.compare_digest(given.encode(), token.encode()) else UNAUTHORIZED

    sessions = Sessions(verify, f"{COOKIE}-{address[1]}", secure=tls is not None)
    server = asgi.AsgiServer(app.application(source, sessions), secure=tls is not None)
    hosts = origins.of_machine(address[0])
    async with listen.listening(Served(server, asgi.LIMITS, hosts), address, tls) as port:
        yield port


def of_scheduler(scheduler: Scheduler, guard: Guard | None, secure: bool, recording: Path | None = None) -> Mounted:
    """The dashboard of a scheduler in this process. `guard`: None where its pages are open to this machine.
    `recording`: the folder that the scheduler records into."""
    from numalign.cli.results.moments.past import RecordingPast
    from numalign.cli.results.moments.sources import SchedulerSource
    from numalign.dashboard import app
    from numalign.dashboard.sessions import Sessions
    from numalign.process.serve import Mounted, PageRequest

    async def verify(token: str) -> int:
        assert guard is not None
        # One path for all pages, so that one right leads to the dashboard and one answer of the API server counts.
        asked = PageRequest(method="GET", path=PATH, headers={"authorization": f"Bearer {token}"})
        refused = await guard(asked)
        return OK if refused is None else refused.status

    names = ", ".join(scheduler.profiles)
    sessions = Sessions(verify, COOKIE, secure=secure) if guard is not None else None
    source = SchedulerSource(scheduler, f"scheduler {names}", recording)
    past = RecordingPast(recording, f"recording of scheduler {names}") if recording is not None else None
    return Mounted(app.application(source, sessions, past=past), secure=secure)
