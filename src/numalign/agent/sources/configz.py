"""Asking the kubelet itself how it is configured: its /configz, through the API server.

`kubeletconfig.Sources` holds what is returned here. It takes the right to get nodes/proxy, which is broad (exporter
spec 5.4, 10), so that it has to be asked for."""

from __future__ import annotations

from typing import Final

from numalign.agent.sources.kubeletconfig import Fetch
from numalign.api import errors
from numalign.kube import errors as kubeerrors
from numalign.kube.request import Repeat, Request
from numalign.kube.transport.sender import Sender
from numalign.kube.transport.transport import Limits

KIND: Final = "KubeletConfiguration"
SOURCE: Final = "/configz"
PORT: Final = 10250
SECONDS: Final = Limits(connections=1, connect_seconds=3.0, call_seconds=5.0)


def through_api_server(sender: Sender, node: str) -> Fetch:
    return _asking(sender, f"/api/v1/nodes/{node}/proxy/configz", f"configuration of node {node}")


def _asking(sender: Sender, path: str, words: str) -> Fetch:
    # Sent once: there will be another look soon, and files to go by until then.
    request = Request(verb="get", method="GET", path=path, words=words, repeat=Repeat.REFUSED)

    async def fetch() -> bytes:
        try:
            return await sender.call(request)
        except kubeerrors.KubeError as problem:
            raise errors.BadObject(KIND, SOURCE, "", f"no answer: {problem}") from None

    return fetch
