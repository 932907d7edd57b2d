from __future__ import annotations

import pytest

from numalign.api.objects.pod import Pod
from numalign.oracle.plugin import victims
from numalign.oracle.plugin.victims import VictimsCycle
from numalign.placement.reference import status
from numalign.placement.referenceargs import PreemptionMode
from tests.unit.placement.reference import made

ENABLED, DISABLED = VictimsCycle(PreemptionMode.ENABLED), VictimsCycle(PreemptionMode.DISABLED)
ONE, TWO = made.pod(name="one"), made.pod(name="two")


def begun(*removed: Pod) -> VictimsCycle:
    cycle, _ = victims.pre_filter(ENABLED)
    for pod in removed:
        cycle, _ = victims.remove_pod(cycle, pod)
    return cycle


def test_a_cycle_begins_without_victims() -> None:
    assert victims.pre_filter(ENABLED) == (VictimsCycle(PreemptionMode.ENABLED, {}), status.SUCCESS)
    assert victims.pre_filter(begun(ONE))[0].pods == ()


def test_what_is_removed_is_a_victim_until_it_is_added_again() -> None:
    assert begun(ONE, TWO, ONE).pods == (ONE, TWO)
    cycle, result = victims.add_pod(begun(ONE, TWO), ONE)
    assert (cycle.pods, result) == ((TWO,), status.SUCCESS)


def test_adding_a_pod_that_is_no_victim_changes_nothing() -> None:
    assert victims.add_pod(begun(ONE), TWO) == (begun(ONE), status.SUCCESS)


@pytest.mark.parametrize("change", [victims.remove_pod, victims.add_pod], ids=["remove", "add"])
def test_without_a_beginning_or_a_pod_it_is_an_error(change: victims.Change) -> None:
    assert change(ENABLED, ONE) == (ENABLED, victims.NO_STATE)
    assert change(begun(), None)[1].reasons == ("missing pod",)


@pytest.mark.parametrize("change", [victims.remove_pod, victims.add_pod], ids=["remove", "add"])
def test_disabled_everything_succeeds_and_nothing_is_kept(change: victims.Change) -> None:
    assert victims.pre_filter(DISABLED) == (DISABLED, status.SUCCESS)
    assert change(DISABLED, ONE) == (DISABLED, status.SUCCESS)
    assert DISABLED.pods == ()


def test_an_earlier_cycle_is_not_changed_by_a_later_one() -> None:
    earlier = begun(ONE)
    victims.remove_pod(earlier, TWO)
    assert earlier.pods == (ONE,)
