"""Asking the kubelet itself how it is configured: its /configz, through the API server or at its own port.

`kubeletconfig.Sources` holds what these functions return. The API server needs the right to get nodes/proxy, which is
broad; the kubelet's own port needs get on nodes/configz, a token, and an authority to trust it by (exporter spec 5.4,
10). Certificates are verified, whoever asks."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from numalign.agent.kubeletconfig import Fetch
from numalign.api import errors
from numalign.kube import auth
from numalign.kube import errors as kubeerrors
from numalign.kube.auth import Access, Identity, Login
from numalign.kube.clock import Clock, SystemClock
from numalign.kube.request import Repeat, Request
from numalign.kube.sending import Sender
from numalign.kube.server import Server
from numalign.kube.tls import Contexts, Trust
from numalign.kube.transport import Limits

KIND: Final = "KubeletConfiguration"
SOURCE: Final = "/configz"
PORT: Final = 10250
SECONDS: Final = Limits(connections=1, connect_seconds=3.0, call_seconds=5.0)


def through_api_server(sender: Sender, node: str) -> Fetch:
    return _asking(sender, f"/api/v1/nodes/{node}/proxy/configz", f"configuration of node {node}")


def from_kubelet(host: str, token: Path, authority: Path, port: int = PORT, clock: Clock | None = None) -> Fetch:
    """`authority` is a file with whom the kubelet's serving certificate is signed by."""
    clock = clock or SystemClock()

    def read() -> Identity:
        raw = auth.file_bytes(str(token), SOURCE, "token")
        return Identity(auth.bearer(auth.token_text(raw, SOURCE, "token")))

    access = Access(
        server=Server(host, port),
        login=Login(auth.from_files(read), clock),
        contexts=Contexts(Trust(file=str(authority)), SOURCE),
    )
    return _asking(Sender(access, clock, SECONDS), SOURCE, f"configuration of the kubelet at {host}")


def _asking(sender: Sender, path: str, words: str) -> Fetch:
    # Sent once: there will be another look soon, and files to go by until then.
    request = Request(verb="get", method="GET", path=path, words=words, repeat=Repeat.REFUSED)

    async def fetch() -> bytes:
        try:
            return await sender.call(request)
        except kubeerrors.KubeError as problem:
            raise errors.BadObject(KIND, SOURCE, "", f"no answer: {problem}") from None

    return fetch
