"""A whole embedded cluster for a test: started by the command that people type, ended with the block.

`up` gives the kubeconfig as soon as the cluster serves. Its folder is the test's own, so clusters of the people who run
the tests are not met."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import ssl
import subprocess
import sys
import time
from base64 import b64decode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

PATIENCE: Final = 180.0
"""Seconds. A machine that runs many tests at a time takes long to start a process."""
LOOK: Final = 0.02
NAME: Final = "tested"


class Up(Struct, frozen=True):
    kubeconfig: Path
    url: str

    def call(self, verb: str, path: str, body: Any = None) -> tuple[int, Any]:
        """One request, with the token and the authority of the kubeconfig."""
        tree = json.loads(self.kubeconfig.read_bytes())
        authority = b64decode(tree["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
        connection = http.client.HTTPSConnection(
            self.url.removeprefix("https://"), timeout=60, context=ssl.create_default_context(cadata=authority)
        )
        with contextlib.closing(connection):
            token = tree["users"][0]["user"]["token"]
            headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
            connection.request(verb, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())

    def namespace(self, name: str) -> str:
        tree = {"metadata": {"name": name}}
        code, said = self.call("POST", "/api/v1/namespaces", tree)
        assert code == 201, said
        return name


def numalign(line: str) -> list[str]:
    return [sys.executable, "-m", "numalign.cli", *line.split()]


def environment(home: Path) -> dict[str, str]:
    return {**os.environ, "NUMALIGN_CLUSTERS": str(home)}


@contextlib.contextmanager
def up(home: Path, options: str = "") -> Iterator[Up]:
    command = numalign(f"cluster up {NAME} --foreground {options}")
    with (home / "said").open("wb") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said, env=environment(home))
        try:
            yield _announced(home, process)
        finally:
            process.terminate()
            process.wait(PATIENCE)


@contextlib.contextmanager
def running(up: Up, line: str) -> Iterator[subprocess.Popen[str]]:
    """A command of ours against the cluster, while the block lasts; what is left of it afterwards is ended."""
    environment = {**os.environ, "KUBECONFIG": str(up.kubeconfig)}
    process = subprocess.Popen(
        numalign(line), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _announced(home: Path, process: subprocess.Popen[bytes]) -> Up:
    announced = home / NAME / "cluster.json"
    awaited(lambda: announced.exists() or process.poll() is not None)
    assert announced.exists(), (home / "said").read_text()
    tree = json.loads(announced.read_bytes())
    return Up(Path(tree["kubeconfig"]), tree["url"])


def awaited(holds: Callable[[], bool]) -> None:
    """For what another process does in its own time."""
    until = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < until
        time.sleep(LOOK)
