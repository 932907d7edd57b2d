"""Rests of a campaign: all programs run, no pod arrives, and every pod must reach its right state.

`running` calls it. A pod is in its right state if it runs, has ended, or waits with a reason and fits on no node
according to the model and the kubelets' checkpoints. A pod that does not get there in time is stuck. `drain` makes room
until no pod waits."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from typing import Final

from numalign.api.objects.pod import Pod
from numalign.kube import errors
from numalign.kube.client import Client
from numalign.kube.resources import PODS
from numalign.kubelet import admission
from numalign.lab.campaign.acting import insist
from numalign.lab.campaign.books import Books
from numalign.lab.campaign.watching import NAMESPACE, Watching, asked, waits
from numalign.lab.spec import NodeSpec

LOOK: Final = 1.0
CALM: Final = 3
"""Consecutive checks that must succeed, because changes take a moment."""
PATIENCE: Final = 90.0
"""Seconds. A pod that was refused often waits up to ten, and a new leader takes about 20."""
AT_A_TIME: Final = 8


class Resting:
    def __init__(self, nodes: Sequence[NodeSpec], client: Client, watching: Watching) -> None:
        self._nodes = nodes
        self._client = client
        self._watching = watching
        self._told: set[str] = set()

    async def rest(self) -> None:
        """Wait until all pods are in their right state or the time is over; record stuck pods once."""
        await self._watching.looked_again()
        calm, left = 0, PATIENCE / LOOK
        while calm < CALM and left > 0:
            await asyncio.sleep(LOOK)
            left -= 1
            calm = 0 if self.wrong() else calm + 1
        if calm < CALM:
            for uid, why in self.wrong().items():
                self._write(uid, why)

    async def drain(self) -> None:
        """Delete running pods, a few at a time, until every waiting pod has run."""
        while waiting := [pod for pod in self._watching.pods.values() if not pod.spec.node_name]:
            running = [pod for pod in self._watching.pods.values() if pod.spec.node_name]
            for pod in sorted(running, key=lambda each: each.metadata.creation_timestamp or "")[:AT_A_TIME]:
                await self._delete(pod)
            await self.rest()
            if not running:
                return self._write_all(waiting, "waits, and every node is empty")

    def wrong(self) -> dict[str, str]:
        """The pods that are not in their right state, by uid."""
        return {pod.metadata.uid: why for pod in self._watching.pods.values() if (why := self._why(pod))}

    def _why(self, pod: Pod) -> str:
        if pod.has_started or pod.status.is_finished:
            return "is to go, and stays" if pod.metadata.deletion_timestamp else ""
        if pod.spec.node_name:
            return "is bound, and does not start"
        if not waits(pod):
            return "pending without a reason"
        place = next(self._places(pod), "")
        return f"fits on {place}, and waits: {waits(pod)}" if place else ""

    def _places(self, pod: Pod) -> Iterator[str]:
        home = pod.spec.node_selector.get("kubernetes.io/hostname")
        for node in self._nodes:
            if home in (None, node.name) and node.name in self._watching.books:
                there = [each for each in self._watching.pods.values() if _is_on(each, node.name)]
                if fits(node, self._watching.books[node.name], there, pod):
                    yield node.name

    def _write_all(self, pods: Sequence[Pod], why: str) -> None:
        for pod in pods:
            self._write(pod.metadata.uid, why)

    def _write(self, uid: str, why: str) -> None:
        pod = self._watching.pods.get(uid)
        if pod is not None and uid not in self._told:
            self._told.add(uid)
            self._watching.history.write("stuck", name=pod.metadata.name, uid=uid, node=pod.spec.node_name, words=why)

    async def _delete(self, pod: Pod) -> None:
        self._watching.history.write("asked-to-go", name=pod.metadata.name, uid=pod.metadata.uid)
        with contextlib.suppress(errors.NotFound):
            await insist(lambda: self._client.delete(PODS.at(pod.metadata.name, NAMESPACE)))


def fits(node: NodeSpec, books: Books, there: Sequence[Pod], pod: Pod) -> bool:
    # A kubelet ignores devices that no plugin on its node offers; a scheduler does not place such pods there.
    if not asked(pod).keys() <= node.machine.devices.keys():
        return False
    _, outcome = admission.admit(node.modelled, books.state(there), pod)
    return outcome.admitted


def _is_on(pod: Pod, node: str) -> bool:
    return pod.spec.node_name == node and not pod.status.is_finished
