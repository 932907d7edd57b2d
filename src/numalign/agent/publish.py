"""Puts reports into the API server: compares, applies, and leaves a sign of life now and then.

The agent's cycle calls `publish` after every look; failures are raised as `kube.errors`, and the next look brings a
newer report, so nothing waits here for a better moment. What the server has is looked at before every write and once a
period: an object that somebody deleted is written again, one that somebody else writes is left to him (`guard`)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, Literal

from msgspec import Struct

from numalign.agent import forms, guard, published
from numalign.agent.forms import Document
from numalign.agent.guard import Guard
from numalign.agent.inventory import Mode
from numalign.agent.published import Published
from numalign.api import nrt, nrtwire
from numalign.api.nodetopology import NodeTopology
from numalign.kube import errors
from numalign.kube.client import Client

HEARTBEAT: Final = 300.0
"""Seconds within which an agent that lives writes something."""
UNDECLARED: Final = ".attributes: field not declared in schema"

Outcome = Literal["written", "heartbeat", "equal", "stood back"]


class Manner(Struct, frozen=True, kw_only=True):
    """How to write."""

    instance: str
    """Tells this process from another agent on the same node."""
    mode: Mode = "own"
    version: nrt.Version = nrtwire.V1ALPHA2
    period: float = 60.0
    """Seconds between two looks at what the server has."""


class Publisher:
    """What this process wrote, and where; for one task."""

    def __init__(self, client: Client, node: str, manner: Manner) -> None:
        self._client, self._clock = client, client.sender.clock
        self._target = published.resource(manner.version).at(node)
        self._manner = manner
        quiet = max(guard.PATIENCE * manner.period, HEARTBEAT + manner.period)
        self.guard = Guard(instance=manner.instance, quiet=quiet)
        self._written: Document | None = None
        self._at = 0.0
        self.pruned: tuple[str, ...] = ()
        """Attributes that the server did not keep, because its definition of the kind is older."""

    async def publish(self, topology: NodeTopology, owner: Mapping[str, str] | None, *, check: bool) -> Outcome:
        """`owner`: name and uid of the Node, where it is known. `check`: look at the server even if all is told."""
        document = forms.document(topology, self._manner.mode, self._manner.version)
        if owner is not None:
            document["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "Node", **owner}]
        equal, alive = document == self._written, self._clock.now() - self._at < HEARTBEAT - self._manner.period
        if equal and alive and not check:
            return "equal"
        there = await self._there()
        if self.guard.other_than_us(there, self._clock.now()):
            self._written = None
            return "stood back"
        if equal and alive and there is not None:
            return "equal"
        await self._apply(document)
        return "heartbeat" if equal and there is not None else "written"

    async def _there(self) -> Published | None:
        try:
            return await self._client.get(self._target)
        except errors.NotFound:
            return None

    async def _apply(self, document: Document) -> None:
        now, metadata = self._clock.now(), document["metadata"]
        signed = {published.SIGNED: self._manner.instance, published.HEARTBEAT: _time(self._clock.wall())}
        wanted = document | {"metadata": metadata | {"annotations": metadata.get("annotations", {}) | signed}}
        # An answer that gets lost on its way may be to a write that was taken.
        self._written = None
        answer = await self._applied(wanted)
        self._written, self._at, self.guard.wrote = document, now, True
        kept = {each.name for each in answer.attributes}
        self.pruned = tuple(each["name"] for each in document.get("attributes", ()) if each["name"] not in kept)

    async def _applied(self, wanted: Document) -> Published:
        try:
            return await self._client.apply(self._target, wanted, manager=published.MANAGER, force=True)
        except errors.ServerFailure as problem:
            # Fields that a definition does not have are pruned from what is put, but refused where it is applied.
            if UNDECLARED not in problem.status.message or "attributes" not in wanted:
                raise
        known = {name: value for name, value in wanted.items() if name != "attributes"}
        return await self._client.apply(self._target, known, manager=published.MANAGER, force=True)


def _time(wall: datetime) -> str:
    return wall.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
