"""`numalign deploy render` as it is typed: values from files and settings, and what is wrong with them."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from numalign.cli.main import app


def typed(*words: str, stdin: str = "") -> Result:
    return CliRunner().invoke(app, ["deploy", "render", *words], input=stdin, env={"TERM": "dumb"})


def names(result: Result) -> set[str]:
    return {f"{each['kind']} {each['metadata']['name']}" for each in json.loads(result.stdout)["items"]}


def test_files_count_together_and_settings_win(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("operator: {enabled: true}\nnameOverride: a\n")
    (tmp_path / "b.yaml").write_text("agent: {enabled: false}\nscheduler: {enabled: false}\nnameOverride: b\n")
    files = ("-f", str(tmp_path / "a.yaml"), "-f", str(tmp_path / "b.yaml"))
    assert "Deployment numalign-b-operator" in names(typed(*files, "-o", "json"))
    assert "Deployment numalign-c-operator" in names(typed(*files, "--set", "nameOverride=c", "-o", "json"))


def test_values_come_from_the_standard_input() -> None:
    assert "DaemonSet x-agent" in names(typed("-f", "-", "-o", "json", stdin="fullnameOverride: x"))


PLUGIN = "scheduler.config.profiles[0].pluginConfig[0]"
WRONG = [
    (("--set", "agent.periot=5"), "agent.periot: no field of this name; did you mean period?"),
    (("--set", "agent.period=soon"), 'agent.period: "soon" is not a whole number; write one from 1 to 300'),
    (("--set", "agent"), "is not a path, an equals sign and a value"),
    (("-f", "missing.yaml"), "File missing.yaml: cannot be read"),
    (("--name", "Big"), '--name: "Big" is not a name of small letters'),
    (("--namespace", "a" * 64), "at most 63 of them"),
    (("--kube-version", "new"), '"new" is not a Kubernetes version'),
    (("--component", "agnt"), "did you mean agent?"),
    (
        ("--set", f"{PLUGIN}.name=Numalign,{PLUGIN}.args.flavour=sweet"),
        "scheduler.config.profiles[0].pluginConfig[0].args.flavour",
    ),
]


@pytest.mark.parametrize("words, told", WRONG, ids=[told for _, told in WRONG])
def test_what_is_wrong_is_said_by_name(words: tuple[str, ...], told: str) -> None:
    result = typed(*words)
    assert result.exit_code == 1
    assert told in result.stderr
    assert result.stdout == ""


def test_the_table_lists_the_objects() -> None:
    lines = typed("--component", "agent", "-o", "table").stdout.splitlines()
    assert lines[0].split() == ["COMPONENT", "KIND", "NAMESPACE", "NAME"]
    assert ["agent", "DaemonSet", "numalign-system", "numalign-agent"] in [line.split() for line in lines]
