"""The kubelet's pods socket: all pods, every change, and kubelets that have no such socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from numalign.agent.sources import pods as podsapi
from numalign.agent.sources.pods import LocalPod, PodEvent, PodEventType, PodsClient, PodsError
from numalign.api.decode import protobuf
from numalign.process.rpc import CallFailed, Service
from tests.unit.agent import recorded
from tests.unit.agent.podresources_server import serving

T = TypeVar("T")
WEB: dict[str, Any] = {"metadata": {"name": "web", "namespace": "default", "uid": "u1"}, "status": {"phase": "Pending"}}
WEB_READ = LocalPod("u1", "default", "web", phase="Pending")


class FakeKubelet:
    """Answers with these bytes; the stream ends with the failure."""

    def __init__(self, pods: bytes = b"", events: tuple[bytes, ...] = ()) -> None:
        self.pods, self.events = pods, events
        self.failure = CallFailed("RESOURCE_EXHAUSTED", "the client is too slow")

    def service(self) -> Service:
        return Service(podsapi.SERVICE, {"ListPods": self.list}, {"WatchPods": self.watch})

    async def list(self, request: bytes) -> bytes:
        return self.pods

    async def watch(self, request: bytes) -> AsyncIterator[bytes]:
        for event in self.events:
            yield event
        raise self.failure


def asked(socket: Path, service: Service, ask: Callable[[PodsClient], Awaitable[T]]) -> T:
    async def exchange() -> T:
        client = PodsClient(socket, deadline=5.0)
        async with serving(socket, service):
            try:
                return await ask(client)
            finally:
                await client.close()

    return asyncio.run(exchange())


def test_list_returns_uid_phase_qos_and_containers(socket: Path) -> None:
    pods = asked(socket, FakeKubelet(recorded.answer("ListPods")).service(), lambda client: client.list())
    assert pods[0] == LocalPod(
        "521cebac-8ede-459f-815f-c2eafb34dfc7", "default", "both", "Running", "Guaranteed", ("app",)
    )


def event(change: int, pod: dict[str, Any] | None) -> bytes:
    return protobuf.encode_message({"type": change} | ({} if pod is None else {"pod": pod}), podsapi.EVENT)


def test_watch_gives_every_change_until_the_kubelet_ends_it(socket: Path) -> None:
    seen: list[PodEvent] = []

    async def watch(client: PodsClient) -> None:
        async for each in client.watch():
            seen.append(each)

    events = (event(1, WEB), event(4, None), event(9, WEB), event(3, {"metadata": {"uid": "u1"}}))
    with pytest.raises(PodsError, match="too slow"):
        asked(socket, FakeKubelet(events=events).service(), watch)
    assert seen == [
        PodEvent(PodEventType.ADDED, WEB_READ),
        PodEvent(PodEventType.SYNCED, None),
        PodEvent(PodEventType.DELETED, LocalPod("u1", "", "")),
    ]


ABSENT = {
    "no such service": (Service("other", {}), True),
    "an answer that cannot be read": (FakeKubelet(protobuf.encode_field(1, b"\xff")).service(), False),
}


@pytest.mark.parametrize("service, absent", ABSENT.values(), ids=ABSENT)
def test_a_kubelet_that_has_nothing_to_tell(socket: Path, service: Service, absent: bool) -> None:
    with pytest.raises(PodsError) as raised:
        asked(socket, service, lambda client: client.list())
    assert raised.value.absent is absent


def test_a_kubelet_without_the_socket(socket: Path) -> None:
    with pytest.raises(PodsError, match="there is no socket") as raised:
        asyncio.run(PodsClient(socket).list())
    assert raised.value.absent
