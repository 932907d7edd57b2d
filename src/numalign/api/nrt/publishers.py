"""Who publishes a topology report, and when it last did.

Reports carry no time. The managed fields of the object name its writers with the API server's time: the owner of
zones and attributes is the publisher (exporter spec 1.6). Annotations add what managed fields cannot tell: which
process of our agent wrote, and when by its own clock. The agent writes and reads these marks; `numalign topology` and
the doctor read them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from numalign.api.decode.structs import Wire
from numalign.api.objects.meta import ObjectMeta

AGENT: Final = "numalign-agent"
"""The field manager of our agent, and the value of its claim."""
NFD: Final = "node-feature-discovery-topology-updater"
RTE: Final = "resource-topology-exporter"
SIGNED: Final = "numalign.io/agent"
"""Annotation: the process that wrote the report."""
HEARTBEAT: Final = "numalign.io/heartbeat"
"""Annotation: when the agent last wrote, which distinguishes an idle agent from a dead one."""
HEARTBEAT_SECONDS: Final = 300.0
"""Seconds within which a running agent renews its heartbeat."""
RTE_UPDATE: Final = "k8stopoawareschedwg/rte-update"
"""RTE's annotation: the trigger of the update (exporter spec 1.10)."""
CLAIM: Final = "app.kubernetes.io/managed-by"
GRACE: Final = 300.0
"""Seconds for which a report may exist without its Node: it may have come first."""
STARTUP_TAINT: Final = "numalign.io/no-report"
"""The key of the taint that keeps pods off a node until its first report."""
LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)
CONTENT: Final = ("f:zones", "f:attributes", "f:topologyPolicies")


class ManagedFields(Wire, frozen=True):
    manager: str = ""
    subresource: str = ""
    fields_v1: dict[str, Any] | None = None
    time: str | None = None


class ManagedMeta(ObjectMeta, frozen=True):
    managed_fields: tuple[ManagedFields, ...] = ()


def claimed_by(report: ObjectMeta) -> str:
    """The publisher that claims the object by a label; empty: none, or our agent."""
    owner = report.labels.get(CLAIM, "")
    return "" if owner == AGENT else owner


def writers(report: ManagedMeta) -> tuple[str, ...]:
    """The managers that wrote the content as it is; a manager without a name is the empty text.

    A publisher that is gone stays the owner of fields that its successor wrote with the same value. So where one
    manager owns all of the content, the others were there before it."""
    owned: dict[str, set[str]] = {}
    for each in sorted(report.managed_fields, key=lambda entry: entry.time or ""):
        content = {field for field in CONTENT if field in (each.fields_v1 or {})}
        if content:
            owned[each.manager] = owned.pop(each.manager, set()) | content
    everything = set().union(*owned.values())
    whole = [manager for manager, content in owned.items() if content == everything]
    return tuple(whole[-1:] or owned)


def written_by(report: ManagedMeta, instance: str) -> str:
    """The writer that overwrote the report of this process of our agent; empty: none."""
    for manager in writers(report):
        if manager != AGENT:
            return manager or "an unnamed writer"
    signed = report.annotations.get(SIGNED, "")
    return "" if signed == instance else signed or "a writer that leaves no name"


def latest(report: ManagedMeta) -> ManagedFields:
    """The last write, by the API server's time."""
    return max(report.managed_fields, key=lambda each: each.time or "", default=ManagedFields())


Report = TypeVar("Report", bound=ObjectMeta)


def orphans(nodes: Iterable[str], reports: Iterable[Report], before: datetime) -> list[Report]:
    """Reports that were created before that time and whose node is not among these."""
    known = frozenset(nodes)
    gone = (each for each in reports if each.name not in known)
    return [each for each in gone if (moment(each.creation_timestamp) or LONG_AGO) <= before]


def moment(text: str | None) -> datetime | None:
    """A time stamp of an object; None where it is absent, malformed or without a time zone."""
    try:
        read = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return read if read.tzinfo is not None else None
