"""Serves the dashboard of a made-up cluster from a thread, as browsers need it beside the test."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from numalign.dashboard import app
from numalign.dashboard.sessions import Sessions
from numalign.dashboard.source import Source
from numalign.process import asgi
from numalign.process.http import listen, origins
from numalign.process.http.connection import Served

PAGES = ("fleet", "node/gpu-0", "waiting", "waiting/ml/train-7", "decisions", "decisions/1", "health")
"""Every page of `moments.small`."""


@contextmanager
def served(source: Source, signing_in: Sessions | None = None, port: int = 0) -> Iterator[str]:
    """Yields the address of the dashboard."""
    ready, found = threading.Event(), list[int]()
    loop = asyncio.new_event_loop()
    stopping = asyncio.Event()

    async def serve() -> None:
        application = asgi.AsgiServer(app.application(source, signing_in), secure=False)
        handled = Served(application, asgi.LIMITS, origins.of_machine("127.0.0.1"))
        async with listen.listening(handled, ("127.0.0.1", port)) as bound:
            found.append(bound)
            ready.set()
            await stopping.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    ready.wait(30)
    try:
        yield f"http://127.0.0.1:{found[0]}"
    finally:
        loop.call_soon_threadsafe(stopping.set)
        thread.join(30)
        loop.close()
