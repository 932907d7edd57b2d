"""Our server on the loopback: in a thread of its own for clients that block, or beside a client on the same loop."""

import asyncio
import random
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from numalign.kube.client import Client
from numalign.kube.clock import SystemClock
from numalign.kube.transport import auth
from numalign.kube.transport.auth import Access, Identity, Login
from numalign.kube.transport.dial import Server
from numalign.simulator import clock
from numalign.simulator.apiserver.http import server
from numalign.simulator.apiserver.http.server import LOOPBACK, Address, ListenOptions
from numalign.simulator.apiserver.storage.resources import NAMESPACES
from numalign.simulator.apiserver.verbs.api import Api


def real_time(watch_cache_size: int = 10_000) -> Api:
    chance = random.Random(3)
    api = Api(clock.real(chance), chance, watch_cache_size=watch_cache_size)
    api.create(NAMESPACES, {"metadata": {"name": "default"}})
    return api


@contextmanager
def threaded(listening: ListenOptions = LOOPBACK) -> Iterator[Address]:
    """Served by another thread until the block is left."""
    ready: list[Address] = []
    began, stop = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def main() -> None:
        async with server.serve(real_time(), listening) as address:
            ready.append(address)
            began.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(main(),))
    thread.start()
    began.wait(10)
    try:
        yield ready[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


@asynccontextmanager
async def beside(api: Api, listening: ListenOptions = LOOPBACK) -> AsyncIterator[tuple[Address, Client]]:
    """Served on the running loop, with our own client to it."""
    async with server.serve(api, listening) as address, Client(access(address)) as client:
        yield address, client


def access(address: Address) -> Access:
    place = Server(address.host, address.port, secure=address.secure)
    return Access(place, Login(auth.unchanging(Identity()), SystemClock()))


def run(check: Callable[[Api, Address, Client], Coroutine[Any, Any, Any]], watch_cache_size: int = 10_000) -> Any:
    async def ready() -> Any:
        api = real_time(watch_cache_size)
        async with beside(api) as (address, client):
            return await asyncio.wait_for(check(api, address, client), 20)

    return asyncio.run(ready())
