"""Changes of nodes: other zones per socket, other reservations, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.api.errors import BadObject
from numalign.kubelet.machine import presets
from numalign.kubelet.settings import MemoryReservation, Settings
from numalign.plan.questions import changes
from numalign.plan.questions.changes import Change, Undivided

REGULAR = ("2x16", "2x32-smt", "xeon-snc", "epyc-nps1", "epyc-nps4", "gpu-8", "dgx-8", "edge-1")


@given(st.sampled_from(REGULAR), st.sampled_from([1, 2, 4]))
def test_no_cpu_memory_or_device_is_lost_by_other_zones(name: str, per_socket: int) -> None:
    before = presets.machine(name)
    after = changes.divided(before, per_socket)
    sockets = {core.socket for zone in before.zones for core in zone.cores}
    assert len(after.zones) == per_socket * len(sockets)
    assert after.cpus == before.cpus
    assert after.capacity == before.capacity
    assert {len(zone.cores) for zone in after.zones} == {len(after.zones[0].cores)}
    for zone in after.zones:
        assert len({core.socket for core in zone.cores}) == 1
        assert len(zone.distances) == len(after.zones)
        assert zone.distances[zone.id] == changes.LOCAL
    for plugin in after.devices.values():
        assert all(device.zones and set(device.zones) <= set(after.zone_ids) for device in plugin.devices)


@pytest.mark.parametrize("name", ["epyc-nps1", "gpu-8"])
def test_more_zones_and_then_fewer_give_the_machine_back(name: str) -> None:
    before = presets.machine(name)
    again = changes.divided(changes.divided(before, 4), 1)
    assert [zone.cores for zone in again.zones] == [zone.cores for zone in before.zones]
    assert again.devices == before.devices


def test_devices_of_a_divided_zone_are_spread_evenly() -> None:
    after = changes.divided(presets.machine("gpu-8"), 2)
    zones = [device.zones for device in after.devices["nvidia.com/gpu"].devices]
    assert zones == [(0,), (0,), (1,), (1,), (2,), (2,), (3,), (3,)]


@pytest.mark.parametrize(
    "name, per_socket, why",
    [
        ("superchip-34", 2, "has cores of 0 sockets"),
        ("2x16", 5, "cannot share evenly"),
        ("epyc-nps4", 3, "cannot become 3"),
    ],
)
def test_what_cannot_be_divided_says_why(name: str, per_socket: int, why: str) -> None:
    with pytest.raises(Undivided, match=why):
        changes.divided(presets.machine(name), per_socket)


def test_fields_replace_settings_and_all_others_stay() -> None:
    machine = presets.machine("2x16")
    before = Settings(topology_policy="restricted", cpu_policy="static", reserved_cpus=1, reserved={"cpu": 1000})
    after = changes.settings(before, Change(kubelet={"reservedSystemCPUs": "0-1"}), machine, "change")
    assert (after.reserved_cpus, after.reserved["cpu"]) == (0b11, 2000)
    assert (after.topology_policy, after.cpu_policy, after.eviction_hard) == ("restricted", "static", {})


def test_reserved_memory_is_spread_over_the_new_zones() -> None:
    machine = changes.divided(presets.machine("gpu-8"), 4)
    before = Settings(
        memory_policy="Static",
        reserved_memory=(MemoryReservation(0, {"memory": 1 << 30}),),
        reserved={"memory": 1 << 30},
    )
    after = changes.settings(before, Change(zones_per_socket=4), machine, "change")
    assert sum(each.limits["memory"] for each in after.reserved_memory) == 1 << 30 == after.reserved["memory"]
    assert len(after.reserved_memory) == 8


def test_texts_become_a_change() -> None:
    found = changes.read(
        {"topology-policy": "restricted", "cpu-options": "full-pcpus-only+strict-cpu-reservation", "lose": "1"},
        ["b", "a"],
        seed=3,
    )
    assert found.kubelet == {
        "topologyManagerPolicy": "restricted",
        "cpuManagerPolicyOptions": {"full-pcpus-only": "true", "strict-cpu-reservation": "true"},
    }
    assert len(found.gone) == 1
    assert changes.read({"topology-policy": "-", "lose": "0"}) == Change()
    assert changes.read({"lose": "1"}, ["b", "a"], seed=3).gone == found.gone


@pytest.mark.parametrize(
    "text, why",
    [
        ({"topology-policy": "strict"}, '--topology-policy: "strict" is not one of none'),
        ({"scoring": "Best"}, "--scoring"),
        ({"kubelet-version": "1.20"}, "is not a kubelet that is known here"),
        ({"zones-per-socket": "-1"}, "--zones-per-socket"),
        ({"lose": "3"}, "is not a whole number of 0 to 2"),
        ({"colour": "red"}, "cannot be varied"),
    ],
)
def test_texts_that_make_no_sense_name_the_option(text: dict[str, str], why: str) -> None:
    with pytest.raises(BadObject) as caught:
        changes.read(text, ["a", "b"])
    assert why in str(caught.value)


def test_a_field_that_does_not_decide_admission_is_refused() -> None:
    with pytest.raises(BadObject, match=r"imageGCHighThresholdPercent: does not decide admission"):
        changes.check(Change(kubelet={"imageGCHighThresholdPercent": 80}), "kubelet.yaml")
