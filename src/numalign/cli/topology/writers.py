"""Who writes the nodes' reports, and when each was last written: what only the API server's bookkeeping tells.

`topology` asks for it beside everything else. Reports themselves carry no time."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from numalign.api.decode.structs import Wire
from numalign.api.objects.meta import ObjectMeta
from numalign.kube import errors, resources
from numalign.kube.client import Client
from numalign.kube.lists import Unreadable
from numalign.kube.resources import TOPOLOGIES


class ManagedFields(Wire, frozen=True):
    manager: str = ""
    time: str | None = None


class ManagedMeta(ObjectMeta, frozen=True):
    managed_fields: tuple[ManagedFields, ...] = ()


class Managed(Wire, frozen=True):
    """Any object, read for nothing but this."""

    metadata: ManagedMeta = ManagedMeta()


REPORTS: Final = resources.of(TOPOLOGIES.api_version, TOPOLOGIES.plural, TOPOLOGIES.kind, Managed)


class Publication(Struct, frozen=True):
    manager: str
    time: str = ""
    """RFC 3339; empty: not said."""


async def listed(client: Client) -> dict[str, Publication]:
    """By node. Nothing where there are no reports, or where we may not see them."""
    try:
        found = await client.every(REPORTS.everywhere())
    except (errors.NotFound, errors.Forbidden):
        return {}
    managed = [each for each in found if not isinstance(each, Unreadable)]
    return {each.metadata.name: _latest(each.metadata.managed_fields) for each in managed}


def _latest(writes: tuple[ManagedFields, ...]) -> Publication:
    last = max(writes, key=lambda each: each.time or "", default=ManagedFields())
    return Publication(last.manager, last.time or "")
