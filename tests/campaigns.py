"""One property, two tiers: a few examples whenever tests run, many in the slow campaign."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import SearchStrategy

FACTOR = 20
"""How many times more examples a campaign looks at."""


def holds_for(
    *strategies: SearchStrategy[Any], examples: int
) -> Callable[[Callable[..., None]], Callable[[int], None]]:
    """Make a test of a function that asserts something about what the strategies draw."""

    def decorated(check: Callable[..., None]) -> Callable[[int], None]:
        @pytest.mark.parametrize("count", [pytest.param(examples, id="quick"), campaign(examples)])
        def test(count: int) -> None:
            # Large examples take long to draw where the machine is shared; that is no fault of theirs.
            settings(max_examples=count, suppress_health_check=[HealthCheck.too_slow])(given(*strategies)(check))()

        test.__doc__ = check.__doc__
        return test

    return decorated


def campaign(examples: int) -> Any:
    return pytest.param(examples * FACTOR, id="campaign", marks=pytest.mark.slow)
