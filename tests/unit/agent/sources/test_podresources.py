"""The client against a socket that behaves as the kubelet's does, and as one that misbehaves."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from numalign.agent.sources import podresources
from numalign.agent.sources.podresources import (
    Allocatable,
    ContainerResources,
    DeviceEntry,
    MemoryEntry,
    PodResources,
    PodResourcesClient,
    PodResourcesError,
)
from numalign.api.errors import BadObject
from numalign.process.rpc import CallFailed, Service
from tests.unit.agent.podresources_server import FakeKubelet, serving
from tests.unit.agent.privileges import unprivileged

T = TypeVar("T")

RATE = CallFailed("RESOURCE_EXHAUSTED", "rejected by rate limit")
ZONE0: dict[str, Any] = {"nodes": [{}]}
ZONE1 = {"nodes": [{"id": 1}]}
WEB: dict[str, Any] = {
    "name": "web",
    "namespace": "default",
    "containers": [
        {
            "name": "app",
            "cpus": [9, 3],
            "devices": [
                {"resource": "example.com/nic", "ids": ["b"], "topology": ZONE1},
                {"resource": "example.com/nic", "ids": ["a"], "topology": ZONE0},
                {"resource": "example.com/key", "ids": ["k"]},
            ],
            "memory": [{"type": "memory", "size": 2**40, "topology": {"nodes": [{}, {"id": 1}]}}],
        },
        {"name": "sidecar"},
    ],
}
WEB_READ = PodResources(
    "default",
    "web",
    (
        ContainerResources(
            "app",
            devices=(
                DeviceEntry("example.com/key", ("k",), None),
                DeviceEntry("example.com/nic", ("a",), (0,)),
                DeviceEntry("example.com/nic", ("b",), (1,)),
            ),
            cpus=(3, 9),
            memory=(MemoryEntry("memory", 2**40, (0, 1)),),
        ),
        ContainerResources("sidecar"),
    ),
)


def asked(socket: Path, kubelet: FakeKubelet | Service, ask: Callable[[PodResourcesClient], Awaitable[T]]) -> T:
    """What one call gives while the kubelet serves."""

    async def exchange() -> T:
        service = kubelet if isinstance(kubelet, Service) else kubelet.service()
        async with serving(socket, service), contextlib.aclosing(_Closing(socket)) as closing:
            return await ask(closing.client)

    return asyncio.run(exchange())


class _Closing:
    def __init__(self, socket: Path) -> None:
        self.client = PodResourcesClient(socket, deadline=5.0, pauses=(0.0, 0.0))

    async def aclose(self) -> None:
        await self.client.close()


def test_list_gives_every_pod_sorted(socket: Path) -> None:
    first = {"name": "a", "namespace": "default", "cpus": [1], "memory": [{"type": "memory", "size": 5}]}
    pods = asked(socket, FakeKubelet(WEB, first), lambda client: client.list())
    assert pods == (PodResources("default", "a", (), (1,), (MemoryEntry("memory", 5, ()),)), WEB_READ)


def test_allocatable_gives_devices_of_no_zone_of_one_and_of_an_empty_list(socket: Path) -> None:
    devices = [{"resource": "r", "ids": ["a"], "topology": {}}, {"resource": "r", "ids": ["b"]}]
    kubelet = FakeKubelet(allocatable={"cpus": [1, 0], "devices": devices})
    found = asked(socket, kubelet, lambda client: client.allocatable())
    assert found == Allocatable((DeviceEntry("r", ("a",), ()), DeviceEntry("r", ("b",), None)), (0, 1))


def test_a_kubelet_without_the_allocatable_call_gives_none(socket: Path) -> None:
    assert asked(socket, FakeKubelet(), lambda client: client.allocatable()) is None


def test_a_kubelet_with_the_allocatable_call_switched_off_gives_none(socket: Path) -> None:
    kubelet = FakeKubelet(allocatable={})
    kubelet.failures = [CallFailed("UNKNOWN", "Pod Resources API GetAllocatableResources disabled")]
    assert asked(socket, kubelet, lambda client: client.allocatable()) is None


@pytest.mark.parametrize("name, found", [("web", WEB_READ), ("other", None)], ids=["known", "unknown"])
def test_get_gives_the_pod_or_none(socket: Path, name: str, found: PodResources | None) -> None:
    assert asked(socket, FakeKubelet(WEB), lambda client: client.get("default", name)) == found


def test_an_answer_of_more_than_four_mebibytes_is_read(socket: Path) -> None:
    pods = [{"name": f"{number}" + "x" * 1000, "namespace": "n"} for number in range(6000)]
    assert len(asked(socket, FakeKubelet(*pods), lambda client: client.list())) == 6000


def test_an_empty_bucket_is_waited_for(socket: Path) -> None:
    kubelet = FakeKubelet(WEB)
    kubelet.failures = [RATE, RATE]
    assert asked(socket, kubelet, lambda client: client.list()) == (WEB_READ,)
    assert kubelet.calls == ["List"] * 3


FAILURES = {
    "bucket that stays empty": (RATE, "rate-limited", "too many calls"),
    "answer beyond the limit": (CallFailed("RESOURCE_EXHAUSTED", "larger than max"), "too-large", "larger than max"),
    "call that is switched off": (CallFailed("UNKNOWN", "API Get disabled"), "unimplemented", "disabled"),
    "v1alpha1 only": (CallFailed("UNIMPLEMENTED", "unknown service"), "unimplemented", "v1alpha1"),
    "anything else": (CallFailed("INTERNAL", "broken"), "refused", "broken"),
}


@pytest.mark.parametrize("failure, kind, words", FAILURES.values(), ids=FAILURES)
def test_failures_have_a_kind_and_words(socket: Path, failure: CallFailed, kind: str, words: str) -> None:
    kubelet = FakeKubelet()
    kubelet.failures = [failure] * 3
    with pytest.raises(PodResourcesError, match=words) as raised:
        asked(socket, kubelet, lambda client: client.list())
    assert raised.value.kind == kind


def test_bytes_that_are_no_message_are_unreadable(socket: Path) -> None:
    async def rubbish(request: bytes) -> bytes:
        return b"\x0a\xff"

    with pytest.raises(PodResourcesError, match="cannot be read") as raised:
        asked(socket, Service("v1.PodResourcesLister", {"List": rubbish}), lambda client: client.list())
    assert raised.value.kind == "unreadable"


def test_no_socket_is_unavailable(socket: Path) -> None:
    with pytest.raises(PodResourcesError, match=r"no socket .*kubelet\.sock") as raised:
        asyncio.run(PodResourcesClient(socket).list())
    assert raised.value.kind == "unavailable"


def test_a_kubelet_that_never_answers_is_a_timeout(socket: Path) -> None:
    async def exchange() -> None:
        kubelet = FakeKubelet()
        kubelet.before = asyncio.Event().wait
        async with serving(socket, kubelet.service()):
            await PodResourcesClient(socket, deadline=0.05).list()

    with pytest.raises(PodResourcesError) as raised:
        asyncio.run(exchange())
    assert raised.value.kind == "timeout"


@pytest.mark.parametrize(
    "url, path",
    [
        ("unix:///run/kubelet.sock", "/run/kubelet.sock"),
        ("UNIX:/run/kubelet.sock", "/run/kubelet.sock"),
        ("unix:///my%20run/kubelet.sock?x=1#y", "/my run/kubelet.sock"),
        ("unix://host/kubelet.sock", "/kubelet.sock"),
    ],
)
def test_an_endpoint_is_read_as_rte_reads_it(url: str, path: str) -> None:
    assert podresources.endpoint(url) == Path(path)


@pytest.mark.parametrize("url", ["", "/run/kubelet.sock", "tcp://host/path", "fake:///folder", "unix:///%zz"])
def test_any_other_endpoint_is_refused(url: str) -> None:
    with pytest.raises(BadObject, match="unix:///path"):
        podresources.endpoint(url)


def test_a_denied_permission_names_the_remedy() -> None:
    async def asked(socket: Path) -> PodResourcesError:
        async with serving(socket, FakeKubelet().service()):
            socket.chmod(0)
            client = PodResourcesClient(socket)
            try:
                with unprivileged(), pytest.raises(PodResourcesError) as raised:
                    await client.list()
                return raised.value
            finally:
                await client.close()

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        failure = asyncio.run(asked(folder / "kubelet.sock"))
    assert failure.kind == "forbidden"
    assert failure.text == (
        f"the kubelet's podresources List: {folder}/kubelet.sock cannot be connected to: permission denied;"
        " run as root or in the socket's group"
    )
