"""Whatever befalls the API server, the operator and its objects: in the end the cluster is what `deploy render` prints
for the same settings, and the operator is quiet."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from numalign.deploy.operator import fields, plan
from numalign.deploy.operator.controller import Controller
from tests.embedded import operatorhavoc as havoc


@pytest.mark.parametrize("seed", range(10))
def test_after_everything_went_wrong_the_cluster_is_as_rendered_and_the_operator_quiet(seed: int) -> None:
    assert havoc.played(seed).complaints == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 2000))
def test_a_campaign_of_everything_going_wrong(seed: int) -> None:
    assert havoc.played(seed).complaints == []


# What the campaign is good for: each of these breaks one promise, and has to be noticed.


def additions_stay(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(fields, "_strangers", lambda wanted, live: iter(()))


def everything_is_applied_always(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(fields, "difference", lambda wanted, live: fields.Difference(apply=True))
    patch.setattr(plan, "_is_settled", lambda key, wanted, live, observed: False)


def nothing_is_deleted(patch: pytest.MonkeyPatch) -> None:
    async def kept(self: Controller, deletion: plan.Deletion) -> None:
        pass

    patch.setattr(Controller, "_delete", kept)


@pytest.mark.slow
@pytest.mark.parametrize(
    "broken",
    [
        additions_stay,
        everything_is_applied_always,
        nothing_is_deleted,
    ],
)
def test_an_operator_that_breaks_a_promise_is_found_out(
    broken: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch)
    assert any(havoc.played(seed).complaints for seed in range(50))
