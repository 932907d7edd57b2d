"""Scenario files: what they say, and what is said about those that cannot be."""

from typing import Any

import pytest

from numalign.api.errors import BadObject
from numalign.simulator.scenarios import catalogue, scenariofile
from numalign.simulator.scenarios.durations import Span
from numalign.simulator.scenarios.scenario import CreatedObjects, Deletion, Expectation, Fault, PodStream, Scenario

POD = {"containers": [{"name": "main"}]}
STREAM: dict[str, Any] = {"pods": 3, "mix": [{"name": "web", "spec": POD}]}
FILE: dict[str, Any] = {
    "name": "small",
    "title": "A small one",
    "lasts": "1m30s",
    "nodes": [{"name": "w", "count": 2, "machine": "2x16", "policy": "single-numa-node", "scope": "pod"}],
}


def read(**changes: Any) -> Scenario:
    return scenariofile.read(FILE | changes, "file.yaml")


def test_a_group_of_nodes_shares_machine_and_settings() -> None:
    first, second = read().nodes
    assert (first.name, second.name) == ("w-0", "w-1")
    assert first.machine is second.machine
    assert (first.settings.topology_policy, first.settings.topology_scope) == ("single-numa-node", "pod")


def test_a_single_node_has_no_number() -> None:
    (node,) = read(nodes=[{"name": "w", "machine": {"extends": "2x16", "devices": {"a.com/x": {0: 1}}}}]).nodes
    assert (node.name, list(node.machine.devices)) == ("w", ["a.com/x"])


def test_how_a_node_reports() -> None:
    reports = {"as": "nfd", "period": "5s", "onChange": False, "lag": ["1s", "3s"], "lost": 0.5}
    (node,) = read(nodes=[{"machine": "2x16", "reports": reports}]).nodes
    told = node.publishing
    assert (told.publisher, told.period, told.reactive, told.lag, told.jitter) == ("nfd", 5, False, 1, 2)
    assert told.faults.dropped == 0.5


def test_a_stream_of_pods() -> None:
    (stream,) = read(traffic=[STREAM | {"at": 5, "every": ["1s", "2s"], "lifetime": "1m"}]).traffic
    assert isinstance(stream, PodStream)
    assert (stream.at, stream.every, stream.lifetime) == (5.0, Span(1.0, 2.0), Span(60.0, 60.0))
    assert stream.mix[0].spec == POD


def test_objects_and_deletions() -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}
    gone = {"apiVersion": "v1", "kind": "Pod", "namespace": "a", "labels": "app=web"}
    made, deleted = read(traffic=[{"objects": [namespace]}, {"at": "1s", "delete": gone}]).traffic
    assert made == CreatedObjects(0.0, (namespace,))
    assert deleted == Deletion(at=1.0, api_version="v1", kind="Pod", namespace="a", labels="app=web")


def test_a_fault_that_lasts_is_followed_by_its_end() -> None:
    begun, ended = read(faults=[{"at": "1m", "fault": "cordon", "nodes": "*", "lasts": "30s"}]).faults
    assert begun == Fault(at=60.0, kind="cordon", nodes=("w-0", "w-1"))
    assert ended == Fault(at=90.0, kind="uncordon", nodes=("w-0", "w-1"))


def test_expectations_are_numbers_or_comparisons() -> None:
    expected = read(expect={"any": {"rejected": 0, "running": ">= 3"}}).expect["any"]
    assert expected == (Expectation("rejected", "==", 0.0), Expectation("running", ">=", 3.0))


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a field nobody knows": ({"node": []}, "node: no field of this name; did you mean nodes?"),
    "no nodes": ({"nodes": []}, "nodes: no node; a scenario needs at least one"),
    "a machine nobody knows": ({"nodes": [{"machine": "2x17"}]}, 'nodes[0].machine: no preset "2x17"'),
    "a kubelet that does not start": (
        {"nodes": [{"machine": "2x16", "kubelet": {"cpuManagerPolicy": "static"}}]},
        "nodes[0].kubelet: the kubelet would not start",
    ),
    "a kubelet setting that is none": (
        {"nodes": [{"machine": "2x16", "policy": "strict"}]},
        'topologyManagerPolicy: "strict" is not one of',
    ),
    "two nodes of one name": ({"nodes": [{"machine": "2x16"}] * 2}, "two nodes have the name node"),
    "a length of time that is none": ({"lasts": "soon"}, 'lasts: "soon" is not a duration'),
    "a time span the wrong way round": (
        {"traffic": [STREAM | {"every": ["2s", "1s"]}]},
        "traffic[0].every: write one duration",
    ),
    "a chance above one": (
        {"nodes": [{"machine": "2x16", "reports": {"lost": 2}}]},
        "reports.lost: 2 is not a probability",
    ),
    "a stream of nothing": ({"traffic": [{"pods": 1, "mix": []}]}, "traffic[0].mix: no pod"),
    "a fault nobody knows": ({"faults": [{"fault": "flood", "nodes": "*"}]}, 'faults[0].fault: "flood" is not one of'),
    "a node nobody knows": ({"faults": [{"fault": "reboot", "nodes": ["x"]}]}, 'no node has the name "x"'),
    "an end of what does not last": (
        {"faults": [{"fault": "reboot", "nodes": "*", "lasts": "1s"}]},
        "faults[0].lasts: reboot has no duration",
    ),
    "a measure nobody knows": ({"expect": {"any": {"rejects": 0}}}, "did you mean rejected?"),
    "an expectation that is none": ({"expect": {"any": {"rejected": "few"}}}, '"few" is not a valid expectation'),
    "an object without a kind": ({"traffic": [{"objects": [{"apiVersion": "v1"}]}]}, "traffic[0].objects[0].kind"),
    "a deletion of nobody knows what": (
        {"traffic": [{"delete": {"apiVersion": "v1", "kind": "Pod"}}]},
        "specify one object by name, or several by labels",
    ),
}


@pytest.mark.parametrize("changes, words", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_is_said_with_its_field(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(BadObject) as met:
        read(**changes)
    assert words in str(met.value)
    assert "file.yaml" in str(met.value)


@pytest.mark.parametrize("name", catalogue.names())
def test_the_catalogue_can_be_read_and_names_its_files(name: str) -> None:
    found = catalogue.scenario(name)
    assert found.name == name
    assert found.about


def test_a_scenario_nobody_knows_is_named_with_the_nearest() -> None:
    with pytest.raises(BadObject, match="did you mean gpu-mix"):
        catalogue.scenario("gpu-mixx")
