"""The chart makes the objects that `numalign deploy render` makes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from numalign.deploy import installation, values
from numalign.deploy.release import Release
from tests.chart.cases import ALL_APIS, CASES
from tests.chart.helm import Helm, known
from tests.strategies.values import documents


def compare(helm: Helm, document: dict[str, Any], release: Release) -> None:
    ours = known(installation.objects(values.read(document), release))
    theirs = known(helm.template(document, release))
    assert theirs.keys() == ours.keys()
    for key, made in ours.items():
        assert theirs[key] == made, key


@pytest.mark.parametrize("name", CASES)
def test_what_people_write(helm: Helm, name: str) -> None:
    compare(helm, *CASES[name])


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(document=documents())
def test_what_the_model_allows(helm: Helm, document: dict[str, Any]) -> None:
    compare(helm, document, ALL_APIS)


@pytest.mark.slow
@settings(max_examples=500, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(document=documents())
def test_what_the_model_allows_for_long(helm: Helm, document: dict[str, Any]) -> None:
    compare(helm, document, ALL_APIS)
