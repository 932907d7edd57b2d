"""A response that is made in a task of its own, within a time.

`process.serve` makes pages by it, `process.asgi` the responses of applications."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from numalign.process.http.connection import Connection
from numalign.process.http.messages import TEXT, Request, Response

LOG: Final = logging.getLogger(__name__)
PATIENCE: Final = 30.0
"""Seconds in which a response must be made."""


class PendingResponse:
    """503 where it takes longer, 500 where it fails. The task ends with the connection."""

    def __init__(self, request: Request, answered: Callable[[], Awaitable[Response]]) -> None:
        self._request, self._answered = request, answered

    def open(self, connection: Connection) -> None:
        self._task = asyncio.create_task(self._answer(connection))

    def end(self) -> None:
        """The client sees the end of the connection."""

    def close(self) -> None:
        self._task.cancel()

    async def _answer(self, connection: Connection) -> None:
        request = self._request
        try:
            async with asyncio.timeout(PATIENCE):
                found = await self._answered()
        except TimeoutError:
            found = Response(503, f"not ready within {PATIENCE:g} s\n".encode(), TEXT)
        except Exception:
            LOG.exception("Failed to serve %s %s", request.method, request.path)
            found = Response(500, b"internal error\n", TEXT)
        connection.finish(found)
