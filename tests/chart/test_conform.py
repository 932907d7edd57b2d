"""The objects of an installation fit the schemas of every supported Kubernetes minor, to the last field."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from numalign.deploy import installation, values
from numalign.lab.build import ORACLE_MINORS
from tests.chart import schemas
from tests.chart.cases import CASES
from tests.chart.conftest import program

FOREIGN = ("Certificate", "PodMonitor", "PrometheusRule", "SecurityContextConstraints", "ServiceMonitor")
"""Kinds of other projects, which no source of Kubernetes describes."""


@pytest.fixture(scope="module")
def objects() -> list[dict[str, Any]]:
    made = [
        each for document, release in CASES.values() for each in installation.objects(values.read(document), release)
    ]
    return [each for each in made if each["kind"] not in FOREIGN]


def judged(minor: str, objects: list[dict[str, Any]], folder: Path) -> dict[str, Any]:
    kubeconform = str(program("kubeconform"))
    schemas.write(minor, {each["kind"] for each in objects}, folder)
    command = [kubeconform, "-strict", "-output=json", "-summary", f"-kubernetes-version={ORACLE_MINORS[minor][1:]}"]
    location = f"-schema-location={folder}/{{{{ .ResourceKind }}}}{{{{ .KindSuffix }}}}.json"
    ran = subprocess.run(
        [*command, location, "-"],
        input="\n---\n".join(map(json.dumps, objects)),
        capture_output=True,
        text=True,
        check=False,
    )
    answer: dict[str, Any] = json.loads(ran.stdout)
    return answer


@pytest.mark.parametrize("minor", ORACLE_MINORS)
def test_objects_fit_the_schemas(minor: str, objects: list[dict[str, Any]], tmp_path: Path) -> None:
    answer = judged(minor, objects, tmp_path)
    assert answer.get("resources", []) == []
    assert answer["summary"] == {"valid": len(objects), "invalid": 0, "errors": 0, "skipped": 0}


def test_a_misspelt_field_does_not_fit(objects: list[dict[str, Any]], tmp_path: Path) -> None:
    deployment = next(each for each in objects if each["kind"] == "Deployment")
    misspelt = {**deployment, "spec": {**deployment["spec"], "replicaz": 2}}
    answer = judged("1.37", [misspelt], tmp_path)
    assert "replicaz" in json.dumps(answer["resources"])
