"""A lab under test: pods in, what became of them out, and what the kubelets wrote down."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod
from numalign.kube import clock, errors
from numalign.kube.client import Client
from numalign.kube.resources import NODES, PODS, DeleteOptions
from numalign.lab import up
from numalign.lab.lab import Lab
from numalign.lab.node import LabNode
from numalign.lab.spec import LabSpec

T = TypeVar("T")
PATIENCE = 60.0
LOOK = 0.1
NAMESPACE = "default"
AT_ONCE = DeleteOptions(grace_period_seconds=0)


class Live:
    def __init__(self, lab: Lab, runner: asyncio.Runner, client: Client) -> None:
        self.lab, self.client = lab, client
        self._runner = runner

    @staticmethod
    @contextlib.contextmanager
    def of(lab: Lab, runner: asyncio.Runner) -> Iterator[Live]:
        client = lab.client()
        runner.run(client.__aenter__())
        try:
            yield Live(lab, runner, client)
        finally:
            runner.run(client.__aexit__())

    @staticmethod
    @contextlib.contextmanager
    def up(wanted: LabSpec) -> Iterator[Live]:
        """A lab of its own, ended with the block."""
        with clock.event_loop_runner() as runner:
            context = up.up(wanted)
            lab = runner.run(context.__aenter__())
            try:
                with Live.of(lab, runner) as live:
                    yield live
            finally:
                runner.run(context.__aexit__(None, None, None))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def has_all(self, names: Iterable[str]) -> bool:
        return all(name in self.lab.nodes for name in names)

    def node(self, name: str) -> LabNode:
        return self.lab.nodes[name]

    def node_object(self, name: str) -> Node:
        return self.run(self.client.get(NODES.at(name)))

    def create(self, *pods: Mapping[str, Any]) -> None:
        for pod in pods:
            self.run(self.client.create(PODS.within(NAMESPACE), dict(pod)))

    def pod(self, name: str) -> Pod:
        return self.run(self.client.get(PODS.at(name, NAMESPACE)))

    def settled(self, name: str) -> Pod:
        """Once its kubelet has said yes or no."""

        async def decided() -> Pod | None:
            pod = await self.client.get(PODS.at(name, NAMESPACE))
            return pod if pod.status.phase in ("Running", "Succeeded", "Failed") else None

        return self.awaited(decided, f"pod {name} is not decided")

    def awaited(self, found: Callable[[], Awaitable[T | None]], otherwise: str) -> T:
        async def look() -> T:
            until = time.monotonic() + PATIENCE
            while time.monotonic() < until:
                with contextlib.suppress(errors.Unreachable):
                    answer = await found()
                    if answer:
                        return answer
                await asyncio.sleep(LOOK)
            raise AssertionError(otherwise)

        return self.run(look())

    def clear(self) -> None:
        """No pods left, neither in the API nor held by a kubelet."""

        async def gone() -> bool:
            pods = await self.client.every(PODS.within(NAMESPACE))
            await asyncio.gather(*(self.remove(pod.metadata.name) for pod in pods))
            return not pods

        self.awaited(gone, "pods stay")

    async def remove(self, name: str) -> None:
        with contextlib.suppress(errors.NotFound):
            await self.client.delete(PODS.at(name, NAMESPACE), AT_ONCE)


def guaranteed(name: str, cpu: int, memory: str = "1Gi", **more: Any) -> dict[str, Any]:
    """A pod with one container that asks for whole CPUs; `more` goes into its spec."""
    amounts = {"cpu": str(cpu), "memory": memory}
    container = {"name": "main", "image": "none", "resources": {"requests": amounts, "limits": amounts}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **more},
    }
