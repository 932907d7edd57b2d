"""A real kube-apiserver with its etcd on loopback, for tests that hold ours against it.

`running` starts both in a folder of the test's own and stops them after; `RealServer.call` is one request. Nothing here
retries or waits beyond the start."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from numalign.lab import binaries, catalogue, toolchain

TOKEN = "loopback"
MEDIA = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
SECONDS_TO_START = 90


def programs() -> tuple[Path, Path] | None:
    """etcd and kube-apiserver, built if they are not there yet; None without Go."""
    if not toolchain.found():
        return None
    etcd, apiserver = binaries.build(catalogue.chosen(["etcd", "kube-apiserver"]), lambda _: None)
    return etcd.path, apiserver.path


class RealServer:
    def __init__(self, port: int) -> None:
        context = ssl.create_default_context()
        # The server makes up its certificate at the start, so there is none to know beforehand.
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        self.connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=30)

    def call(self, verb: str, path: str, body: Any = None, media: str = "application/json") -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": media, "Accept": "application/json"}
        self.connection.request(verb, path, None if body is None else json.dumps(body), headers)
        answer = self.connection.getresponse()
        data = answer.read()
        return answer.status, json.loads(data) if data[:1] == b"{" else data.decode()

    def patch(self, how: str, path: str, body: Any) -> tuple[int, Any]:
        return self.call("PATCH", path, body, MEDIA[how])

    def is_ready(self) -> bool:
        try:
            return self.call("GET", "/readyz") == (200, "ok")
        except (OSError, http.client.HTTPException):
            self.connection.close()
            return False


@contextlib.contextmanager
def running(folder: Path, etcd: Path, apiserver: Path) -> Iterator[RealServer]:
    client, peer, secure = (_free_port() for _ in range(3))
    (folder / "tokens.csv").write_text(f'{TOKEN},admin,admin,"system:masters"\n')
    key = folder / "service-accounts.key"
    subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_process(folder, "etcd", [etcd, *_etcd_flags(folder, client, peer)]))
        stack.enter_context(_process(folder, "api", [apiserver, *_api_flags(folder, client, secure, key)]))
        server = RealServer(secure)
        stack.callback(server.connection.close)
        deadline = time.monotonic() + SECONDS_TO_START
        while not server.is_ready():
            assert time.monotonic() < deadline, (folder / "api.log").read_text()[-2000:]
            time.sleep(0.2)
        yield server


def _etcd_flags(folder: Path, client: int, peer: int) -> list[str]:
    at, among = f"http://127.0.0.1:{client}", f"http://127.0.0.1:{peer}"
    return [
        f"--data-dir={folder / 'data'}",
        f"--listen-client-urls={at}",
        f"--advertise-client-urls={at}",
        f"--listen-peer-urls={among}",
        f"--initial-advertise-peer-urls={among}",
        f"--initial-cluster=default={among}",
        "--unsafe-no-fsync",
    ]


def _api_flags(folder: Path, etcd: int, secure: int, key: Path) -> list[str]:
    return [
        f"--etcd-servers=http://127.0.0.1:{etcd}",
        f"--secure-port={secure}",
        "--bind-address=127.0.0.1",
        f"--cert-dir={folder / 'certificates'}",
        f"--token-auth-file={folder / 'tokens.csv'}",
        "--authorization-mode=AlwaysAllow",
        "--service-account-issuer=https://loopback",
        f"--service-account-signing-key-file={key}",
        f"--service-account-key-file={key}",
        "--disable-admission-plugins=ServiceAccount",
        "--service-cluster-ip-range=10.0.0.0/24",
    ]


@contextlib.contextmanager
def _process(folder: Path, name: str, command: list[Any]) -> Iterator[None]:
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
        try:
            yield
        finally:
            process.terminate()
            process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
