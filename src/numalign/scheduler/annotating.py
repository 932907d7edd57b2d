"""A client whose bindings carry annotations into the pods that they bind.

`binding` wraps the process's client in one for each pod that has something to say about itself. The API server merges
the annotations of a Binding into the pod's (kube-scheduler spec 4.9); everything else passes as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import structs

from numalign.kube.client import Client
from numalign.kube.objects import Document
from numalign.kube.request import Request
from numalign.kube.sending import Sender

BIND: Final = "bind"


class AnnotatingClient(Client):
    def __init__(self, client: Client, annotations: Mapping[str, str]) -> None:
        self.namespace = client.namespace
        self.sender = _AnnotatingSender(client.sender, annotations)


class _AnnotatingSender(Sender):
    def __init__(self, sender: Sender, annotations: Mapping[str, str]) -> None:
        self.metrics, self.clock = sender.metrics, sender.clock
        self._sender = sender
        self._annotations = annotations

    async def call(self, request: Request) -> bytes:
        return await self._sender.call(annotated(request, self._annotations))


def annotated(request: Request, annotations: Mapping[str, str]) -> Request:
    if request.verb != BIND or not annotations:
        return request
    body: Document = msgspec.json.decode(request.body)
    body["metadata"]["annotations"] = dict(annotations)
    return structs.replace(request, body=msgspec.json.encode(body))
