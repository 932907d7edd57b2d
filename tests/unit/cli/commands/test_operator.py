"""`numalign operator render` and `crds`: what they print, and what they refuse."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from numalign.api.decode import yamltext
from numalign.cli.main import app
from numalign.deploy import values

VALUES = "networkPolicy: {enabled: true}\nagent: {preset: k3s}\n"


def rendered(line: str, stdin: str = "") -> list[Any]:
    ran = CliRunner().invoke(app, ["operator", *line.split()], input=stdin)
    assert ran.exit_code == 0, ran.output
    if "json" in line:
        items: list[Any] = json.loads(ran.stdout)["items"]
        return items
    return [each.value for each in yamltext.documents(ran.stdout, line)]


def test_the_printed_objects_are_complete_and_the_same_in_both_forms() -> None:
    found = rendered("render -o json")
    assert rendered("render") == found
    kinds = Counter(each["kind"] for each in found)
    assert kinds["CustomResourceDefinition"] == 2
    assert {kind: kinds[kind] for kind in ("Namespace", "ServiceAccount", "Deployment")} == dict.fromkeys(
        ("Namespace", "ServiceAccount", "Deployment"), 1
    )
    specs = [each["spec"] for each in found if each["kind"] == "CustomResourceDefinition"]
    assert [each["spec"] for each in rendered("crds -o json")] == specs


@pytest.mark.parametrize("file", ["-", "values.yaml"])
def test_values_come_from_a_file_or_the_standard_input(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "values.yaml").write_text(VALUES)
    found = {each["kind"]: each for each in rendered(f"render -f {file}", stdin=VALUES)}
    assert json.loads(found["ConfigMap"]["data"]["values.json"])["agent"] == {"preset": "k3s"}
    assert found["NetworkPolicy"]["metadata"]["name"] == "numalign-operator"


def test_operator_agents_and_scheduler_come_from_the_registry_that_is_named() -> None:
    line = "render --set global.imageRegistry=registry.example.com,global.imagePullSecrets={login}"
    found = {each["kind"]: each for each in rendered(line)}
    pod = found["Deployment"]["spec"]["template"]["spec"]
    assert pod["containers"][0]["image"].startswith("registry.example.com/numalign/agent:")
    assert pod["imagePullSecrets"] == [{"name": "login"}]
    operands = values.read(json.loads(found["ConfigMap"]["data"]["values.json"]))
    assert operands.global_.image_registry == "registry.example.com"
    assert operands.global_.image_pull_secrets == ["login"]


@pytest.mark.parametrize(
    "line, why",
    [
        ("render --namespace Bad_Name", "is not a name of small letters"),
        ("render --image A:B:C", "is not an image reference"),
        ("render --values no-such-file", "cannot be read"),
    ],
)
def test_what_makes_no_sense_is_refused(line: str, why: str) -> None:
    ran = CliRunner().invoke(app, ["operator", *line.split()])
    assert (ran.exit_code, why in ran.stderr) == (2, True), ran.output
