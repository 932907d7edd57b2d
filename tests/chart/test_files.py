"""The chart's own files: current, linted, and as strict about values as `numalign deploy`."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from numalign.deploy import values
from tests.chart.helm import CHART, Helm
from tests.unit.deploy.test_values import REFUSED
from tools import chart

OBJECTS = [(document, told) for document, told in REFUSED if isinstance(document, dict)]


def test_generated_files_are_current() -> None:
    """Written by `make chart`."""
    written = chart.files()
    stale = [path.name for path, content in written.items() if not path.exists() or path.read_text() != content]
    assert stale == []
    assert {*(CHART / "files").rglob("*.json")} <= {*written}


def test_the_values_file_has_the_defaults_of_the_model() -> None:
    assert yaml.safe_load((CHART / "values.yaml").read_text()) == values.DEFAULTS


def test_no_template_asks_the_cluster_or_chance() -> None:
    """`helm template` and GitOps tools have to make what an installation makes."""
    forbidden = ("lookup ", "genCA", "genSigned", "genPrivateKey", "rand", "uuidv4", "now ", "helm.sh/hook")
    texts = {path.name: path.read_text() for path in (CHART / "templates").iterdir()}
    assert {name: word for name, text in texts.items() for word in forbidden if word in text} == {}


def test_helm_finds_nothing_to_complain_about(helm: Helm) -> None:
    assert "0 chart(s) failed" in helm.said("lint", "--strict", str(CHART))


@pytest.mark.parametrize("document, told", OBJECTS, ids=[told for _, told in OBJECTS])
def test_helm_refuses_what_we_refuse(helm: Helm, document: dict[str, Any], told: str) -> None:
    ran = helm.run("template", "numalign", str(CHART), "--values", "-", stdin=json.dumps(document))
    assert ran.code != 0, ran.out
    field, _, why = told.partition(":")
    parts = set(field.replace("[", ".").replace("]", "").split("."))
    # Helm names the wrong field for a wrong key, and the key.
    key = why.split('"')[1] if "is not the key" in why else None
    assert parts & set(_words(ran.told)) or f"'{key}'" in ran.told, ran.told


def _words(text: str) -> list[str]:
    return "".join(each if each.isalnum() else " " for each in text).split()
