"""Uids of this node's pods: from the kubelet's pods socket, else from the API server.

`looks` asks in every look, because a name may belong to another pod by then. A kubelet calls a static pod by a hash of
its manifest, the API server by the uid of its mirror. A kubelet that has just started knows of no pod yet: where its
books have entries of pods that it does not tell of, the API server is asked too, before they are taken for gone."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final, Protocol

from msgspec import structs

from numalign.agent.inventory import podidentity
from numalign.agent.inventory.podidentity import Name, Told
from numalign.agent.sources.pods import LocalPod, PodsError
from numalign.api.decode.structs import Wire
from numalign.api.objects.meta import ObjectMeta
from numalign.kube import errors, resources
from numalign.kube.client import Client
from numalign.kube.lists import Unreadable
from numalign.kube.request import Selection

LOG: Final = logging.getLogger(__name__)
MIRRORED: Final = "kubernetes.io/config.mirror"
HASH: Final = "kubernetes.io/config.hash"
FINISHED: Final = ("Succeeded", "Failed")
AGAIN: Final = 300.0
"""Seconds after which a kubelet that has no pods socket is asked again: it may be a newer one by then."""


class PodsSource(Protocol):
    """What is needed of `podsapi.PodsClient`."""

    async def list(self) -> tuple[LocalPod, ...]: ...


class Phase(Wire, frozen=True):
    phase: str = ""


class Named(Wire, frozen=True):
    """A pod, read for nothing but who it is, and whether it has ended."""

    metadata: ObjectMeta = ObjectMeta()
    status: Phase = Phase()


PODS: Final = resources.of("v1", "pods", "Pod", Named)


class Uids:
    def __init__(self, node: str, kubelet: PodsSource | None, client: Client | None) -> None:
        self._selection = Selection(fields=f"spec.nodeName={node}")
        self._kubelet = kubelet
        self._client = client
        self._ask_kubelet_after = 0.0

    async def told(self, written: frozenset[str], now: float) -> Told:
        """`written`: who has entries in the kubelet's books."""
        kubelet = await self._by_kubelet(now)
        if kubelet is not None and written <= kubelet.uids:
            return kubelet
        server, known = await self._by_api_server(), kubelet or Told()
        if server is None:
            return structs.replace(known, unsure=self._client is not None)
        finished = server.finished | known.finished
        return Told({**server.public, **known.public}, {**server.kept, **known.kept}, finished=finished)

    async def _by_kubelet(self, now: float) -> Told | None:
        if self._kubelet is None or now < self._ask_kubelet_after:
            return None
        try:
            return of_kubelet(await self._kubelet.list())
        except PodsError as problem:
            LOG.debug("uids are not told by the kubelet: %s", problem)
            self._ask_kubelet_after = now + AGAIN if problem.absent else 0.0
            return None

    async def _by_api_server(self) -> Told | None:
        if self._client is None:
            return None
        try:
            found = await self._client.every(PODS.everywhere(), self._selection)
        except errors.KubeError as problem:
            LOG.debug("uids are not told by the API server: %s", problem)
            return None
        return of_api_server(found)


def of_kubelet(pods: Iterable[LocalPod]) -> Told:
    """Finished ones have no uid to be found by: another pod may have the name by now."""
    every = list(pods)
    found = {(pod.namespace, pod.name): pod.uid for pod in every if pod.phase not in FINISHED}
    ended = frozenset((pod.namespace, pod.name) for pod in every) - found.keys()
    public = {name: uid for name, uid in found.items() if not podidentity.STATIC.fullmatch(uid)}
    return Told(public, found, finished=ended)


def of_api_server(pods: Iterable[Named | Unreadable]) -> Told:
    public: dict[Name, str] = {}
    kept: dict[Name, str] = {}
    finished: set[Name] = set()
    for pod in pods:
        name, annotations = (pod.metadata.namespace, pod.metadata.name), pod.metadata.annotations
        if isinstance(pod, Named) and pod.status.phase in FINISHED:
            finished.add(name)
            continue
        public[name] = pod.metadata.uid
        if MIRRORED in annotations and HASH in annotations:
            kept[name] = annotations[HASH]
    return Told(public, kept, finished=frozenset(finished))
