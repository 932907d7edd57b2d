"""Garbage-collects the NodeResourceTopology objects of deleted nodes, as NFD's collector does (exporter spec 6).

`numalign agent gc` calls `sweep` once, or `run`, which sweeps periodically and when a Node is deleted. The agent's own
objects have an owner reference to their Node; this is for those of other publishers. An object may precede its Node, so
young objects are kept (spec 13.22), unless the Node was seen to be deleted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from msgspec import Struct

from numalign.agent.publish import publish
from numalign.agent.publish.publish import Published
from numalign.api.decode.structs import Wire
from numalign.api.nrt import publishers, wire
from numalign.api.objects.meta import ObjectMeta
from numalign.kube import errors, resources
from numalign.kube.client import Client
from numalign.kube.resources import DeleteOptions, Preconditions, Resource
from numalign.kube.watch.informer import Informer
from numalign.kube.watch.store import Change
from numalign.process import metrics, tasks
from numalign.process.serve import Page, PageResponse

LOG: Final = logging.getLogger(__name__)


class Named(Wire, frozen=True):
    """A Node, decoded only for its name."""

    metadata: ObjectMeta = ObjectMeta()


NODES: Final = resources.of("v1", "nodes", "Node", Named)
REPORTS: Final = tuple(publish.resource(version) for version in (wire.V1ALPHA2, wire.V1ALPHA1))
"""Older CustomResourceDefinitions serve v1alpha1 only."""


class Swept(Struct, frozen=True):
    stale: tuple[str, ...] = ()
    """Names of reports whose node is deleted."""
    deleted: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


class Counts:
    """Metrics of the collector; `note` counts the result of a sweep."""

    def __init__(self) -> None:
        self._registry = made = metrics.Registry()
        self._deleted = made.counter(
            "numalign_agent_gc_deleted_total", "Number of deleted NodeResourceTopology objects whose Node is gone."
        )
        self._failures = made.counter("numalign_agent_gc_failures_total", "Number of failed deletions and sweeps.")

    def note(self, swept: Swept) -> None:
        self._deleted.add(by=len(swept.deleted))
        self._failures.add(by=len(swept.problems))

    def pages(self) -> dict[str, Page]:
        return {
            "/metrics": lambda _: PageResponse(self._registry.text(), content_type=metrics.CONTENT_TYPE),
            "/healthz": lambda _: PageResponse("ok\n"),
        }


async def sweep(client: Client, grace: float = publishers.GRACE, *, dry_run: bool = False) -> Swept:
    """KubeError where listing fails."""
    # Listed before the nodes, so that the report of a new node is not taken for stale.
    kind, reports = await _reports(client)
    nodes = {each.metadata.name for each in await client.every(NODES.everywhere())}
    found = publishers.orphans(nodes, reports, client.sender.clock.wall() - timedelta(seconds=grace))
    if dry_run:
        return Swept(tuple(each.name for each in found))
    deleted, failed = list[str](), dict[str, str]()
    for each in found:
        try:
            if await _delete(client, kind, each):
                deleted.append(each.name)
        except errors.KubeError as problem:
            failed[each.name] = str(problem)
    return Swept((*deleted, *failed), tuple(deleted), tuple(failed.values()))


async def _reports(client: Client) -> tuple[Resource[Published], list[ObjectMeta]]:
    """All reports, and the version that serves them."""
    for kind in REPORTS:
        try:
            return kind, [each.metadata for each in await client.every(kind.everywhere())]
        except errors.NotFound:
            continue
    return REPORTS[0], []  # the kind is not defined, so there are no reports


async def _delete(client: Client, kind: Resource[Published], report: ObjectMeta) -> bool:
    """Deletes this object, not a newer one of the same name, and only if its Node has not come back. True if it was
    deleted; KubeError where that is unknown."""
    try:
        await client.get(NODES.at(report.name))
        return False
    except errors.NotFound:
        LOG.debug("Node %s is deleted", report.name)
    try:
        await client.delete(kind.at(report.name), DeleteOptions(preconditions=Preconditions(uid=report.uid)))
    except (errors.NotFound, errors.Conflict) as problem:
        LOG.debug("NodeResourceTopology %s is already gone or was replaced: %s", report.name, problem)
        return False
    return True


async def forget(client: Client, node: str) -> Swept:
    """Deletes the report of a deleted node, unless the node came back. KubeError where that is unknown."""
    for kind in REPORTS:
        try:
            report = (await client.get(kind.at(node))).metadata
        except errors.NotFound:
            continue
        return Swept((node,), (node,)) if await _delete(client, kind, report) else Swept()
    return Swept()  # it was deleted with its Node


async def run(client: Client, interval: float, grace: float, note: Callable[[Swept], object]) -> None:
    """Sweeps every `interval` seconds, and after every deletion of a Node; until cancelled."""
    gone: asyncio.Queue[str] = asyncio.Queue()

    def noticed(change: Change[Named]) -> None:
        if change.new is None and change.old is not None:
            gone.put_nowait(change.old.metadata.name)

    nodes = Informer(client, NODES.everywhere(), noticed)
    await tasks.together(_collect(client, (interval, grace), gone, note), {"nodes": nodes.run()})


async def _collect(
    client: Client, pace: tuple[float, float], gone: asyncio.Queue[str], note: Callable[[Swept], object]
) -> None:
    clock, (interval, grace) = client.sender.clock, pace
    due = clock.now()
    while True:
        try:
            async with clock.timeout(max(0.0, due - clock.now())):
                name = await gone.get()
            work = forget(client, name)
        except TimeoutError:
            due, work = clock.now() + interval, sweep(client, grace)
        try:
            note(await work)
        except errors.KubeError as problem:
            # The next sweep finds what was missed.
            note(Swept(problems=(str(problem),)))
