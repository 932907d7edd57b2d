"""The object as it stands in the cluster, read for who wrote it, and whether that was us.

`publish` asks before every write. Lists of this kind belong to one writer as a whole (exporter spec 1.6), so that
whoever owns the zones or attributes, by the server's own bookkeeping, is the one who writes reports. Another agent of
ours goes by the same name there and is told by what it signs its reports with. Pure; nothing here acts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from numalign.api.decode.structs import Wire
from numalign.api.nrt import normalise, topologymanager, wire
from numalign.api.objects.meta import ObjectMeta
from numalign.kube import resources
from numalign.kube.resources import TOPOLOGIES, Resource

MANAGER: Final = "numalign-agent"
SIGNED: Final = "numalign.io/agent"
"""Annotation: which process wrote the report."""
HEARTBEAT: Final = "numalign.io/heartbeat"
"""Annotation: when it last did, so that an idle agent and a dead one can be told apart."""
RTE_UPDATE: Final = "k8stopoawareschedwg/rte-update"
"""Annotation of RTE's: what made it look (exporter spec 1.10)."""
CLAIM: Final = "app.kubernetes.io/managed-by"
OURS: Final = ("f:zones", "f:attributes", "f:topologyPolicies")
SETTINGS: Final = (
    *topologymanager.ATTRIBUTES,
    "numalign.io/managers",
    "numalign.io/kubelet",
    "numalign.io/reserved-memory",
)
"""Attributes that come of the kubelet's configuration alone."""


class ManagedFields(Wire, frozen=True):
    manager: str = ""
    subresource: str = ""
    fields_v1: dict[str, Any] | None = None


class ManagedMeta(ObjectMeta, frozen=True):
    managed_fields: tuple[ManagedFields, ...] = ()


class Published(Wire, frozen=True):
    metadata: ManagedMeta = ManagedMeta()
    attributes: tuple[wire.Attribute, ...] = ()


def resource(version: normalise.Version) -> Resource[Published]:
    return resources.of(f"{wire.GROUP}/{version}", TOPOLOGIES.plural, TOPOLOGIES.kind, Published)


def claimed_by(there: Published) -> str:
    """Who says by a label that the object is his; empty: nobody but us."""
    owner = there.metadata.labels.get(CLAIM, "")
    return "" if owner == MANAGER else owner


def is_so_configured(there: Published, attributes: Iterable[Mapping[str, str]]) -> bool:
    """Whether one of our agents told as much, and the same, of how the kubelet is configured."""
    signed = there.metadata.annotations.get(SIGNED, "")
    told = {each.name: each.value for each in there.attributes if each.name in SETTINGS}
    wanted = {each["name"]: each["value"] for each in attributes if each["name"] in SETTINGS}
    return bool(signed and wanted) and wanted.items() <= told.items() and not written_by(there, signed)


def written_by(there: Published, instance: str) -> str:
    """Who wrote the report over ours; empty: it still is ours."""
    for entry in there.metadata.managed_fields:
        if entry.manager != MANAGER and any(field in (entry.fields_v1 or {}) for field in OURS):
            return entry.manager or "an unnamed writer"
    signed = there.metadata.annotations.get(SIGNED, "")
    return "" if signed == instance else signed or "a writer that leaves no name"
