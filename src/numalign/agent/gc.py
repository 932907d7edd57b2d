"""Reports of nodes that are gone: found and deleted, as NFD's collector does it (exporter spec 6).

`numalign agent gc` calls `sweep`, once or again and again. Our own reports belong to their Node and go with it; this is
for those of other publishers. A report may come before its Node, so that young ones are left alone (spec 13.22)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Struct

from numalign.agent import published
from numalign.api import nrtwire
from numalign.api.meta import ObjectMeta
from numalign.api.wire import Wire
from numalign.kube import errors, resources
from numalign.kube.client import Client
from numalign.kube.objects import DeleteOptions, Preconditions

LOG: Final = logging.getLogger(__name__)
GRACE: Final = 300.0
"""Seconds for which a report may be there without its Node."""


class Named(Wire, frozen=True):
    """A Node, read for nothing but its name."""

    metadata: ObjectMeta = ObjectMeta()


NODES: Final = resources.of("v1", "nodes", "Node", Named)
REPORTS: Final = published.resource(nrtwire.V1ALPHA2)


class Swept(Struct, frozen=True):
    stale: tuple[str, ...] = ()
    """Names of reports whose node is gone."""
    deleted: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


async def sweep(client: Client, grace: float = GRACE, *, dry_run: bool = False) -> Swept:
    """KubeError where the lists cannot be had."""
    try:
        # Before the nodes, so that a node which comes in between is seen, and its report is not taken for stale.
        reports = [each.metadata for each in await client.every(REPORTS.everywhere())]
    except errors.NotFound:
        return Swept()  # nobody has defined the kind, so that there are none
    nodes = {each.metadata.name for each in await client.every(NODES.everywhere())}
    found = stale(nodes, reports, client.sender.clock.wall() - timedelta(seconds=grace))
    if dry_run:
        return Swept(tuple(each.name for each in found))
    deleted, problems = list[str](), list[str]()
    for each in found:
        try:
            await _delete(client, each)
            deleted.append(each.name)
        except errors.KubeError as problem:
            problems.append(str(problem))
    return Swept(tuple(each.name for each in found), tuple(deleted), tuple(problems))


def stale(nodes: Iterable[str], reports: Iterable[ObjectMeta], before: datetime) -> list[ObjectMeta]:
    """Reports that were made before that moment, and whose node is none of these."""
    known = frozenset(nodes)
    return [each for each in reports if each.name not in known and _made(each) <= before]


def _made(report: ObjectMeta) -> datetime:
    try:
        return datetime.fromisoformat(report.creation_timestamp or "")
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)


async def _delete(client: Client, report: ObjectMeta) -> None:
    """That one, not another of the same name that came since."""
    options = DeleteOptions(preconditions=Preconditions(uid=report.uid))
    try:
        await client.delete(REPORTS.at(report.name), options)
    except errors.NotFound:
        LOG.debug("report %s is gone already", report.name)


async def run(client: Client, interval: float, grace: float, told: Callable[[Swept], object]) -> None:
    """Sweeps, this many seconds apart, until cancelled."""
    while True:
        try:
            told(await sweep(client, grace))
        except errors.KubeError as problem:
            LOG.warning("no sweep: %s", problem)
        await client.sender.clock.sleep(interval)
