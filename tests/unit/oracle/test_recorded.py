"""Files of plugin cases, as the command reads, judges and counts them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from numalign.api.errors import BadObject
from numalign.cli.devkit import oracle
from numalign.oracle import recorded as casefiles
from numalign.oracle import recorded as judging
from numalign.oracle import recorded as recordedsuites
from numalign.oracle.harness import suite
from numalign.oracle.harness.suite import DeliberateDifference, Outcome, Suite
from numalign.oracle.plugin.suites import objects
from numalign.oracle.recorded import CheckedCase, RecordedCase
from tests.unit.oracle import small

RIGHT = {"id": "host/1", "suite": "is_host_level_resource", "input": {"resource": "cpu"}, "expect": {"result": False}}
WRONG = {**RIGHT, "id": "host/2", "expect": {"result": True}}
STRANGE = {**RIGHT, "id": "x/1", "suite": "telepathy"}
LOGGED = {**RIGHT, "id": "log/1", "suite": "stringify_resource_list"}
UNANSWERABLE = {**RIGHT, "id": "host/3", "input": {}}
VERSION = {"id": "ve/1", "suite": "np_payload_validate", "expect": {"error": "inconsistent NUMA vector data"}}
PAYLOAD = {"busiestNode": 0, "containers": 1, "numaNodes": 0, "vectorEncoding": "leb89", "vectors": {}}
INTENDED = {**VERSION, "input": PAYLOAD}


def document(path: Path, *cases: Any, **more: Any) -> Path:
    path.write_text(json.dumps({"meta": {}, "cases": cases, **more}))
    return path


def recorded(case: dict[str, Any]) -> RecordedCase:
    return RecordedCase("here", case["suite"], case["id"], case)


def run(*words: object) -> Result:
    return CliRunner().invoke(oracle.app, ["replay", *map(str, words)])


def test_the_last_line_counts_every_case_of_the_file(tmp_path: Path) -> None:
    result = run(document(tmp_path / "cases.json", RIGHT, RIGHT, LOGGED, INTENDED))
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "suite                    equal  deliberate  mismatch  not applicable",
        "is_host_level_resource       2           0         0               0",
        "stringify_resource_list      0           0         0               1"
        "  renders log lines of the plugin, which we do not write",
        "np_payload_validate          0           1         0               0  placement-busiest",
        "4 cases, 0 mismatches",
    ]


@pytest.mark.parametrize("case", [WRONG, STRANGE, UNANSWERABLE], ids=["wrong", "unknown suite", "no answer"])
def test_what_is_not_right_is_a_mismatch_and_fails(tmp_path: Path, case: Any) -> None:
    result = run(document(tmp_path / "cases.json", RIGHT, case))
    assert result.exit_code == 1
    assert result.stdout.splitlines()[0].startswith(f"{case['suite']} {case['id']}")
    assert result.stdout.splitlines()[-1] == "2 cases, 1 mismatches"


def test_vectors_and_plugin_cases_add_up(tmp_path: Path) -> None:
    vectors = small.lines(tmp_path / "merge.jsonl", small.MERGE, {**small.MERGE, "id": "merge-2", "admit": False})
    result = run(vectors, document(tmp_path / "cases.json", RIGHT, WRONG))
    assert result.stdout.splitlines()[-1] == "4 cases, 2 mismatches"


def test_structured_output_has_the_suites_and_their_differences(tmp_path: Path) -> None:
    told = json.loads(run(document(tmp_path / "cases.json", WRONG, INTENDED), "-o", "json").stdout)
    assert (told["cases"], told["mismatches"], told["families"]) == (2, 1, {})
    assert told["suites"]["np_payload_validate"]["notes"] == ["placement-busiest"]
    assert told["differences"] == [
        {
            "family": "is_host_level_resource",
            "case": "host/2",
            "where": f"{tmp_path / 'cases.json'}, line 1, case 1",
            "path": "result",
            "expected": True,
            "answered": False,
        }
    ]


UNUSABLE: dict[str, tuple[Any, str]] = {
    "no object": ([1], "case 1: is 1; a case is a JSON object"),
    "no input": ([{"id": "a", "suite": "b", "expect": 1}], "case 1, input: is missing"),
    "no suite": ([RIGHT, {"id": "a", "input": 1, "expect": 1}], "case 2, suite: is missing"),
    "no case": ([], "cases: holds no case"),
}


@pytest.mark.parametrize("cases, complaint", UNUSABLE.values(), ids=UNUSABLE)
def test_a_file_that_cannot_be_used_is_refused(tmp_path: Path, cases: list[Any], complaint: str) -> None:
    path = document(tmp_path / "cases.json", *cases)
    with pytest.raises(BadObject, match="Recording") as bad:
        casefiles.load(path)
    assert complaint in str(bad.value)
    assert run(path).exit_code == 2


SHAPES = {
    "a list": lambda cases: json.dumps(cases),
    "lines": lambda cases: "\n".join(map(json.dumps, cases)),
}


@pytest.mark.parametrize("written", SHAPES.values(), ids=SHAPES)
def test_cases_may_come_alone(tmp_path: Path, written: Callable[[list[Any]], str]) -> None:
    path = tmp_path / "cases"
    path.write_text(written([RIGHT, RIGHT, WRONG]))
    assert run(path).stdout.splitlines()[-1] == "3 cases, 1 mismatches"
    path.write_text(written([RIGHT, {**RIGHT, "suite": None}]))
    assert run(path).exit_code == 2


TABLES: dict[str, tuple[Any, int, str]] = {
    "of one section": ({"leb89": {"encode": [{"value": 0, "chars": 1, "encoded": "!"}]}}, 0, "1 cases, 0 mismatches"),
    "of an unknown table": ({"updater": {"telepathy": [{"a": 1}]}}, 1, "1 cases, 1 mismatches"),
    "with a row that is none": ({"leb89": {"encode": [{"value": 0}, 5]}}, 2, ""),
    "without a row": ({"exporter": {"scan": []}}, 2, ""),
}


@pytest.mark.parametrize("tables, code, last", TABLES.values(), ids=TABLES)
def test_no_row_of_a_publishers_table_is_left_out(tmp_path: Path, tables: Any, code: int, last: str) -> None:
    path = tmp_path / "tables.json"
    path.write_text(json.dumps({"meta": {}, **tables}))
    result = run(path)
    assert result.exit_code == code
    assert result.stdout.splitlines()[-1:] == ([last] if last else [])


def test_cases_come_with_what_the_file_shares(tmp_path: Path) -> None:
    found = casefiles.load(document(tmp_path / "c.json", RIGHT, fixtures={"pods": [1]}))
    assert [each.case for each in found or ()] == [{**RIGHT, "fixtures": {"pods": [1]}}]


def test_other_files_are_of_another_kind(tmp_path: Path) -> None:
    assert casefiles.load(small.lines(tmp_path / "merge.jsonl", small.MERGE)) is None


def test_only_the_recorded_defect_is_excused() -> None:
    assert judging.judge(recorded(INTENDED)).outcome is Outcome.DELIBERATE
    assert judging.judge(recorded({**INTENDED, "expect": {"error": None}})).outcome is Outcome.MISMATCH


NARROWER: dict[str, Any] = {
    "id": "merge/1",
    "suite": "tm.merge",
    "input": {
        "policy": "best-effort",
        "numa_nodes": [0, 1, 2, 3],
        "providers": [{"cpu": [[[0], True], [[0, 1], False]]}, None, {"gpu": [[[0, 1], True]], "nic": None}],
    },
    "expect": {"affinity": [0, 1, 2, 3], "preferred": False, "unsatisfied": False, "admit": True, "reasons": []},
}
MERGES: dict[str, tuple[dict[str, Any], Outcome]] = {
    "its own": ({}, Outcome.DELIBERATE),
    "the kubelet's": ({"affinity": [0, 1]}, Outcome.EQUAL),
    "with other zones": ({"affinity": [2]}, Outcome.MISMATCH),
    "with a preference": ({"preferred": True}, Outcome.MISMATCH),
    "a refusal": ({"admit": False}, Outcome.MISMATCH),
}


ZONE_1: list[Any] = [{"cpu": [[[1], True]]}]
FOR_ITSELF = {"providers": ZONE_1, "exclusive": "Required", "zone_states": ["idle", "shared", "idle", "idle"]}
REFUSED = {"preferred": False, "admit": False, "reasons": ["Unaligned NUMA Hint cause cpu prefer [10] among [10]"]}
OTHER_MERGES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "a resource that cannot be had": ({"providers": [{"gpu": []}, *ZONE_1]}, {}, "koordinator-narrower"),
    "the zones of a refusal": ({"policy": "restricted"}, {**REFUSED, "affinity": [0]}, "koordinator-narrower"),
    "zones for one pod alone": (
        {**FOR_ITSELF, "policy": "restricted"},
        {**REFUSED, "affinity": [1]},
        "koordinator-exclusive",
    ),
    "one zone for one pod alone": (
        {**FOR_ITSELF, "policy": "single-numa-node"},
        {**REFUSED, "affinity": [1]},
        "koordinator-exclusive",
    ),
}


@pytest.mark.parametrize("given, expect, anchor", OTHER_MERGES.values(), ids=OTHER_MERGES)
def test_koordinators_merge_differs_for_a_listed_reason(
    given: dict[str, Any], expect: dict[str, Any], anchor: str
) -> None:
    case = {**NARROWER, "input": {**NARROWER["input"], **given}, "expect": {**NARROWER["expect"], **expect}}
    judged = judging.judge(recorded(case))
    assert (judged.outcome, judged.anchor) == (Outcome.DELIBERATE, anchor)
    elsewhere = {**case, "expect": {**case["expect"], "affinity": [3]}}
    assert judging.judge(recorded(elsewhere)).outcome is Outcome.MISMATCH


@pytest.mark.parametrize("change, outcome", MERGES.values(), ids=MERGES)
def test_of_koordinators_merge_only_its_own_answer_is_excused(change: dict[str, Any], outcome: Outcome) -> None:
    case = {**NARROWER, "expect": {**NARROWER["expect"], **change}}
    assert judging.judge(recorded(case)).outcome is outcome


CPUS = {"cpu": "4"}
TWICE: dict[str, Any] = {
    "id": "filter/1",
    "suite": "edge_filter",
    "input": {
        "pod": {
            "spec": {"containers": [{"name": "c", "resources": {"requests": CPUS}}]},
            "status": {"qosClass": "Guaranteed"},
        },
        "node": {"metadata": {"name": "n"}},
        "nrts": [
            {
                "metadata": {"name": "n"},
                "zones": [
                    {"name": "node-0", "type": "Node", "resources": [{"name": "cpu", "available": available}]}
                    for available in ("3", "4")
                ],
                "attributes": [{"name": "topologyManagerPolicy", "value": "single-numa-node"}],
            }
        ],
    },
}


def filtered(code: str, *reasons: str, marked: bool = True, **changed: Any) -> Outcome:
    expect = {"status": {"code": code, "reasons": list(reasons)}, "markedMaybeOverReserved": marked}
    return judging.judge(recorded({**TWICE, "input": {**TWICE["input"], **changed}, "expect": expect})).outcome


def test_of_a_zone_that_is_listed_twice_only_the_failed_accounting_is_excused() -> None:
    assert filtered("Error", "inconsistent resource accounting", "details") is Outcome.DELIBERATE
    assert filtered("Error", "node not found") is Outcome.MISMATCH
    assert filtered("Unschedulable", "cannot align container") is Outcome.EQUAL


def rated(expect: dict[str, Any], **changed: Any) -> CheckedCase:
    given = {**TWICE["input"], "nodes": [TWICE["input"]["node"]], **changed}
    return judging.judge(recorded({"id": "score/1", "suite": "edge_score", "input": given, "expect": expect}))


def test_a_zone_64_crashes_score_too() -> None:
    report = TWICE["input"]["nrts"][0]
    zones = [{**report["zones"][0], "name": name} for name in ("node-0", "node-64")]
    crash = {"referenceCrash": "index out of range [64] with length 64"}
    assert rated(crash, nrts=[{**report, "zones": zones}]).anchor == "zone-64"
    assert rated(crash, nrts=[{**report, "zones": zones[:1]}]).outcome is Outcome.MISMATCH


def test_a_pod_without_containers_has_no_mean_in_the_plugin() -> None:
    pod = {"spec": {"containers": []}, "status": {"qosClass": "Guaranteed"}}
    assert rated({"scores": {"n": -(1 << 63)}}, pod=pod).anchor == "asks-nothing"
    assert rated({"scores": {"n": 100}}, pod=pod).outcome is Outcome.EQUAL
    assert rated({"scores": {"n": 7}}, pod=pod).outcome is Outcome.MISMATCH


def test_percents_of_large_amounts_go_round_in_the_plugin() -> None:
    most = {"scoringStrategy": {"type": "MostAllocated"}}
    wanted = {"requests": {"memory": "700P"}, "limits": {"memory": "700P"}}
    pod = {"spec": {"containers": [{"name": "c", "resources": wanted}]}, "status": {"qosClass": "Guaranteed"}}
    report = TWICE["input"]["nrts"][0]
    free = {"name": "node-0", "type": "Node", "resources": [{"name": "memory", "available": "1E"}]}
    changed = {"pod": pod, "config": most, "nrts": [{**report, "zones": [free]}]}
    assert rated({"scores": {"n": -3}}, **changed).anchor == "beyond-64-bits"
    assert rated({"scores": {"n": 70}}, **changed).outcome is Outcome.EQUAL
    assert rated({"scores": {"n": 7}}, **changed).outcome is Outcome.MISMATCH


CYCLE = {
    "config": {"scoringStrategy": {"type": "MostAllocated"}},
    "nodes": [{"metadata": {"name": name}} for name in ("roomy", "snug", "small")],
    "nrts": [
        {
            "metadata": {"name": name},
            "zones": [{"name": "node-0", "type": "Node", "resources": [{"name": "cpu", "available": cpus}]}],
            "attributes": [{"name": "topologyManagerPolicy", "value": "single-numa-node"}],
        }
        for name, cpus in (("roomy", "8"), ("snug", "4"), ("small", "2"))
    ],
}


@pytest.mark.parametrize(
    "scheduler, allowed, right",
    [
        ("by-numa", ["snug"], True),
        ("by-numa", ["roomy", "snug"], True),
        ("by-numa", ["roomy"], False),
        ("by-numa", [], False),
        ("by-numa", ["snug", "elsewhere"], False),
        ("default-scheduler", ["roomy", "snug"], True),
        ("default-scheduler", ["snug"], False),
    ],
)
def test_a_cycle_ends_on_a_node_that_is_allowed(scheduler: str, allowed: list[str], right: bool) -> None:
    pod = {**TWICE["input"]["pod"], "spec": {**TWICE["input"]["pod"]["spec"], "schedulerName": scheduler}}
    fits, short = {"code": "Success", "reasons": []}, {"code": "Unschedulable", "reasons": ["cannot align container"]}
    expect = {
        "allowedNodes": allowed,
        "errorContains": "",
        "filter": {"roomy": fits, "snug": fits, "small": short},
        "scores": {"roomy": 50, "snug": 100, "small": 0},
    }
    case = {"id": "cycle/1", "suite": "integration_single_cycle", "input": {**CYCLE, "pod": pod}, "expect": expect}
    assert (judging.judge(recorded(case)).outcome is Outcome.EQUAL) is right


def test_a_victim_that_is_named_twice_goes_once() -> None:
    full = {"limits": {**CPUS, "memory": "1Gi"}, "requests": {**CPUS, "memory": "1Gi"}}
    victim = {"metadata": {"namespace": "d", "name": "v"}, "spec": {"containers": [{"name": "c", "resources": full}]}}
    resources = [{"name": "cpu", "available": "0", "allocatable": "4"}]
    nrt = {**TWICE["input"]["nrts"][0], "zones": [{"name": "node-0", "type": "Node", "resources": resources}]}
    placement = [{"namespace": "d", "pod": "v", "container": "c", "numaNode": 0}]
    given = {"nrts": [nrt], "placement": placement, "config": {"preemptionMode": "Enabled"}}
    assert filtered("Success", marked=False, victims=[victim, victim], **given) is Outcome.EQUAL


def test_a_case_may_leave_out_the_node_the_reports_and_the_settings() -> None:
    assert filtered("Error", "node not found", marked=False, node=None) is Outcome.EQUAL
    assert filtered("Success", marked=False, nrts=None, config=None) is Outcome.EQUAL


SESSION = {"cacheType": "OverReserve", "podRelevance": "Always", "preemptionMode": "Disabled", "cache": None}
CELL = {"numaID": 0, "resources": None, "costs": None}
NULLS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "np_vector_roundtrip": ({"offsets": None}, {"encoded": "", "offsets": []}),
    "np_decoder_result": (
        {"containers": None, "payload": {**PAYLOAD, "containers": 0, "numaNodes": 1}},
        {"error": None},
    ),
    "pfp_vectors": ({"pods": None}, {"fingerprint": "pfp0v001ef46db3751d8e999"}),
    "numa_nodes_required": ({"numaNodes": None, "requests": {"cpu": "1"}}, {"numaIDs": None, "minDistance": False}),
    "only_non_numa_resources": ({"numaNodes": [CELL], "requests": None}, {"result": True}),
    "get_cached_nrt": (
        {"cacheType": "Passthrough", "hasForeignPods": False, "node": "n", "nrts": None},
        {"fresh": True, "nrt": None},
    ),
    "node_to_pod_data": (
        {"nrtResources": None, "pods": None, "podRelevance": "Always", "preemptionMode": "Enabled"},
        {"podData": {}},
    ),
    "check_fingerprint_for_node": (
        {"fingerprint": "pfp0v001ef46db3751d8e999", "onlyExclusive": False, "pods": None},
        {"error": None},
    ),
    "cache_scenario": (
        {**SESSION, "initialNRTs": None, "initialPods": None, "profileNames": None, "steps": [{"op": "desynced"}]},
        {"steps": [{"maybeOverReserved": [], "configChanged": []}]},
    ),
}


@pytest.mark.parametrize("name", NULLS)
def test_a_list_or_table_that_is_null_is_an_empty_one(name: str) -> None:
    given, expect = NULLS[name]
    case = {"id": "null/1", "suite": name, "input": given, "expect": expect}
    assert judging.judge(recorded(case)).outcome is Outcome.EQUAL


def test_a_rule_that_fails_excuses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = DeliberateDifference("x", "because", lambda given: bool(given["missing"]))
    monkeypatch.setitem(recordedsuites.SUITES, "telepathy", Suite("telepathy", lambda case: 1, deliberate=(rule,)))
    assert judging.judge(recorded(STRANGE)).outcome is Outcome.MISMATCH


def test_every_suite_has_one_home() -> None:
    names = [each.name for module in recordedsuites.MODULES for each in module.SUITES]
    assert len(set(names)) == len(names)
    assert not set(names) & set(recordedsuites.NOT_APPLICABLE)


@pytest.mark.parametrize("text, same", [("1", True), ("1000m", True), ("1001m", False)])
def test_quantities_are_compared_by_value(text: str, same: bool) -> None:
    listed = {"resources": [{"name": "1", "available": "1"}], "requests": {"cpu": "1"}}
    other = {"resources": [{"name": "1", "available": text}], "requests": {"cpu": text}}
    assert (not objects.by_amount(listed, other)) is same
    assert suite.exactly(listed, other) or text == "1"


def test_only_quantities_are() -> None:
    assert objects.by_amount({"resources": [{"name": "1"}]}, {"resources": [{"name": "1000m"}]})
