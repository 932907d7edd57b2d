"""The chart's own suites, which its users can run with the Helm plugin helm-unittest."""

import subprocess

from tests.chart.conftest import program
from tests.chart.helm import CHART


def test_the_suites_of_the_chart_pass() -> None:
    ran = subprocess.run([program("helm-unittest"), "--strict", CHART], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
    assert "Test Suites: 3 passed, 3 total" in ran.stdout
