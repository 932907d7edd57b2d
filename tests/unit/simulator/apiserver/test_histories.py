"""Random histories on the API inside the process: lists, versions and watchers agree with the model."""

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.unit.simulator.apiserver.inprocess import InProcess
from tests.unit.simulator.apiserver.machine import Histories, Target


class InProcessHistories(Histories):
    def target(self) -> Target:
        return InProcess()


def test_random_histories_agree_with_the_model() -> None:
    how = settings(max_examples=60, stateful_step_count=30, deadline=None)
    run_state_machine_as_test(InProcessHistories, settings=how)


@pytest.mark.slow
def test_many_long_random_histories_agree_with_the_model() -> None:
    how = settings(max_examples=2_000, stateful_step_count=50, deadline=None)
    run_state_machine_as_test(InProcessHistories, settings=how)
