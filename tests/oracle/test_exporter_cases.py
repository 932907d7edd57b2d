"""Plain reports are those of the publishers: recorded cases, as far as a kubelet can get into their states."""

from __future__ import annotations

import pytest

from numalign.api import zonename
from numalign.api.nodetopology import Zone
from numalign.kubelet import plainreport, report
from numalign.kubelet.plainreport import Publisher
from tests.oracle import exportercases
from tests.oracle.exportercases import Case

FILES = [path for path in (exportercases.VENDORED, exportercases.BESIDE) if path.exists()]
NOT_ON_A_NODE = {
    "exporter.scan.no-pods-all-cpus": "a static CPU policy without a reserved CPU",
    "exporter.scan.pods-all-cpus": "the same",
    "exporter.scan.pods-refresh-enabled": "the same",
    "exporter.scan_derived.device-without-topology-is-dropped": "the same",
    "exporter.scan_derived.namespace-filter-limits-usage-not-inventory": "the same, and a setting of the publisher",
    "exporter.scan_derived.exclude-by-node-and-wildcard": "a setting of the publisher",
    "exporter.scan_derived.hugepages-of-other-sizes-fall-back-to-allocatable-capacity": "no memory but pages",
    "exporter.scan_derived.allocatable-above-sysfs-capacity-raises-capacity": "more memory than there is",
    "exporter.placement_derived.unknown-cpu-is-error": "a CPU that the machine does not have",
    "updater.aggregate.no-pods": "pages that are a part of one",
    "updater.aggregate.with-pods": "the same",
    "updater.aggregate_derived.memory-on-two-numa-reverse-order": "the kubelet lists zones ascending",
    "updater.aggregate_derived.excluded-memory-usage-ignored": "a static memory policy without reserved memory",
}
CASES = {
    f"{path.name}: {name}": case
    for path in FILES
    for name, case in exportercases.cases(path).items()
    if name not in NOT_ON_A_NODE
}
SCANS = {name: case for name, case in CASES.items() if "zones" in case[1]}
PLACEMENTS = {name: case for name, (_, case) in CASES.items() if "payload" in case}


@pytest.mark.parametrize("publisher, case", SCANS.values(), ids=SCANS)
def test_zones_are_those_that_the_publisher_writes(publisher: Publisher, case: Case) -> None:
    kubelet = exportercases.kubelet(case)
    topology = plainreport.of("recorded", kubelet, exportercases.state(case, kubelet), publisher)
    hidden = {resource for resources in case.get("exclude", {}).values() for resource in resources}
    found = {zonename.name_of(zone.id): amounts(zone, hidden) for zone in topology.zones}
    assert found == exportercases.amounts(case["zones"])


@pytest.mark.parametrize("case", PLACEMENTS.values(), ids=PLACEMENTS)
def test_placements_are_encoded_as_the_publisher_does(case: Case) -> None:
    found = report.payload(exportercases.kubelet(case), exportercases.placements(case))
    written = {str(zone): vector for zone, vector in found.vectors.items()} if found else None
    assert (found.metadata if found else None) == case.get("metadata")
    assert written == (case["payload"]["vectors"] if case["payload"] else None)


def amounts(zone: Zone, hidden: set[str]) -> dict[str, tuple[int, int, int]]:
    """In whole CPUs."""
    found = {}
    for resource, each in zone.resources.items():
        unit = 1000 if resource == "cpu" else 1
        found[resource] = each.capacity // unit, each.allocatable // unit, each.available // unit
    return {resource: own for resource, own in found.items() if resource not in hidden}


def test_the_repository_carries_enough_cases() -> None:
    carried = [name for name in CASES if name.startswith(exportercases.VENDORED.name)]
    assert len(carried) == 17
