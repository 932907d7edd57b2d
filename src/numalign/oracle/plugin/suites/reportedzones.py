"""Zone ids of recorded reports as the plugin reads them, and the defect with id 64 that Filter and Score share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numalign.api.nrt import wire
from numalign.oracle.plugin.suites import objects
from numalign.oracle.plugin.suites.suite import Case, Deliberate
from numalign.placement.reference import numanodes


def ids(report: objects.Raw) -> list[int]:
    """The ids of all zones that are NUMA nodes."""
    names = (zone["name"] for zone in report["zones"] or () if zone["type"] == wire.NUMA_ZONE)
    return [zone for zone in map(numanodes.id_in, names) if zone is not None]


def crashed(case: Case) -> bool:
    return "referenceCrash" in case["expect"]


def _has_zone_64(given: Mapping[str, Any]) -> bool:
    return any(numanodes.MOST_IDS in ids(report) for report in objects.reports(given))


ZONE_64 = Deliberate(
    "zone-64", "the plugin crashes on a zone named node-64; it is left out, as those above", _has_zone_64, crashed
)
