"""Recorded cases of the nodes' publishers get the recorded answer, or differ for a reason that is written down."""

from __future__ import annotations

from pathlib import Path

import pytest

from numalign.oracle import recorded
from numalign.oracle.harness.suite import Outcome
from numalign.oracle.recorded import RecordedCase
from tests.oracle import exportercases
from tests.oracle.test_plugin_cases import ANCHORS, unnoticed

FREE_TEXT = {"leb89.malformed_derived"}
"""Suites without an expectation but that nothing is made of the input."""
LONG = 4000

files = pytest.mark.parametrize("path", exportercases.FILES.values(), ids=exportercases.FILES)


@files
def test_every_case_is_answered_as_recorded_or_differs_for_a_reason(path: Path) -> None:
    report = recorded.summed(map(recorded.judge, exportercases.cases(path)))
    assert [(each.recorded.suite, each.recorded.id, each.differences) for each in report.mismatches] == []


@files
def test_every_reason_is_on_the_compatibility_page(path: Path) -> None:
    intended = [each for each in map(recorded.judge, exportercases.cases(path)) if each.outcome is Outcome.DELIBERATE]
    assert {each.anchor for each in intended} <= ANCHORS


@files
def test_a_wrong_expectation_is_noticed(path: Path) -> None:
    equal = [each for each in exportercases.cases(path) if recorded.judge(each).outcome is Outcome.EQUAL]
    telling = [each for each in equal if each.suite not in FREE_TEXT and len(str(each.case["expect"])) < LONG]
    # A column that is not there is one that the table did not have for this row.
    missed = [
        (each.suite, each.id, wrong)
        for each in telling
        for wrong in unnoticed(each)
        if wrong.keys() == each.case["expect"].keys()
    ]
    assert missed == []


def test_the_repository_carries_enough_cases() -> None:
    carried = [each for each in exportercases.cases(exportercases.VENDORED) if "derived" in each.suite]
    assert len(carried) >= 17


def judged(suite: str, row: dict[str, object], expect: dict[str, object]) -> Outcome:
    return recorded.judge(
        RecordedCase("here", suite, "made up", {"input": row, "expect": expect, "fixtures": {}})
    ).outcome


@pytest.mark.parametrize(
    "events, left",
    [
        (["create-nrt:late"], ["a", "b", "late"]),
        (["create-nrt:late", "tick"], ["a", "b"]),
        (["create-node:late", "create-nrt:late", "tick"], ["a", "b", "late"]),
        (["delete-node:a", "create-node:a", "tick"], ["b"]),
        (["delete-node:unknown", "delete-nrt:unknown"], ["a", "b"]),
    ],
)
def test_reports_are_cleared_away_when_a_sweep_is_due_or_a_node_goes(events: list[str], left: list[str]) -> None:
    row: dict[str, object] = {"nodes": ["a", "b"], "nrts": ["a", "b", "stale"], "events": events}
    assert judged("updater.gc", row, {"left": left}) is Outcome.EQUAL
    assert judged("updater.gc", row, {"left": ["stale", *left]}) is Outcome.MISMATCH


@pytest.mark.parametrize(
    "path, updater",
    [("pod-resources/kubelet.sock", False), ("device-plugins/cpu_manager_state", True)],
)
def test_files_that_count_for_one_of_both_programs_differ_for_a_reason(path: str, updater: bool) -> None:
    row: dict[str, object] = {"path": f"kubelet/{path}"}
    assert judged("updater.state_events_derived", row, {"triggers": updater}) is Outcome.DELIBERATE
    assert judged("updater.state_events_derived", {"path": "kubelet/x/cpu_manager_state"}, {"triggers": True}) is (
        Outcome.MISMATCH
    )


@pytest.mark.parametrize("existing, well", [("directory", False), ("symlink-empty", True)])
def test_a_folder_is_no_notification_file_and_a_link_is_followed(existing: str, well: bool) -> None:
    assert judged("exporter.notify_file", {"existing": existing}, {"ok": well}) is Outcome.EQUAL


@pytest.mark.parametrize("free, outcome", [(0, Outcome.EQUAL), (1, Outcome.MISMATCH)])
def test_a_device_in_two_zones_that_is_held_once_excuses_nothing(free: int, outcome: Outcome) -> None:
    nodes = [{"id": zone, "cpus": [zone], "distances": [10, 10]} for zone in (0, 1)]
    entries = [{"resource": "v/gpu", "ids": ["g0"], "numa": [zone]} for zone in (0, 1)]
    container = {"name": "c", "cpus": [], "memory": [], "devices": entries}
    row: dict[str, object] = {
        "topology": {"nodes": nodes},
        "allocatable": {"devices": entries, "cpus": [0, 1], "memory": []},
        "pods": [{"namespace": "d", "name": "p", "containers": [container]}],
    }
    costs = [{"name": f"node-{zone}", "value": 10} for zone in (0, 1)]
    cpu = {"name": "cpu", "capacity": 1, "allocatable": 1, "available": 1}
    gpu = {"name": "v/gpu", "capacity": 1, "allocatable": 1, "available": free}
    zones = [{"name": f"node-{zone}", "type": "Node", "costs": costs, "resources": [cpu, gpu]} for zone in (0, 1)]
    assert judged("exporter.scan", row, {"zones": zones}) is outcome


def test_settings_that_the_file_leaves_out_are_empty_for_rte_alone() -> None:
    def configured(exporter: list[str], scope: str = "") -> Outcome:
        text = f"kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\n{scope}"
        read = ["none", "pod" if scope else "container"]
        return judged("kubelet.config_derived", {"text": text}, {"updater": read, "exporter": exporter})

    assert configured(["", ""]) is Outcome.DELIBERATE
    assert configured(["none", "container"]) is Outcome.EQUAL
    assert configured(["", "pod"], "topologyManagerScope: pod\n") is Outcome.DELIBERATE
    assert configured(["restricted", ""]) is Outcome.MISMATCH


@pytest.mark.parametrize(
    "columns, outcome",
    [
        ({}, Outcome.DELIBERATE),
        ({"error_v0_1_0": "unknown-busiest-node"}, Outcome.DELIBERATE),
        ({"error_v0_1_0": "corrupted-vector"}, Outcome.MISMATCH),
    ],
    ids=["unsaid", "as we say", "otherwise"],
)
def test_a_payload_that_is_broken_twice_is_refused_as_the_release_refuses_it(
    columns: dict[str, object], outcome: Outcome
) -> None:
    payload = {"containers": 1, "numaNodes": 1, "busiestNode": -1, "vectorEncoding": "leb89", "vectors": {}}
    row: dict[str, object] = {"payload": payload, **columns}
    assert judged("numaplacement.validate_for_decoder", row, {"error": "inconsistent-busiest-node"}) is outcome
    assert judged("numaplacement.validate_for_decoder", row, {"error": None}) is Outcome.MISMATCH
