"""A kubelet that starts again leaves a new socket under the old name; the client must find the new one by itself."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from numalign.agent.sources.podresources import PodResourcesClient, PodResourcesError
from tests.unit.agent.podresources_server import FakeKubelet, serving


def named(name: str) -> FakeKubelet:
    return FakeKubelet({"name": name, "namespace": "default"})


async def names(client: PodResourcesClient) -> list[str]:
    return [pod.name for pod in await client.list()]


def test_the_next_call_goes_to_the_kubelet_that_started_again(socket: Path) -> None:
    async def story() -> list[str]:
        client = PodResourcesClient(socket)
        async with serving(socket, named("old").service()):
            before = await names(client)
        async with serving(socket, named("new").service()):
            after = await names(client)
            await client.close()
        return before + after

    assert asyncio.run(story()) == ["old", "new"]


def test_the_new_socket_is_found_while_the_old_server_still_answers(socket: Path) -> None:
    async def story() -> list[str]:
        client = PodResourcesClient(socket)
        async with serving(socket, named("old").service()):
            before = await names(client)
            async with serving(socket, named("new").service()):
                after = await names(client)
                await client.close()
        return before + after

    assert asyncio.run(story()) == ["old", "new"]


def test_a_call_under_way_is_asked_again_of_the_new_kubelet(socket: Path) -> None:
    async def story() -> list[str]:
        client, old, called = PodResourcesClient(socket), named("old"), asyncio.Event()

        async def hang() -> None:
            called.set()
            await asyncio.Event().wait()

        old.before = hang
        async with serving(socket, old.service()) as server:
            asking = asyncio.create_task(names(client))
            await called.wait()
            async with serving(socket, named("new").service()):
                await server.stop()
                found = await asking
                await client.close()
        return found

    assert asyncio.run(story()) == ["new"]


def test_a_call_that_waits_on_the_old_socket_survives_a_call_on_the_new_one(socket: Path) -> None:
    async def story() -> list[str]:
        client, old = PodResourcesClient(socket), named("old")
        called, go_on = asyncio.Event(), asyncio.Event()

        async def wait() -> None:
            called.set()
            await go_on.wait()

        old.before = wait
        async with serving(socket, old.service()):
            slow = asyncio.create_task(names(client))
            await called.wait()
            async with serving(socket, named("new").service()):
                quick = await names(client)
                go_on.set()
                found = quick + await slow
                await client.close()
        return found

    assert asyncio.run(story()) == ["new", "old"]


def test_between_two_kubelets_the_socket_is_unavailable(socket: Path) -> None:
    async def story() -> None:
        client = PodResourcesClient(socket)
        async with serving(socket, named("old").service()) as server:
            await names(client)
            await server.stop()
            try:
                await names(client)
            finally:
                await client.close()

    with pytest.raises(PodResourcesError) as raised:
        asyncio.run(story())
    assert raised.value.kind == "unavailable"
