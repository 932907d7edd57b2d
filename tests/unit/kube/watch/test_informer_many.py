"""A large cluster is delivered in pieces, so that other tasks run in between."""

import asyncio

from numalign.kube.client import Client
from numalign.kube.resources import PODS
from numalign.kube.watch import informer
from numalign.kube.watch.informer import Informer, Options
from tests.unit.kube.clocks import FastClock, run
from tests.unit.kube.stub import Stub, access, serving
from tests.unit.kube.watching import pod


def test_other_tasks_run_while_many_objects_are_delivered() -> None:
    async def check() -> list[int]:
        stub, heard, turns = Stub(), list[str](), list[int]()
        for number in range(3 * informer.AT_ONCE):
            stub.put("pods", pod(f"p{number}"))
        async with serving(stub), Client(access(stub), clock=FastClock()) as client:
            following = Informer(client, PODS.everywhere(), lambda _: heard.append(""), Options(initial_events=False))
            task = asyncio.create_task(following.run())
            while not following.has_synced:
                turns.append(len(heard))
                await asyncio.sleep(0)
            task.cancel()
        return turns

    assert {informer.AT_ONCE, 2 * informer.AT_ONCE} <= set(run(check()))
