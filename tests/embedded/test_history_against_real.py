"""The embedded API server beside a real kube-apiserver, on the same random histories of pods, nodes and reports.

Both answer alike, every watcher sees exactly the history, and no update is lost, on either of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.embedded import twins
from tests.embedded.historykinds import KINDS, Kind
from tests.embedded.realserver import RealServer
from tests.embedded.twinhistories import TwinHistories
from tests.embedded.twins import Side, Twins

EVERY_KIND = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@pytest.fixture(scope="module")
def sides(real_server: RealServer) -> Iterator[tuple[Side, Side]]:
    with twins.embedded() as address:
        ours = Side(address.url, "")
        theirs = Side(f"https://127.0.0.1:{real_server.connection.port}", real_server.token)
        yield ours, theirs
        ours.close()
        theirs.close()


def play(sides: tuple[Side, Side], kind: Kind, examples: int, steps: int) -> None:
    class Played(TwinHistories):
        def servers(self) -> Twins:
            return Twins(*sides)

    Played.kind = kind
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large]
    how = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=checks,
        report_multiple_bugs=False,
    )
    run_state_machine_as_test(Played, settings=how)


@EVERY_KIND
def test_both_servers_live_the_same_histories(sides: tuple[Side, Side], kind: Kind) -> None:
    play(sides, kind, examples=6, steps=25)


@pytest.mark.slow
@EVERY_KIND
def test_both_servers_live_the_same_long_histories(sides: tuple[Side, Side], kind: Kind) -> None:
    play(sides, kind, examples=100, steps=60)
