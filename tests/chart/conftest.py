"""Programs that tests of the chart share. They are built like those of the lab, and tests are skipped without Go."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chart.helm import VERSIONS, Helm
from tests.conftest import require
from tests.embedded import kubectl


def program(name: str) -> Path:
    found = kubectl.program(name)
    require(found, f"Go, to build {name}")
    assert found is not None
    return found


@pytest.fixture(scope="session", params=VERSIONS)
def helm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Helm 3 and Helm 4."""
    return Helm(program(request.param), tmp_path_factory.mktemp(request.param))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.built)
