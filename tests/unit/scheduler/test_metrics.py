"""The requests of pods as metrics, as kube-scheduler exposes them."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.scheduler import metrics
from tests.unit.scheduler import servers, waitingpods
from tests.unit.scheduler.servers import Servers

UNITS = {
    "cpu": "cores",
    "memory": "bytes",
    "storage": "bytes",
    "ephemeral-storage": "bytes",
    "hugepages-2Mi": "bytes",
    "attachable-volumes-aws-ebs": "integer",
    "nvidia.com/gpu": "",
    "pods": "",
}


@pytest.mark.parametrize("resource, unit", UNITS.items())
def test_resources_have_the_stock_units(resource: str, unit: str) -> None:
    assert metrics.unit(resource) == unit


def exposed(spec: dict[str, Any]) -> list[str]:
    lines = metrics.resource_lines([waitingpods.pod("p", spec)])
    return [line.partition("resource=")[2] for line in lines if not line.startswith("#")]


def container(requests: dict[str, str], limits: dict[str, str]) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": requests, "limits": limits}}


SPECS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a fraction of a core": (
        {"containers": [container({"cpu": "100m"}, {})]},
        ['"cpu",unit="cores"} 0.1'],
    ),
    "nothing of a resource": ({"containers": [container({"cpu": "0"}, {"cpu": "0"})]}, []),
    "overhead raises what is limited": (
        {
            "containers": [container({"cpu": "1"}, {"memory": "1Ki"})],
            "overhead": {"cpu": "1", "memory": "1Ki"},
        },
        ['"cpu",unit="cores"} 2', '"memory",unit="bytes"} 1024', '"memory",unit="bytes"} 2048'],
    ),
    "amounts of the whole pod win": (
        {
            "containers": [container({"cpu": "1"}, {"cpu": "2"})],
            "resources": {"requests": {"cpu": "3"}, "limits": {"cpu": "4"}},
        },
        ['"cpu",unit="cores"} 3', '"cpu",unit="cores"} 4'],
    ),
}


@pytest.mark.parametrize("spec, lines", SPECS.values(), ids=SPECS)
def test_amounts_are_totals_of_the_pod(spec: dict[str, Any], lines: list[str]) -> None:
    assert exposed(spec) == lines


@pytest.mark.parametrize("phase, counted", {"Running": True, "Succeeded": False, "Failed": False}.items())
def test_pods_that_have_ended_count_no_more(phase: str, counted: bool) -> None:
    pod = servers.on(servers.trainer("p"), "a", phase=phase)
    assert any('node="a"' in line for line in metrics.resource_lines([pod])) == counted


def test_nodes_are_counted_by_the_state_of_their_report() -> None:
    known = Servers("a", "b", "c")
    known.cluster.node(servers.node("new"))
    known.cluster.report_gone("a", 1.0)
    assert metrics.reports(known.cluster) == {"present": 2, "deleted": 1, "missing": 1}
