"""A real kube-apiserver with its etcd on loopback, for tests that hold ours against it.

`running` starts both in a folder of the test's own and stops them after; `RealServer.call` is one request. Only
`until` waits after the start."""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from numalign.lab import controlplane
from numalign.lab.controlplane import ControlPlane, ServerBinaries

MEDIA = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}

BACKGROUND: Final = 60.0
IDLE: Final = 30.0
"""Seconds after which a server may have closed a connection that nobody used."""


def programs() -> tuple[Path, Path] | None:
    """etcd and kube-apiserver, built if they are not there yet; None without Go."""
    found = controlplane.programs()
    return (found.etcd, found.apiserver) if found is not None else None


class RealServer:
    def __init__(self, found: ControlPlane) -> None:
        context = ssl.create_default_context(cafile=str(found.authority))
        self.connection = http.client.HTTPSConnection("127.0.0.1", found.port, context=context, timeout=30)
        self.token = found.token
        self._used = time.monotonic()

    def call(
        self, verb: str, path: str, body: Any = None, media: str = "application/json", *, token: str = ""
    ) -> tuple[int, Any]:
        headers = {
            "Authorization": f"Bearer {token or self.token}",
            "Content-Type": media,
            "Accept": "application/json",
        }
        if time.monotonic() - self._used > IDLE:
            self.connection.close()  # the next request opens it anew
        self.connection.request(verb, path, None if body is None else json.dumps(body), headers)
        answer = self.connection.getresponse()
        data = answer.read()
        self._used = time.monotonic()
        return answer.status, json.loads(data) if data[:1] == b"{" else data.decode()

    def until(self, holds: Callable[[], bool]) -> None:
        """For what the server does in the background, such as serving a new kind or compiling a policy."""
        until = time.monotonic() + BACKGROUND
        while not holds():
            assert time.monotonic() < until, f"the server did not do so in {BACKGROUND:g} s"
            time.sleep(0.1)

    def patch(self, how: str, path: str, body: Any) -> tuple[int, Any]:
        return self.call("PATCH", path, body, MEDIA[how])


@contextlib.contextmanager
def running(folder: Path, etcd: Path, apiserver: Path) -> Iterator[RealServer]:
    with controlplane.running(folder, ServerBinaries(etcd, apiserver)) as found:
        server = RealServer(found)
        with contextlib.closing(server.connection):
            yield server
