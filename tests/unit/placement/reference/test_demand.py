from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.api.objects import requests
from numalign.api.objects.pod import Pod
from numalign.api.objects.qos import QoS
from numalign.placement.reference import demand
from numalign.placement.reference.demand import Need
from tests.unit.placement.reference import made
from tests.unit.placement.reference.made import container, pod

EFFECTIVE: dict[str, tuple[Pod, made.Amounts]] = {
    "containers add up": (pod(container(cpu=1), container(cpu="500m", nic=1)), {"cpu": "1500m", "nic": 1}),
    "the largest init container": (
        pod(container(cpu=1), init=[container(cpu=2), container(cpu=3, nic=1)]),
        {"cpu": 3, "nic": 1},
    ),
    "sidecars are like any other": (
        pod(container(cpu=2), init=[container(sidecar=True, cpu=1), container(sidecar=True, cpu=1)]),
        {"cpu": 2},
    ),
    "overhead comes on top": (pod(container(cpu=1), cpu="250m", memory="1Gi"), {"cpu": "1250m", "memory": "1Gi"}),
    "nothing": (pod(container()), {}),
}


@pytest.mark.parametrize("wanted, expected", EFFECTIVE.values(), ids=EFFECTIVE)
def test_the_effective_request(wanted: Pod, expected: made.Amounts) -> None:
    assert demand.effective(wanted) == made.amounts(made.named(expected))


counts = st.lists(st.integers(0, 9), max_size=3)


@given(counts, counts)
def test_without_sidecars_it_is_what_everybody_counts(init: list[int], apps: list[int]) -> None:
    wanted = pod(*(container(cpu=cpu) for cpu in apps), init=[container(cpu=cpu) for cpu in init])
    assert demand.effective(wanted) == requests.effective(wanted)


def test_what_is_not_counted_only_has_to_be_listed() -> None:
    relaxed = demand.wanted(made.amounts({"cpu": 1, "example.com/nic": 1}), QoS.BURSTABLE)
    assert relaxed.needs == (Need("cpu", 10**9, False, False), Need("example.com/nic", 10**9, True, True))


def test_nothing_of_a_resource_is_asked_for_but_not_needed() -> None:
    nothing = demand.wanted(made.amounts({"cpu": 0}), QoS.GUARANTEED)
    assert (nothing.asked, nothing.needs) == ((("cpu", 0),), ())


CLASSES: dict[str, tuple[Pod, bool, bool]] = {
    "guaranteed": (pod(container(cpu=1, memory=1)), True, False),
    "burstable": (pod(container(cpu=1, limits={})), False, False),
    "best-effort": (pod(container()), False, True),
    "best-effort with a device": (pod(container(nic=1)), False, False),
    "no containers": (pod(), False, True),
}


@pytest.mark.parametrize("wanted, guaranteed, bypasses", CLASSES.values(), ids=CLASSES)
def test_which_pods_the_plugin_looks_at(wanted: Pod, guaranteed: bool, bypasses: bool) -> None:
    prepared = demand.of(wanted)
    assert (prepared.guaranteed, prepared.bypasses) == (guaranteed, bypasses)
