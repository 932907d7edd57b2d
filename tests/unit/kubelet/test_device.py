"""Which zones the device manager offers for a request, and which of them it prefers."""

from collections.abc import Mapping, Sequence

import pytest

from numalign.kubelet import demand
from numalign.kubelet.demand import PodDemand, Reading
from numalign.kubelet.device import DeviceManager, DeviceState, Ids, ReusableDevices
from numalign.kubelet.machine.machine import Machine
from numalign.kubelet.topologymanager.hints import HintList
from numalign.kubelet.topologymanager.mask import members
from numalign.kubelet.topologymanager.merge import HintMap
from tests.unit.kubelet import made, runs

Listed = Mapping[tuple[int, ...], bool] | None
"""Zones to preferred, in the kubelet's order; None: no preference."""

EITHER: Listed = {(0,): True, (1,): True, (0, 1): False}
NOTHING: Listed = {}
FIRST: Listed = {(0,): True, (0, 1): False}
SECOND: Listed = {(1,): True, (0, 1): False}


def manager(on: Machine) -> DeviceManager:
    return made.kubelet(on).devices


def nics(*places: made.Where, zones: int = 2) -> Machine:
    return made.machine(zones, devices={made.NIC: places})


def demanding(count: int, before: Sequence[int] = ()) -> PodDemand:
    init = [made.container(f"i{place}", nic=each) for place, each in enumerate(before)]
    return demand.of(made.pod("p", made.container("c", nic=count), init=init), Reading())


def holding(uid: str, container: str, *ids: str, reusable: bool = False) -> DeviceState:
    held = {made.NIC: frozenset(ids)}
    return DeviceState({uid: {container: held}}, ReusableDevices(uid, held) if reusable else ReusableDevices())


def listed(hints: HintMap) -> Listed:
    found = hints[made.NIC]
    if found is None:
        return None
    assert isinstance(found, HintList)
    return {members(hint.mask or 0): hint.preferred for hint in found}


def offered(on: Machine, count: int, state: DeviceState | None = None) -> Listed:
    pod = demanding(count)
    return listed(manager(on).container_hints(state or DeviceState(), pod, pod.container("c")))


def offered_to_pod(on: Machine, pod: PodDemand, state: DeviceState | None = None) -> Listed:
    return listed(manager(on).pod_hints(state or DeviceState(), pod))


PLACES: dict[str, tuple[Machine, int, Listed]] = {
    "one of two in either zone": (nics(0, 0, 1, 1), 1, EITHER),
    "as many as one zone has": (nics(0, 0, 1, 1), 2, EITHER),
    "more than one zone has": (nics(0, 0, 1, 1), 3, {(0, 1): True}),
    "more than there are": (nics(0, 0, 1, 1), 5, NOTHING),
    "none at all": (nics(0, 0, 1, 1), 0, EITHER),
    "no device names a zone": (nics(None, None), 1, None),
    "topologies without a zone": (nics((), ()), 1, None),
    "a device without topology is in no zone": (nics(0, None), 1, {(0,): True}),
    "and does not help where two are needed": (nics(0, None), 2, NOTHING),
    "a device of several zones is in each": (nics((0, 1)), 1, EITHER),
    "a device of several zones counts once": (nics((0, 1), 0), 2, FIRST),
    "zones that the machine does not have are passed over": (nics(0, 7), 1, {(0,): True}),
    "a device in a known and an unknown zone": (nics((1, 7)), 1, {(1,): True}),
    "all in unknown zones": (nics(7, 7), 1, NOTHING),
    "zones without devices are left out": (nics(1, 3, zones=4), 1, {(1,): True, (3,): True, (1, 3): False}),
    "and do not count for what is preferred": (nics(1, 3, zones=4), 2, {(1, 3): True}),
    "sets are listed by size, then in order": (
        nics(0, 1, 2, zones=3),
        2,
        {(0, 1): True, (0, 2): True, (1, 2): True, (0, 1, 2): False},
    ),
    "zone ids may have gaps": (
        made.machine(ids=(2, 5), devices={made.NIC: (2, 5)}),
        1,
        {(2,): True, (5,): True, (2, 5): False},
    ),
}


@pytest.mark.parametrize("on, count, expected", PLACES.values(), ids=PLACES)
def test_zones_offered_on_an_empty_node(on: Machine, count: int, expected: Listed) -> None:
    found = offered(on, count)
    assert found == expected
    assert found is None or expected is None or list(found) == list(expected)


FOUR = nics(0, 0, 1, 1)
BUSY: dict[str, tuple[Machine, int, DeviceState, Listed]] = {
    "devices in use are not free": (FOUR, 2, holding("q", "c", "nic-0"), SECOND),
    "one zone would do by size, so two are not preferred": (
        FOUR,
        2,
        holding("q", "c", "nic-0", "nic-2"),
        {(0, 1): False},
    ),
    "too few are left": (FOUR, 2, holding("q", "c", "nic-0", "nic-1", "nic-2"), NOTHING),
    "unhealthy devices are not free": (
        runs.plugin(FOUR, unhealthy={"nic-0"}),
        2,
        DeviceState(),
        SECOND,
    ),
    "but count as size": (runs.plugin(FOUR, unhealthy={"nic-0", "nic-2"}), 2, DeviceState(), {(0, 1): False}),
    "none is healthy": (runs.plugin(nics(0), unhealthy={"nic-0"}), 1, DeviceState(), NOTHING),
}


@pytest.mark.parametrize("on, count, state, expected", BUSY.values(), ids=BUSY)
def test_zones_offered_on_a_node_in_use(on: Machine, count: int, state: DeviceState, expected: Listed) -> None:
    assert offered(on, count, state) == expected


HELD: dict[str, tuple[DeviceState, int, Listed]] = {
    "its own, in one zone": (holding("p", "c", "nic-0", "nic-1"), 2, FIRST),
    "its own, across zones": (holding("p", "c", "nic-0", "nic-2"), 2, {(0, 1): False}),
    "fewer than it asks for": (holding("p", "c", "nic-0"), 2, NOTHING),
    "more than it asks for": (holding("p", "c", "nic-0", "nic-1"), 1, NOTHING),
    "those of another container are not its own": (
        holding("p", "d", "nic-0", "nic-1"),
        2,
        SECOND,
    ),
}


@pytest.mark.parametrize("state, count, expected", HELD.values(), ids=HELD)
def test_a_container_that_has_devices_is_offered_their_zones(state: DeviceState, count: int, expected: Listed) -> None:
    assert offered(FOUR, count, state) == expected


def test_unhealthy_devices_that_a_container_holds_still_make_hints() -> None:
    on = runs.plugin(FOUR, unhealthy={"nic-0", "nic-1"})
    assert offered(on, 2, holding("p", "c", "nic-0", "nic-1")) == FIRST


REUSED: dict[str, tuple[Machine, Sequence[str], int, Listed]] = {
    "a reused device must be touched": (FOUR, ["nic-0"], 1, FIRST),
    "every one of them": (FOUR, ["nic-0", "nic-2"], 1, {(0, 1): False}),
    "reused ones count with the free ones": (FOUR, ["nic-0"], 4, {(0, 1): True}),
    "too few together": (FOUR, ["nic-0"], 5, NOTHING),
    "without topology it blocks nothing and counts for nothing": (nics(None, 0, 1), ["nic-0"], 1, EITHER),
    "with a topology that names no zone it blocks everything": (nics((), 0, 1), ["nic-0"], 1, NOTHING),
    "of several zones, one is enough": (
        nics((0, 1), 2, zones=3),
        ["nic-0"],
        1,
        {(0,): True, (1,): True, (0, 1): False, (0, 2): False, (1, 2): False, (0, 1, 2): False},
    ),
}


@pytest.mark.parametrize("on, ids, count, expected", REUSED.values(), ids=REUSED)
def test_what_init_containers_left_narrows_the_offer(
    on: Machine, ids: Sequence[str], count: int, expected: Listed
) -> None:
    assert offered(on, count, holding("p", "i", *ids, reusable=True)) == expected


def test_leftovers_of_another_pod_are_not_reused() -> None:
    assert offered(FOUR, 2, holding("q", "i", "nic-0", reusable=True)) == SECOND


PODS: dict[str, tuple[PodDemand, DeviceState, Listed]] = {
    "apps and their peak": (demanding(1, before=[3]), DeviceState(), {(0, 1): True}),
    "what the pod holds already": (demanding(2), holding("p", "c", "nic-0", "nic-1"), FIRST),
    "held is the union over containers": (
        demanding(1, before=[2]),
        DeviceState({"p": {"i0": {made.NIC: frozenset({"nic-0", "nic-1"})}, "c": {made.NIC: frozenset({"nic-0"})}}}),
        FIRST,
    ),
    "held differs from the peak": (demanding(2), holding("p", "c", "nic-0"), NOTHING),
    "leftovers are held, never reused": (
        demanding(1),
        holding("p", "i", "nic-0", reusable=True),
        FIRST,
    ),
    "too few": (demanding(5), DeviceState(), NOTHING),
}


@pytest.mark.parametrize("pod, state, expected", PODS.values(), ids=PODS)
def test_zones_offered_to_a_pod_as_a_whole(pod: PodDemand, state: DeviceState, expected: Listed) -> None:
    assert offered_to_pod(FOUR, pod, state) == expected


def test_without_device_limits_there_is_nothing_to_say() -> None:
    pod = demand.of(made.pod("p", made.container("c", unknown=1)), Reading())
    assert manager(FOUR).container_hints(DeviceState(), pod, pod.container("c")) == {}
    assert manager(FOUR).pod_hints(DeviceState(), pod) == {}


def test_burstable_containers_are_offered_devices_like_any_other() -> None:
    pod = demand.of(made.pod("p", made.container("c", burstable=True, nic=1)), Reading())
    assert listed(manager(FOUR).container_hints(DeviceState(), pod, pod.container("c"))) == EITHER


GONE = {"in use": (holding("q", "c", "nic-0"), {made.NIC: None}), "not in use": (DeviceState(), {})}


@pytest.mark.parametrize("state, expected", GONE.values(), ids=GONE)
def test_a_plugin_that_is_gone_counts_only_while_its_devices_are_in_use(
    state: DeviceState, expected: Mapping[str, None]
) -> None:
    pod = demanding(1)
    assert manager(made.machine(devices={})).container_hints(state, pod, pod.container("c")) == expected


def test_every_device_resource_is_offered_by_itself() -> None:
    on = made.machine(devices={made.NIC: (0, 1), "example.com/gpu": (1,)})
    pod = demand.of(made.pod("p", made.container("c", nic=1, gpu=1)), Reading())
    hints = manager(on).container_hints(DeviceState(), pod, pod.container("c"))
    assert hints == {
        made.NIC: HintList((1, 2, 3), frozenset({1, 2})),
        "example.com/gpu": HintList((2,), frozenset({2})),
    }


def test_who_holds_what_can_be_asked_by_container_by_pod_and_in_all() -> None:
    state = holding("p", "a", "nic-0").with_devices("p", "b", made.NIC, Ids({"nic-1"}))
    state = state.with_devices("q", "c", "example.com/gpu", Ids({"gpu-0"}))
    assert state.held("p", "b") == {made.NIC: {"nic-1"}}
    assert state.held_by_pod("p", made.NIC) == {"nic-0", "nic-1"}
    assert state.in_use("example.com/gpu") == {"gpu-0"}
    assert state.resources() == {made.NIC, "example.com/gpu"}
