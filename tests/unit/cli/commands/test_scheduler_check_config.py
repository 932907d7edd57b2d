"""`numalign scheduler check-config` from the outside: what it prints, where, and how it exits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from numalign.cli.main import app

GOOD = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 30
clientConnection: {kubeconfig: k.conf, qps: 100}
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint: {disabled: [{name: ImageLocality}]}
  pluginConfig:
  - name: NodeResourceTopologyMatch
    args: {scoringStrategy: {type: LeastNUMANodes}, cache: {resyncScope: None}}
"""


def check(text: str, *words: str) -> Result:
    return CliRunner().invoke(app, ["scheduler", "check-config", "-", *words], input=text)


def test_it_shows_what_the_scheduler_will_do() -> None:
    result = check(GOOD)
    assert result.exit_code == 0
    lines = {line.split("  ")[0].strip() or line.split()[0]: line for line in result.stdout.splitlines() if line}
    text = " ".join(result.stdout.split())
    assert (
        "with lease kube-system/kube-scheduler: valid for 15s, given up if not renewed for 10s, tried every 2s" in text
    )
    assert "k.conf; 100 calls a second, 100 at once" in lines["API server"]
    assert "by the kubelet's rules (flavour exact), predictive cache, score LeastNUMANodes" in text
    assert "zones checked by NodeResourceTopologyMatch, which is on unless a profile disables it" in text
    assert result.stdout.count("30% of nodes") == 1
    assert "left out                   ImageLocality" in result.stdout


def test_it_shows_which_profile_ignores_zones() -> None:
    second = "- schedulerName: totals\n  plugins: {multiPoint: {disabled: [{name: NodeResourceTopologyMatch}]}}\n"
    result = check(GOOD + second)
    first, totals = result.stdout.split("Profile totals")
    assert "ignored" not in first
    assert "ignored: pods are placed by node totals only" in totals


def test_warnings_are_printed() -> None:
    assert (
        'numalign: warning: NodeResourceTopologyMatch: unknown value for cache.resyncScope: "None"'
        in check(GOOD).stderr
    )


@pytest.mark.parametrize("fmt", ["json", "yaml"])
def test_the_whole_of_it_as_data(fmt: str) -> None:
    told = yaml.safe_load(check(GOOD, "-o", fmt).stdout)
    (profile,) = told["profiles"]
    assert profile["schedulerName"] == "default-scheduler"
    assert profile["plugins"]["weights"]["TaintToleration"] == 3
    assert profile["args"]["DefaultPreemption"] == {
        "minCandidateNodesPercentage": 10,
        "minCandidateNodesAbsolute": 100,
    }
    assert told["leaderElection"]["leaseDuration"] == 15


def test_json_is_json() -> None:
    assert json.loads(check(GOOD, "-o", "json").stdout)["podMaxBackoffSeconds"] == 10


@pytest.mark.parametrize(
    "text, complaint",
    [
        ("kind: X", 'apiVersion: missing; add "apiVersion: kubescheduler.config.k8s.io/v1"'),
        (
            GOOD.replace("{disabled: [{name: ImageLocality}]}", "{enabled: [{name: Coscheduling}]}"),
            'there is no plugin "Coscheduling"; it schedules gangs (PodGroup), which numalign does not',
        ),
        (GOOD + "parallel: 3\n", "parallel: no field of this name; did you mean parallelism?"),
        (GOOD + "percentageOfNodesToScore: 20\n", 'the key "percentageOfNodesToScore" is there twice'),
        (GOOD + ": [", "not YAML"),
    ],
    ids=["not one", "a plugin for gangs", "unknown field", "twice", "no YAML"],
)
def test_a_bad_configuration_exits_with_1_and_the_path(text: str, complaint: str) -> None:
    result = check(text)
    assert (result.exit_code, result.stdout) == (1, "")
    assert complaint in result.stderr


WRONG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
parallel: 3
profile: []
leaderElection: {leaseDuration: soon, renewDeadline: 20s, leader: yes}
clientConnection: {qps: many, burst: -1}
podInitialBackoffSeconds: 20
profiles:
- schedulerName: a
  percentageOfNodesToScore: 200
  plugins:
    multiPoint: {enabled: [{name: Coscheduling}, {name: NodeAfinity}, {name: NodeAffinity}], disabled: [{name: 3}]}
    queueSort: {disabled: [{name: "*"}]}
  pluginConfig:
  - name: NodeResourceTopologyMatch
    args: {scoringStrategy: {type: MostAlocated}}
  - name: Numalign
    args: {flavor: exact, seed: x}
- schedulerName: a
"""


def test_all_mistakes_are_listed_at_once_each_with_its_field() -> None:
    result = check(WRONG)
    assert (result.exit_code, result.stdout) == (1, "")
    told = [line.partition(", ")[2].partition(": ")[0] for line in result.stderr.splitlines()]
    assert told == [
        "parallel",
        "profile",
        "profiles[0].percentageOfNodesToScore",
        "profiles[0].plugins.multiPoint.enabled[0].name",
        "profiles[0].plugins.multiPoint.enabled[1].name",
        "profiles[0].plugins.multiPoint.disabled[0].name",
        "profiles[0].pluginConfig[0].args.scoringStrategy.type",
        "profiles[0].pluginConfig[1].args.flavor",
        "profiles[0].pluginConfig[1].args.seed",
        "profiles[1].schedulerName",
        "leaderElection.leader",
        "leaderElection.leaseDuration",
        "clientConnection.qps",
        "clientConnection.burst",
        "podMaxBackoffSeconds",
    ]


def test_what_follows_from_a_mistake_is_none() -> None:
    told = check(WRONG).stderr
    assert "not longer than" not in told, "the lease is not known"
    assert "sort the queue" not in told, "the plugins are not known"


def test_a_command_that_needs_the_configuration_names_the_first_mistake_and_counts_the_others(tmp_path: Path) -> None:
    (tmp_path / "wrong.yaml").write_text(WRONG)
    result = CliRunner().invoke(app, ["scheduler", "run", "--config", str(tmp_path / "wrong.yaml")])
    assert result.exit_code == 2
    assert "parallel: no field of this name; did you mean parallelism? (and 14 more mistakes)" in result.stderr


def test_very_many_unknown_fields_are_not_all_listed() -> None:
    result = check(GOOD + "".join(f"unknown{each}: 1\n" for each in range(5000)))
    assert (result.exit_code, result.stderr.count("no field of this name")) == (1, 100)


def test_a_file_that_cannot_be_read_exits_with_2(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["scheduler", "check-config", str(tmp_path / "none.yaml")])
    assert result.exit_code == 2
    assert "cannot be read" in result.stderr


def test_the_example_comes_to_what_the_page_shows() -> None:
    root = Path(__file__).parents[4]
    result = CliRunner().invoke(app, ["scheduler", "check-config", str(root / "examples" / "scheduler.yaml")])
    assert result.exit_code == 0
    assert result.stdout in (root / "docs" / "use" / "scheduler-config.md").read_text()
