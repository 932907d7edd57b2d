"""`numalign doctor` as people type it, on files: exit codes, formats, choices, and the walk to a pod."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from msgspec import structs
from typer.testing import CliRunner

from numalign.cli.commands.install import doctor
from numalign.cli.main import app
from numalign.deploy.doctor.diagnosis import CHECKS
from tests.unit.cli import clusterfiles
from tests.unit.cli.clusterfiles import busy, run, written
from tests.unit.scheduler.servers import trainer


def report(node: str, **more: Any) -> dict[str, Any]:
    """Of another publisher."""
    attributes = [{"name": "topologyManagerPolicy", "value": more.pop("policy", "single-numa-node")}]
    head = {"apiVersion": clusterfiles.NRT, "kind": "NodeResourceTopology", "metadata": {"name": node}}
    return head | {"zones": [], "attributes": attributes} | more


def waiting(name: str, **spec: Any) -> dict[str, Any]:
    thing = trainer(name, gpus=4)
    made = structs.replace(thing, spec=structs.replace(thing.spec, **spec))
    return clusterfiles.pod(made)


def judged(folder: Path, items: list[dict[str, Any]], *arguments: str) -> tuple[int, dict[str, Any]]:
    result = run("doctor", "-f", written(folder, items), "-o", "json", *arguments)
    return result.exit_code, json.loads(result.stdout)


def checks(told: dict[str, Any]) -> set[str]:
    return {each["check"] for each in told["findings"]}


POLICY_NONE = "topology-policy-none"


@pytest.fixture
def ill(tmp_path: Path) -> str:
    """A node that aligns nothing, and one that is well."""
    return written(tmp_path, [*busy(), *clusterfiles.node("plain", reported=False), report("plain", policy="none")])


def test_a_cluster_without_errors_exits_with_0(tmp_path: Path) -> None:
    code, told = judged(tmp_path, busy())
    assert code == 0
    assert told["errors"] == 0
    assert told["nodes"] == 2


def test_an_error_exits_with_2_and_is_told_with_its_remedy(ill: str) -> None:
    result = run("doctor", "-f", ill)
    assert result.exit_code == 2
    assert "topology-policy-none: The Topology Manager is off" in result.stdout
    assert "where  Node plain" in result.stdout
    assert "fix    set topologyManagerPolicy" in result.stdout


def test_warnings_count_only_if_that_is_wanted(tmp_path: Path) -> None:
    items = [*busy(), report("gone")]
    assert judged(tmp_path, items, "--check", "report-orphaned")[0] == 0
    assert judged(tmp_path, items, "--check", "report-orphaned", "--strict")[0] == 2


@pytest.mark.parametrize(
    "line",
    [
        "--check no-such-check",
        "--no-such-option",
        "-f /no/such/file",
        "-f FILE --kubeconfig /a",
        "-f FILE --fix",
        "-f FILE --node nobody",
        "-f FILE -l ,",
        "-f FILE nobody",
        "-f FILE -o xml",
        "--kubeconfig /no/such/file",
    ],
)
def test_whatever_keeps_it_from_judging_exits_with_1(ill: str, line: str) -> None:
    result = run("doctor", *line.replace("FILE", ill).split())
    assert result.exit_code == 1, result.output
    assert "Traceback" not in result.output


def test_a_check_that_is_spelt_wrong_is_suggested() -> None:
    assert f"did you mean {POLICY_NONE}?" in run("doctor", "--check", "topology-policy-non").output


def test_one_check_one_node_and_nodes_by_label(ill: str) -> None:
    for line in (f"--check {POLICY_NONE}", "--node plain"):
        told = json.loads(run("doctor", "-f", ill, "-o", "json", *line.split()).stdout)
        assert POLICY_NONE in checks(told)
    told = json.loads(run("doctor", "-f", ill, "-o", "json", "--node", "gpu-a").stdout)
    assert POLICY_NONE not in checks(told)


@pytest.mark.parametrize("selector, count", [("a=b", 1), ("a!=b", 2), ("a", 1), ("!a", 2), ("a==b,!c", 1), ("c=d", 0)])
def test_nodes_are_selected_by_label(tmp_path: Path, selector: str, count: int) -> None:
    labelled = clusterfiles.node("labelled")
    labelled[0]["metadata"]["labels"] = {"a": "b"}
    items = busy() + labelled
    assert judged(tmp_path, items, "-l", selector)[1]["nodes"] == count


def test_all_checks_are_listed() -> None:
    told = json.loads(run("doctor", "--list", "-o", "json").stdout)
    assert [each["id"] for each in told] == list(CHECKS)
    assert f"{POLICY_NONE} (error, V10)" in run("doctor", "--list").stdout


def test_yaml_says_the_same_as_json(ill: str) -> None:
    as_json, as_yaml = (run("doctor", "-f", ill, "-o", form).stdout for form in ("json", "yaml"))
    assert yaml.safe_load(as_yaml) == json.loads(as_json)


def test_files_may_be_several_yaml_gzip_or_stdin(tmp_path: Path) -> None:
    nodes, rest = tmp_path / "nodes.yaml", tmp_path / "rest.json.gz"
    items = busy()
    nodes.write_text(yaml.safe_dump_all([each for each in items if each["kind"] == "Node"]))
    others = {"kind": "List", "items": [each for each in items if each["kind"] != "Node"]}
    rest.write_bytes(gzip.compress(msgspec.json.encode(others)))
    result = run("doctor", "-f", str(nodes), "-f", str(rest), "-o", "json")
    assert json.loads(result.stdout)["nodes"] == 2
    assert "report-missing" not in checks(json.loads(result.stdout))


def test_kinds_that_no_file_has_are_named_with_their_checks(tmp_path: Path) -> None:
    told = judged(tmp_path, busy())[1]
    assert "daemonsets" in told["skipped"]["agent-not-ready"]
    assert "not-readable" in checks(told)


STRANGE: list[Any] = [5, None, "text", [], {}, {"kind": "Node"}, {"kind": "Node", "apiVersion": "v1", "metadata": 3}]


def test_odd_objects_in_a_file_are_skipped_and_named(tmp_path: Path) -> None:
    code, told = judged(tmp_path, [*busy(), *STRANGE])
    assert code == 0
    assert told["nodes"] == 2
    assert "object-unreadable" in checks(told)


@pytest.mark.parametrize("text", ["", "{", "5", "[]", "null", "a: b", "\x00", "{}", '{"items": 5}', "- - -"])
def test_a_file_that_is_none_exits_with_1(tmp_path: Path, text: str) -> None:
    file = tmp_path / "odd"
    file.write_text(text)
    result = run("doctor", "-f", str(file))
    assert result.exit_code == 1, result.output
    assert "Traceback" not in result.output


# The walk to a pod


def test_the_walk_ends_in_the_explanation(tmp_path: Path) -> None:
    result = run("doctor", "late", "-f", written(tmp_path, [*busy(), waiting("late")]))
    assert result.exit_code == 2
    lines = result.stdout.splitlines()
    assert lines[0].startswith("1. NodeResourceTopology is defined")
    assert "3. every node has a current report (2 reports, 2 nodes for pods)" in result.stdout
    assert "0 of 2 nodes can take the pod" in result.stdout
    assert "with 1 nvidia.com/gpu instead of 4" in " ".join(result.stdout.split())


def test_a_pod_may_be_named_in_three_ways(tmp_path: Path) -> None:
    file = written(tmp_path, [*busy(), waiting("late")])
    said = [
        run("doctor", *line.split(), "-f", file).stdout
        for line in ("late", "default/late", "--pod default/late", "late -n default")
    ]
    assert len(set(said)) == 1
    assert "late  waiting" in said[0]


def test_the_walk_reads_the_standard_input_as_it_reads_a_file(tmp_path: Path) -> None:
    file = written(tmp_path, [*busy(), waiting("late")])
    piped = CliRunner().invoke(app, ["doctor", "late", "-f", "-"], input=Path(file).read_bytes())
    assert (piped.exit_code, piped.stdout) == (2, run("doctor", "late", "-f", file).stdout)


def test_the_walk_shows_what_is_wrong_on_the_way_and_nothing_of_other_pods(tmp_path: Path) -> None:
    lost = [waiting(name, scheduler_name=name) for name in ("lost", "other")]
    result = run("doctor", "lost", "-f", written(tmp_path, [*busy(), *lost]), "-o", "json")
    told = json.loads(result.stdout)
    assert result.exit_code == 2
    assert [each["inOrder"] for each in told["steps"]][:3] == [True, False, True]
    (finding,) = told["steps"][1]["findings"]
    assert finding["where"] == ["scheduler name lost"]
    assert told["explanation"]["pod"]["name"] == "lost"


def test_a_pod_that_runs_in_a_healthy_cluster_exits_with_0(tmp_path: Path) -> None:
    assert run("doctor", "train-0", "-f", written(tmp_path, busy())).exit_code == 0


def test_progress_is_told_after_two_seconds_and_then_every_second(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    progress = doctor.CollectProgress()
    for second, count in ((1.0, 500), (2.0, 1000), (2.5, 1500), (3.0, 2000)):
        now[0] = second
        progress.at("nodes", count)
    progress.end()
    assert capsys.readouterr().err.splitlines() == ["reading: 1,000 nodes", "reading: 2,000 nodes"]
