"""Which devices a container is handed, in which order sources are drawn on, and how a shortage is worded.

Where the kubelet picks at random the tests look at zones and counts, never at ids."""

from collections.abc import Callable, Mapping, Sequence

import pytest

from numalign.kubelet import demand, device
from numalign.kubelet.demand import PodDemand, Reading
from numalign.kubelet.device import DeviceManager, DeviceState, Ids, Preference, ReusableDevices
from numalign.kubelet.machine.machine import Machine
from numalign.kubelet.refusals import Refusal
from numalign.kubelet.versions import NEWEST, behaviour
from tests.unit.kubelet import made, runs

GPU = "example.com/gpu"


def nics(*places: made.Where) -> Machine:
    return made.machine(devices={made.NIC: places})


FOUR = nics(0, 0, 1, 1)
ZONE_0, ZONE_1, BOTH = 0b01, 0b10, 0b11


def manager(on: Machine, prefer: Callable[[Preference], Ids] = device.lowest_ids) -> DeviceManager:
    return DeviceManager(on, behaviour(NEWEST), prefer)


def demanding(count: int) -> PodDemand:
    before = [made.container("i", nic=2), made.container("s", nic=1, sidecar=True)]
    apps = made.container("c", nic=count), made.container("d", nic=count)
    return demand.of(made.pod("p", *apps, init=before), Reading())


def holding(uid: str, container: str, *ids: str, reusable: bool = False) -> DeviceState:
    held = {made.NIC: frozenset(ids)}
    return DeviceState({uid: {container: held}}, ReusableDevices(uid, held) if reusable else ReusableDevices())


def allocate(
    devices: DeviceManager, count: int, state: DeviceState, affinity: int | None = None, container: str = "c"
) -> tuple[DeviceState, Refusal | None]:
    pod = demanding(count)
    return devices.allocate(state, pod, pod.container(container), affinity)


def taken(devices: DeviceManager, count: int, state: DeviceState | None = None, affinity: int | None = None) -> Ids:
    after, refusal = allocate(devices, count, state or DeviceState(), affinity)
    assert refusal is None
    return after.held("p", "c").get(made.NIC, frozenset())


CHANGED = 'pod "p" container "c" changed request for resource "example.com/nic" from 1 to 2'
UNREGISTERED = "cannot allocate unregistered device example.com/nic"
NONE_HEALTHY = "no healthy devices present; cannot allocate unhealthy devices example.com/nic"
NO_LONGER = "previously allocated devices are no longer healthy; cannot allocate unhealthy devices example.com/nic"
SHORT = "requested number of devices unavailable for example.com/nic. Requested: {}, Available: {}"
NO_PLUGIN = made.machine(devices={})
ONE_SICK = runs.plugin(FOUR, unhealthy={"nic-0"})
ALL_SICK = runs.plugin(FOUR, unhealthy={f"nic-{number}" for number in range(4)})
MINE = holding("p", "c", "nic-0")

REFUSALS = {
    "the request changed": (FOUR, 2, MINE, CHANGED),
    "a change is noticed before a missing plugin": (NO_PLUGIN, 2, MINE, CHANGED),
    "the plugin is gone": (NO_PLUGIN, 1, MINE, UNREGISTERED),
    "no device is healthy": (ALL_SICK, 1, DeviceState(), NONE_HEALTHY),
    "even where none is asked for": (ALL_SICK, 0, DeviceState(), NONE_HEALTHY),
    "or where it has what it needs": (ALL_SICK, 1, MINE, NONE_HEALTHY),
    "its own device turned unhealthy": (ONE_SICK, 1, MINE, NO_LONGER),
    "too few": (FOUR, 5, DeviceState(), SHORT.format(5, 4)),
    "too few beside those in use": (FOUR, 3, holding("q", "c", "nic-0", "nic-3"), SHORT.format(3, 2)),
    "too few beside the unhealthy ones": (ONE_SICK, 4, DeviceState(), SHORT.format(4, 3)),
    "only what reuse does not cover is counted": (
        FOUR,
        5,
        holding("p", "i", "nic-0", "nic-1", reusable=True),
        SHORT.format(3, 2),
    ),
}


@pytest.mark.parametrize("on, count, state, text", REFUSALS.values(), ids=REFUSALS)
def test_a_refusal_says_what_is_wrong_and_changes_no_holding(
    on: Machine, count: int, state: DeviceState, text: str
) -> None:
    after, refusal = allocate(manager(on), count, state)
    assert (str(refusal), after.pods) == (text, state.pods)
    assert refusal is not None
    assert refusal.pod_message == f"Allocate failed due to {text}, which is unexpected"


CHOICES: dict[str, tuple[Machine, int, int | None, Sequence[set[str]]]] = {
    "as many as are aligned": (FOUR, 2, ZONE_1, [{"nic-2", "nic-3"}]),
    "fewer than are aligned": (FOUR, 1, ZONE_1, [{"nic-2"}, {"nic-3"}]),
    "all that are aligned, then others": (
        FOUR,
        3,
        ZONE_1,
        [{"nic-2", "nic-3", "nic-0"}, {"nic-2", "nic-3", "nic-1"}],
    ),
    "other zones before devices without any": (nics(1, None, 0), 2, ZONE_1, [{"nic-0", "nic-2"}]),
    "devices without zones at last": (nics(1, None, 0), 3, ZONE_1, [{"nic-0", "nic-1", "nic-2"}]),
    "a topology that names no zone is none": (nics(1, (), 0), 2, ZONE_1, [{"nic-0", "nic-2"}]),
    "one of several zones aligns": (nics(0, (0, 1)), 1, ZONE_1, [{"nic-1"}]),
    "an unknown zone does not align": (nics(7, 1), 1, ZONE_1, [{"nic-1"}]),
    "anywhere": (nics(0, 1), 2, None, [{"nic-0", "nic-1"}]),
    "a resource without topology knows no alignment": (nics(None, None), 2, ZONE_1, [{"nic-0", "nic-1"}]),
    "none": (FOUR, 0, ZONE_1, [set()]),
}


@pytest.mark.parametrize("on, count, affinity, either", CHOICES.values(), ids=CHOICES)
def test_aligned_devices_are_taken_first(
    on: Machine, count: int, affinity: int | None, either: Sequence[set[str]]
) -> None:
    assert taken(manager(on), count, affinity=affinity) in either


def test_a_container_that_has_its_devices_keeps_them_wherever_they_are() -> None:
    assert taken(manager(FOUR), 1, MINE, affinity=ZONE_1) == {"nic-0"}


# What the plugin is asked


def nic(*numbers: int) -> Ids:
    return frozenset(f"nic-{number}" for number in numbers)


def asking(available: Ids, must_include: Ids, size: int) -> Preference:
    return Preference(made.NIC, available, must_include, size)


ALL = nic(0, 1, 2, 3)

ASKED: dict[str, tuple[int, int | None, DeviceState, Preference | None]] = {
    "fewer than are aligned": (1, ZONE_1, DeviceState(), asking(nic(2, 3), nic(), 1)),
    "exactly what is aligned leaves nothing to ask": (2, ZONE_1, DeviceState(), None),
    "more than are aligned": (3, ZONE_1, DeviceState(), asking(ALL, nic(2, 3), 3)),
    "nothing to align to": (2, None, DeviceState(), asking(ALL, nic(), 2)),
    "asked even without a choice": (
        4,
        None,
        DeviceState(),
        asking(ALL, nic(), 4),
    ),
    "devices in use are not on offer": (
        1,
        BOTH,
        holding("q", "c", "nic-0"),
        asking(nic(1, 2, 3), nic(), 1),
    ),
    "reused devices must be included": (
        2,
        ZONE_1,
        holding("p", "i", "nic-0", reusable=True),
        asking(nic(0, 2, 3), nic(0), 2),
    ),
    "reused and aligned ones must be included": (
        4,
        ZONE_1,
        holding("p", "i", "nic-0", reusable=True),
        asking(ALL, nic(0, 2, 3), 4),
    ),
    "reuse alone is not asked for": (1, ZONE_1, holding("p", "i", "nic-0", reusable=True), None),
    "what it has already is not asked for": (1, ZONE_1, MINE, None),
    "none": (0, ZONE_1, DeviceState(), None),
}


@pytest.mark.parametrize("count, affinity, state, expected", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize("asks", [True, False], ids=["plugin wants to be asked", "plugin does not"])
def test_what_the_plugin_is_asked(
    count: int, affinity: int | None, state: DeviceState, expected: Preference | None, asks: bool
) -> None:
    calls: list[Preference] = []

    def prefer(asked: Preference) -> Ids:
        calls.append(asked)
        return device.lowest_ids(asked)

    taken(manager(runs.plugin(FOUR, asks=asks), prefer), count, state, affinity)
    assert calls == ([expected] if asks and expected is not None else [])


ANSWERS: dict[str, tuple[int, int | None, Ids, Sequence[Ids]]] = {
    "is followed": (1, BOTH, nic(3), [nic(3)]),
    "is followed across zones": (2, None, nic(1, 2), [nic(1, 2)]),
    "is passed over where it leaves the alignment": (1, ZONE_1, nic(0), [nic(2), nic(3)]),
    "decides what is added to the aligned ones": (3, ZONE_1, nic(1, 2, 3), [nic(1, 2, 3)]),
    "is filled up where it is too short": (
        3,
        BOTH,
        nic(3),
        [ALL - nic(each) for each in range(3)],
    ),
    "is cut where it is too long": (1, BOTH, nic(1, 2), [nic(1), nic(2)]),
    "is passed over where it names strangers": (1, None, frozenset({"gpu-0"}), [nic(each) for each in range(4)]),
}


@pytest.mark.parametrize("count, affinity, preferred, either", ANSWERS.values(), ids=ANSWERS)
def test_the_answer_of_the_plugin(count: int, affinity: int | None, preferred: Ids, either: Sequence[Ids]) -> None:
    assert taken(manager(runs.plugin(FOUR, asks=True), lambda _: preferred), count, affinity=affinity) in either


LOWEST = {
    "the lowest ids": (nic(), 2, nic(0, 1)),
    "what must be included, then the lowest": (nic(3), 2, nic(0, 3)),
    "no more than what must be included": (nic(1, 3), 1, nic(1, 3)),
}


@pytest.mark.parametrize("must_include, size, expected", LOWEST.values(), ids=LOWEST)
def test_a_plugin_of_which_nothing_is_known_prefers(must_include: Ids, size: int, expected: Ids) -> None:
    assert device.lowest_ids(asking(ALL, must_include, size)) == expected


# Reuse inside a pod

REUSE = {
    "an init container leaves its devices": ("i", 2, 2),
    "a sidecar keeps its own": ("s", 1, 1),
    "so does an app container": ("c", 1, 1),
}


@pytest.mark.parametrize("container, kept, left", REUSE.values(), ids=REUSE)
def test_what_the_next_container_may_reuse(container: str, kept: int, left: int) -> None:
    before = holding("p", "earlier", "nic-0", "nic-1", reusable=True)
    after, _ = allocate(manager(FOUR), 1, before, container=container)
    held, reusable = after.held("p", container)[made.NIC], after.reusable("p", made.NIC)
    assert (len(held), len(reusable), held | reusable) == (kept, left, nic(0, 1))


def test_app_containers_share_devices_with_init_containers_but_not_with_each_other() -> None:
    pod, state, devices = demanding(1), DeviceState(), manager(FOUR)
    for container in pod.containers:
        state, refusal = devices.allocate(state, pod, container, None)
        assert refusal is None
    i, s, c, d = (state.held("p", name)[made.NIC] for name in "iscd")
    assert (s | c == i, c & s, (s | c) & d) == (True, frozenset(), frozenset())


def test_reused_devices_are_checked_for_neither_health_nor_zone() -> None:
    state = holding("p", "i", "nic-0", reusable=True)
    assert taken(manager(ONE_SICK), 1, state, affinity=ZONE_1) == {"nic-0"}


@pytest.mark.parametrize("count", [1, 9], ids=["given", "refused"])
def test_leftovers_of_other_pods_are_forgotten(count: int) -> None:
    after, _ = allocate(manager(FOUR), count, holding("q", "i", "nic-0", reusable=True))
    assert (after.reuse.uid, after.reusable("q", made.NIC)) == ("p", frozenset())
    assert after.held("q", "i") == {made.NIC: nic(0)}


def test_a_refusal_leaves_what_the_pod_may_reuse() -> None:
    after, refusal = allocate(manager(FOUR), 9, holding("p", "i", "nic-0", reusable=True))
    assert refusal is not None
    assert after.reusable("p", made.NIC) == {"nic-0"}


def test_resources_allocated_before_the_refused_one_stay_allocated() -> None:
    on = made.machine(devices={made.NIC: (0, 1), GPU: (0,)})
    pod = demand.of(made.pod("p", made.container("c", nic=1, gpu=2)), Reading())
    after, refusal = manager(on).allocate(DeviceState(), pod, pod.container("c"), None)
    assert str(refusal) == f"requested number of devices unavailable for {GPU}. Requested: 2, Available: 1"
    assert {name: len(ids) for name, ids in after.held("p", "c").items()} == {made.NIC: 1}


COLLECTED: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "pods that are not active": (["q"], ["q"]),
    "nothing while all are active": (["p", "q"], ["p", "q"]),
    "everything": ([], []),
}


@pytest.mark.parametrize("active, left", COLLECTED.values(), ids=COLLECTED)
def test_collection_frees_the_devices_of(active: Sequence[str], left: Sequence[str]) -> None:
    held = {made.NIC: nic(0)}
    state = DeviceState({"p": {"gone": held}, "q": {"gone": held}})
    # A container that the pod does not have any more keeps its devices: this manager collects by pod.
    assert list(manager(FOUR).collect(state, {uid: ["c"] for uid in active}).pods) == left
