"""What `kubectl get noderesourcetopologies` shows of a report."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from numalign.api.nrt import publishers, wire
from numalign.deploy import crds
from numalign.simulator.apiserver.tables import printercolumns

NOW = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)


def zone(name: str, free: str) -> dict[str, Any]:
    amounts = {"capacity": "8", "allocatable": "8", "available": free}
    return {"name": name, "type": "Node", "resources": [{"name": "memory", **amounts}, {"name": "cpu", **amounts}]}


def report(*zones: dict[str, Any]) -> dict[str, Any]:
    policy = {"name": "topologyManagerPolicy", "value": "restricted"}
    scope = {"name": "topologyManagerScope", "value": "pod"}
    written = {
        "creationTimestamp": "2025-12-31T00:01:00Z",
        "annotations": {publishers.HEARTBEAT: "2026-01-01T00:00:30Z"},
    }
    return {"metadata": {"name": "n", **written}, "attributes": [policy, scope], "zones": list(zones)}


def shown(version: str, tree: dict[str, Any]) -> dict[str, Any]:
    (served,) = (each for each in crds.node_resource_topologies()["spec"]["versions"] if each["name"] == version)
    columns = printercolumns.layout(served["additionalPrinterColumns"])
    return {column.name: column.cell(tree, NOW) for column in columns}


def test_a_report_shows_policy_scope_free_cpus_and_its_heartbeat() -> None:
    assert shown(wire.V1ALPHA2, report(zone("node-0", "3"), zone("node-1", "7"))) == {
        "Name": "n",
        "Policy": "restricted",
        "Scope": "pod",
        "Free-CPU-1": "3",
        "Free-CPU-2": "7",
        "Heartbeat": "30s",
        "Age": "24h",
    }


def test_what_a_report_does_not_have_is_blank() -> None:
    plain = shown(wire.V1ALPHA2, {"metadata": {"name": "n"}, "zones": [zone("node-0", "3")]})
    assert (plain["Policy"], plain["Free-CPU-1"], plain["Free-CPU-2"], plain["Heartbeat"]) == (None, "3", None, None)


def test_the_old_version_shows_its_policy() -> None:
    old = {"metadata": {"name": "n"}, "topologyPolicies": ["SingleNUMANodePodLevel"], "zones": []}
    assert shown(wire.V1ALPHA1, old)["Policy"] == "SingleNUMANodePodLevel"
