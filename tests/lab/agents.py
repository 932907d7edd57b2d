"""Our agent in a hurry: with a short period and its pages open, in place of the one that a lab started on a node.

What it promises within a period can be seen in seconds. `seen` has every version of a node's report that the server
tells of meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

from msgspec import structs

from numalign.agent.triggers.schedule import PERIOD as PERIODIC
from numalign.api.nrt import normalise
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.api.nrt.wire import NodeResourceTopology
from numalign.deploy import rights
from numalign.deploy.rights import Holder
from numalign.kube import resources
from numalign.kube.resources import TOPOLOGIES
from numalign.kube.watch.informer import Informer
from numalign.kube.watch.store import Change
from numalign.lab import accounts, controlplane
from numalign.lab.accounts import AnyObject
from numalign.lab.node import LabNode
from numalign.lab.processes import Part
from tests.lab import metrics
from tests.lab.live import Live

T = TypeVar("T")
PERIOD = 2.0
LOOKS = "numalign_agent_looks_total"


@contextlib.contextmanager
def beside(live: Live, node: LabNode, name: str, *flags: str) -> Iterator[Part]:
    """One more agent on the node, up to the end of the block. It has begun, since its pages are there."""
    usual, port = node.parts["agent"].program, controlplane.free_port()
    more = ("--period", str(PERIOD), "--port", str(port), *flags)
    log = usual.log.with_name(f"{name}.log")
    part = Part(structs.replace(usual, name=name, command=(*usual.command, *more), port=port, log=log))
    # The lab ends whatever its nodes have.
    node.parts[name] = part
    part.start()
    try:
        live.awaited(lambda: _looks(part), "the agent does not begin")
        yield part
    finally:
        part.stop()
        del node.parts[name]


@contextlib.contextmanager
def instead(live: Live, name: str, *flags: str) -> Iterator[Part]:
    """The node's only agent, up to the end of the block."""
    node = live.node(name)
    node.parts["agent"].stop()
    try:
        with beside(live, node, "hasty", *flags) as part:
            yield part
    finally:
        node.parts["agent"].start()


def grant(live: Live, name: str, option: str) -> None:
    """Give the agent of a node the rights that an option needs; agents of a lab have none of these."""
    needed = [right for right in rights.AGENT if right.option == option]
    role, binding = rights.roles(Holder("User", accounts.agent_user(name)), needed, name)
    # A role of its own, beside the one that a lab gives this account.
    metadata = {"name": f"{name}{option}"}
    for thing in (
        {**role, "metadata": metadata},
        {**binding, "metadata": metadata, "roleRef": binding["roleRef"] | metadata},
    ):
        resource = resources.of(rights.API_VERSION, f"{thing['kind'].lower()}s", thing["kind"], AnyObject)
        live.run(live.client.create(resource.everywhere(), thing))


async def _looks(part: Part) -> bool:
    with contextlib.suppress(OSError):
        return bool(metrics.told_by(part, LOOKS))
    return False


def in_time(live: Live, agent: Part, found: Callable[[], Awaitable[T | None]], otherwise: str) -> T:
    """What the agent promises for a period from now on: it is there by the next look that a period brings, or by the
    one after it, if that one had already begun. Looks are counted since busy machines stretch seconds."""
    before = metrics.told_by(agent, LOOKS).get(PERIODIC, 0)
    begun = before

    async def counted() -> T | None:
        nonlocal begun
        begun = metrics.told_by(agent, LOOKS).get(PERIODIC, 0)
        return await found()

    answer = live.awaited(counted, otherwise)
    assert begun - before <= 2, f"{otherwise} for {begun - before} periods"
    return answer


@contextlib.contextmanager
def seen(live: Live, name: str) -> Iterator[list[NodeTopology]]:
    """Oldest first, the one that is there at the beginning included."""
    found: list[NodeTopology] = []

    def note(change: Change[NodeResourceTopology]) -> None:
        if change.new is not None and change.new.metadata.name == name:
            found.append(normalise.normalise(change.new))

    async def begun() -> asyncio.Task[None]:
        informer = Informer(live.client, TOPOLOGIES.everywhere(), note)
        task = asyncio.create_task(informer.run())
        await informer.synced()
        return task

    task = live.run(begun())
    try:
        yield found
    finally:
        task.cancel()
        live.run(_ended(task))


async def _ended(task: asyncio.Task[None]) -> None:
    await asyncio.gather(task, return_exceptions=True)
