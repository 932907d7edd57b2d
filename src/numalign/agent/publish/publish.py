"""Writes the report to the API server: compares, applies, and renews the heartbeat.

The agent's cycle calls `publish` after every snapshot; failures are raised as `kube.errors`, and the next snapshot
brings a newer report. The object is read once per period: a deleted object is written again. `Published` shows
who wrote the object, by its managed fields: the owner of zones and attributes is the publisher (exporter spec 1.6).
`Ownership` decides whether to write: the agent takes over an old object once; if another publisher then overwrites it,
the agent stops, and retries every ten periods. A label that claims the object also stops it (exporter spec 1.13)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Final, Literal

from msgspec import Struct

from numalign.agent.inventory import exclusions
from numalign.agent.inventory.exclusions import Exclusions
from numalign.agent.inventory.inventory import Mode
from numalign.agent.publish import forms
from numalign.agent.publish.forms import Document
from numalign.api.decode.structs import Wire
from numalign.api.nrt import fingerprint, normalise, publishers, topologymanager, wire
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.api.nrt.publishers import ManagedMeta
from numalign.kube import errors, resources
from numalign.kube.client import Client
from numalign.kube.resources import TOPOLOGIES, Resource

SETTINGS: Final = (
    *topologymanager.ATTRIBUTES,
    "numalign.io/managers",
    "numalign.io/kubelet",
    "numalign.io/reserved-memory",
)
"""Attributes that follow from the kubelet's configuration alone."""


class Published(Wire, frozen=True):
    metadata: ManagedMeta = ManagedMeta()
    attributes: tuple[wire.Attribute, ...] = ()


def resource(version: normalise.Version) -> Resource[Published]:
    return resources.of(f"{wire.GROUP}/{version}", TOPOLOGIES.plural, TOPOLOGIES.kind, Published)


def is_so_configured(there: Published, attributes: Iterable[Mapping[str, str]]) -> bool:
    """Whether an agent already published the same configuration of the kubelet."""
    signed = there.metadata.annotations.get(publishers.SIGNED, "")
    there_now = {each.name: each.value for each in there.attributes if each.name in SETTINGS}
    wanted = {each["name"]: each["value"] for each in attributes if each["name"] in SETTINGS}
    return (
        bool(signed and wanted)
        and wanted.items() <= there_now.items()
        and not publishers.written_by(there.metadata, signed)
    )


PATIENCE: Final = 10
"""Periods until the agent retries after another publisher wrote."""


class Ownership(Struct):
    """What the agent remembers about other publishers."""

    instance: str
    patience: float
    """Seconds until the agent retries after another publisher wrote."""
    wrote: bool = False
    """Whether the API server accepted a report of this agent."""
    other: str = ""
    """The publisher that owns the object."""
    since: float = 0.0

    def look(self, there: Published | None, now: float) -> str:
        """The publisher that owns the current object; empty: write."""
        if there is None:
            self.other = ""
            return ""
        claimed = publishers.claimed_by(there.metadata)
        if claimed:
            self._stand_back(claimed, now)
        elif self.other and now - self.since >= self.patience:
            # Taken over again, as at the start.
            self.other, self.wrote = "", False
        elif self.wrote and not self.other and (writer := publishers.written_by(there.metadata, self.instance)):
            self._stand_back(writer, now)
        return self.other

    def _stand_back(self, other: str, now: float) -> None:
        self.other, self.since = other, now


UNDECLARED: Final = ".attributes: field not declared in schema"
PARTIAL: Final = {"name": normalise.FINGERPRINT_METHOD, "value": fingerprint.Method.EXCLUSIVE.value}

Outcome = Literal["written", "heartbeat", "equal", "stood back"]


class Manner(Struct, frozen=True, kw_only=True):
    """How to publish."""

    instance: str
    """Identifies this process among agents on the same node."""
    mode: Mode = "own"
    left_out: Exclusions = exclusions.NONE
    """Exclusions, in the modes `rte` and `nfd`."""
    version: normalise.Version = wire.V1ALPHA2
    period: float = 60.0
    """Seconds between two reads of the object."""
    untaint: bool = False
    """Whether to remove the start-up taint from the Node once its report is published."""
    fingerprint: bool = True
    """Whether the report has the fingerprint of the node's pods."""
    paused: bool = False
    """Whether the agent reads the node and publishes nothing."""


class Publisher:
    """Publishes one node's report, and remembers what it wrote; for one task."""

    def __init__(self, client: Client, node: str, manner: Manner) -> None:
        self._client, self._clock, self._node = client, client.sender.clock, node
        self._manner = manner
        self.guard = Ownership(instance=manner.instance, patience=PATIENCE * manner.period)
        self._written: Document | None = None
        self._in = manner.version
        """The version in which it was written."""
        self._at = 0.0
        self.pruned: tuple[str, ...] = ()
        """Attributes that the API server pruned, because its CustomResourceDefinition is older."""
        self._settled = True
        """Whether it pruned the same ones twice: a changed CustomResourceDefinition takes effect a moment later."""

    async def publish(
        self, topology: NodeTopology, owner: Mapping[str, str] | None, *, check: bool, periodic: bool = False
    ) -> Outcome:
        """`owner`: name and uid of the Node, if known. `check`: read the object even if nothing changed. `periodic`:
        whether only the period triggered the snapshot."""
        wanted = self._document(topology, owner, self._manner.version)
        alive = self._clock.now() - self._at < publishers.HEARTBEAT_SECONDS - self._manner.period
        equal = wanted == self._written
        if check:
            there, served = await self._there()
            self.guard.look(there, self._clock.now())
            equal = equal and there is not None and served == self._in and self._settled
        if self.guard.other:
            self._written = None
            return "stood back"
        if equal and alive:
            return "equal"
        await self._apply(wanted, lambda: self._document(topology, owner, wire.V1ALPHA1), periodic=periodic)
        return "heartbeat" if equal else "written"

    async def was_so_configured(self, topology: NodeTopology) -> bool:
        """Whether an agent of this node, perhaps an earlier process, published the same configuration."""
        there, version = await self._there()
        wanted = self._document(topology, None, version)
        return there is not None and is_so_configured(there, wanted.get("attributes", ()))

    async def earlier(self) -> NodeTopology | None:
        """The report that an earlier process published; None: there is none, or another publisher wrote it."""
        there, _ = await self._there()
        signed = there.metadata.annotations.get(publishers.SIGNED, "") if there is not None else ""
        if there is None or not signed or publishers.claimed_by(there.metadata):
            return None
        if publishers.written_by(there.metadata, signed):
            return None
        try:
            return normalise.normalise(await self._client.get(TOPOLOGIES.at(self._node)))
        except errors.NotFound:
            return None

    def _document(
        self, topology: NodeTopology, owner: Mapping[str, str] | None, version: normalise.Version
    ) -> Document:
        return _owned(forms.document(topology, self._manner.mode, version), owner)

    @property
    def _versions(self) -> tuple[normalise.Version, ...]:
        """Best first: older CustomResourceDefinitions serve v1alpha1 only."""
        return tuple(dict.fromkeys((self._manner.version, wire.V1ALPHA1)))

    async def _there(self) -> tuple[Published | None, normalise.Version]:
        """The object, and the version that serves it."""
        for version in self._versions:
            try:
                return await self._client.get(resource(version).at(self._node)), version
            except errors.NotFound:
                continue
        return None, self._manner.version

    async def _apply(self, wanted: Document, older: Callable[[], Document], *, periodic: bool) -> None:
        now, last = self._clock.now(), (self._in, self.pruned)
        signed = {publishers.SIGNED: self._manner.instance, publishers.HEARTBEAT: _time(self._clock.wall())}
        if self._manner.mode == "rte":
            signed[publishers.RTE_UPDATE] = "periodic" if periodic else "reactive"
        # A lost answer may belong to a write that succeeded.
        self._written = None
        try:
            answer, self._in = await self._applied(self._manner.version, _signed(wanted, signed)), self._manner.version
        except errors.NotFound as missing:
            answer = await self._applied_as_older(_signed(older(), signed), missing)
            self._in = wire.V1ALPHA1
        self._written, self._at, self.guard.wrote = wanted, now, True
        kept = {each.name for each in answer.attributes}
        self.pruned = tuple(each["name"] for each in wanted.get("attributes", ()) if each["name"] not in kept)
        self._settled = not self.pruned or (self._in, self.pruned) == last

    async def _applied_as_older(self, wanted: Document, missing: errors.NotFound) -> Published:
        try:
            return await self._applied(wire.V1ALPHA1, wanted)
        except errors.NotFound:
            # The error of the preferred version says more.
            raise missing from None

    async def _applied(self, version: normalise.Version, wanted: Document) -> Published:
        target = resource(version).at(self._node)
        try:
            return await self._client.apply(target, wanted, manager=publishers.AGENT, force=True)
        except errors.ServerFailure as problem:
            # Unknown fields are pruned from an update, but refused in an apply.
            if UNDECLARED not in problem.status.message or "attributes" not in wanted:
                raise
        return await self._client.apply(target, _without_attributes(wanted), manager=publishers.AGENT, force=True)


def _without_attributes(document: Document) -> Document:
    """Also without the fingerprint annotation of some pods: a reader that knows only it would take it for all pods."""
    kept = {name: value for name, value in document.items() if name != "attributes"}
    if PARTIAL not in document["attributes"]:
        return kept
    metadata = document["metadata"]
    annotated = metadata.get("annotations", {})
    annotations = {name: text for name, text in annotated.items() if name != normalise.FINGERPRINT_ANNOTATION}
    return kept | {"metadata": metadata | {"annotations": annotations}}


def _owned(document: Document, owner: Mapping[str, str] | None) -> Document:
    references = [{"apiVersion": "v1", "kind": "Node", **owner}] if owner is not None else []
    return document | {"metadata": document["metadata"] | ({"ownerReferences": references} if references else {})}


def _signed(document: Document, annotations: Mapping[str, str]) -> Document:
    metadata = document["metadata"]
    return document | {"metadata": metadata | {"annotations": {**metadata.get("annotations", {}), **annotations}}}


def _time(wall: datetime) -> str:
    return wall.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
