"""Label selectors beside labels."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.api.decode import decode
from numalign.api.objects import selectors
from numalign.api.objects.selectors import LabelSelector

LABELS = {"app": "web", "tier": "front"}


def expression(operator: str, *values: str, key: str = "app") -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    "written, selected",
    [
        ({}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "web", "tier": "back"}}, False),
        ({"matchLabels": {"app": "web"}} | expression("DoesNotExist"), False),
        (expression("In", "db", "web"), True),
        (expression("In", "db"), False),
        (expression("In", "", key="other"), False),
        (expression("NotIn", "db"), True),
        (expression("NotIn", "web"), False),
        (expression("NotIn", "web", key="other"), True),
        (expression("Exists"), True),
        (expression("Exists", key="other"), False),
        (expression("DoesNotExist", key="other"), True),
        (expression("Near", "web"), False),
    ],
)
def test_all_requirements_must_hold(written: dict[str, Any], selected: bool) -> None:
    assert selectors.matches(decode.decode(LabelSelector, written), LABELS) is selected


def test_no_selector_selects_nothing_and_an_empty_one_everything() -> None:
    assert not selectors.matches(None, LABELS)
    assert selectors.matches(LabelSelector(), {})
    assert LabelSelector().is_empty
    assert not decode.decode(LabelSelector, expression("Exists")).is_empty
