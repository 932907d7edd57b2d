"""Deletes the topology reports of nodes that no longer have an agent.

`controller` calls it after the agents of a node group are gone. Only reports that numalign's agent wrote are deleted: a
node may have got another publisher meanwhile."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Final

from numalign.api.decode.structs import Wire
from numalign.api.nrt import wire
from numalign.api.objects.meta import ObjectMeta
from numalign.kube import errors, resources
from numalign.kube.client import Client
from numalign.kube.resources import TOPOLOGIES, DeleteOptions, Preconditions

LOG: Final = logging.getLogger(__name__)
SIGNED: Final = "numalign.io/agent"
"""The annotation of the agent that wrote the report."""


class Report(Wire, frozen=True):
    """A report, decoded only for its metadata."""

    metadata: ObjectMeta = ObjectMeta()


REPORTS: Final = resources.of(f"{wire.GROUP}/{wire.V1ALPHA2}", TOPOLOGIES.plural, TOPOLOGIES.kind, Report)


async def delete(client: Client, nodes: Collection[str]) -> None:
    """KubeError where one cannot be deleted; the caller tries again."""
    try:
        found = await client.every(REPORTS.everywhere())
    except errors.NotFound:
        return  # the kind is not defined, so there are no reports
    for each in found:
        meta = each.metadata
        if meta.name in nodes and SIGNED in meta.annotations:
            try:
                await client.delete(REPORTS.at(meta.name), DeleteOptions(preconditions=Preconditions(uid=meta.uid)))
                LOG.info("Deleted the report of node %s, which has no agent any more", meta.name)
            except (errors.NotFound, errors.Conflict):
                continue
