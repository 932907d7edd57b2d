"""`numalign scheduler run` before it starts: which addresses it serves without TLS, and what it asks for."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from numalign.cli.main import app

LOADED = """
import sys
from typer.testing import CliRunner
from numalign.cli.main import app
CliRunner().invoke(app, ["scheduler", "run", "--kubeconfig", "/nowhere"])
sys.exit("cryptography" in sys.modules)
"""


def test_without_the_extra_an_address_off_loopback_asks_for_a_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric", None)
    result = CliRunner().invoke(app, ["scheduler", "run", "--bind-address", "0.0.0.0"])
    assert result.exit_code == 2
    said = result.stderr.replace("\n", " ")
    assert "--bind-address: is not a loopback address: give --tls-certificate, or install numalign[tls]" in said


def test_serving_on_loopback_does_not_load_cryptography() -> None:
    assert subprocess.run([sys.executable, "-c", LOADED], check=False).returncode == 0


@pytest.mark.parametrize("command", ["scheduler run", "extender run"])
def test_a_class_that_cluster_autoscaler_answers_is_refused(command: str) -> None:
    line = f"{command} --provisioning-class check-capacity.autoscaling.x-k8s.io --tls-certificate none"
    result = CliRunner().invoke(app, line.split())
    assert result.exit_code == 2
    assert "--provisioning-class: is a class that cluster-autoscaler answers" in result.stderr.replace("\n", " ")
