"""Hints of the static CPU policy, for containers and whole pods (kubelet spec 5.5 and 9)."""

import pytest

from numalign.api.decode import cpuset
from numalign.api.objects.pod import Container
from numalign.kubelet import demand as demands
from numalign.kubelet.cpu.state import CPUState, ReusableCpus
from numalign.kubelet.cpu.static import ALIGN_BY_SOCKET, FULL_PCPUS_ONLY, StaticCPUs
from numalign.kubelet.demand import PodDemand, Reading
from numalign.kubelet.machine.machine import Machine
from numalign.kubelet.topologymanager.hints import HintList
from numalign.kubelet.topologymanager.merge import HintMap
from tests.unit.kubelet import made

Spelled = dict[str, bool] | None
"""Zones of every hint, in their order, and whether it is preferred; None: don't care."""

PLAIN = made.machine()  # 0-3 and 4-7, 0 reserved
SMT = made.machine(threads=2)
FOUR = made.machine(zones=4, cores=2)
QUARTERS = made.machine(zones=4, cores=2, threads=2, sockets=2)  # two zones in a socket
EITHER = {"0": True, "1": True, "0-1": False}

# (machine, options, shared CPUs, CPUs asked for, hints)
FRESH: dict[str, tuple[Machine, tuple[str, ...], str, int, Spelled]] = {
    "either zone": (PLAIN, (), "0-7", 2, EITHER),
    "the zone without the reserved CPU": (PLAIN, (), "0-7", 4, {"1": True, "0-1": False}),
    "preferred by size, reserved and busy CPUs included": (PLAIN, (), "0-2,5-6", 4, {"0-1": False}),
    "larger than any zone": (PLAIN, (), "0-7", 5, {"0-1": True}),
    "more than is free": (PLAIN, (), "0-7", 8, {}),
    "more than there is": (PLAIN, (), "0-7", 99, {}),
    "nothing free": (PLAIN, (), "0", 1, {}),
    "in the order of enumeration": (
        FOUR,
        (),
        "0-7",
        4,
        {"1-2": True, "1,3": True, "2-3": True}
        | {"0-2": False, "0-1,3": False, "0,2-3": False, "1-3": False, "0-3": False},
    ),
    "zones without CPUs are left out": (made.machine(cores=(4, 0), sockets=1), (), "0-3", 2, {"0": True}),
    "real zone ids": (made.machine(ids=(1, 5)), (), "0-7", 2, {"1": True, "5": True, "1,5": False}),
    "whole cores mean nothing here": (SMT, (FULL_PCPUS_ONLY,), "0-15", 3, EITHER),
    "not even where there are none": (SMT, (FULL_PCPUS_ONLY,), "0-7", 4, {"1": True, "0-1": False}),
    "two zones of one socket are as good as one": (
        QUARTERS,
        (ALIGN_BY_SOCKET,),
        "0-2,4,8-9,12",
        4,
        {"0-1": True, "0,2": False, "0-2": False, "0-1,3": False, "0,2-3": False, "0-3": False},
    ),
    "unless nobody asked for sockets": (
        QUARTERS,
        (),
        "0-2,4,8-9,12",
        4,
        dict.fromkeys(("0-1", "0,2", "0-2", "0-1,3", "0,2-3", "0-3"), False),
    ),
    "one zone per socket: nothing changes": (PLAIN, (ALIGN_BY_SOCKET,), "0-7", 2, EITHER),
}

# (CPUs the container holds, CPUs asked for, hints)
AGAIN: dict[str, tuple[str, int, Spelled]] = {
    "in one zone": ("4-5", 2, {"1": True, "0-1": False}),
    "across zones though one would do": ("3-4", 2, {"0-1": False}),
    "across zones as it has to be": ("1-5", 5, {"0-1": True}),
    "more than it asks for": ("4-6", 2, {}),
    "less than it asks for": ("4", 2, {}),
}

# (shared CPUs, what p's init containers left, CPUs asked for, hints)
LEFT: dict[str, tuple[str, str, int, Spelled]] = {
    "zones of what is left have to be in": ("0-3,6-7", "4-5", 2, {"1": True, "0-1": False}),
    "what is left counts": ("0-3", "4-7", 4, {"1": True, "0-1": False}),
    "what is left is not enough": ("0-3", "4-5", 4, {"0-1": False}),
    "left in both zones": ("0-2,5-7", "3-4", 2, {"0-1": False}),
}


def policy(on: Machine = PLAIN, *options: str) -> StaticCPUs:
    gates = {"CPUManagerPolicyAlphaOptions": True}
    manager = made.kubelet(on, cpu_options=dict.fromkeys(options, "true"), feature_gates=gates).cpu
    assert manager is not None
    return manager


def asking(*cpus: int | str, init: tuple[int, ...] = ()) -> PodDemand:
    apps = [made.container(f"c{place}", cpu=amount) for place, amount in enumerate(cpus)]
    before = [made.container(f"i{place}", cpu=amount) for place, amount in enumerate(init)]
    return demands.of(made.pod("p", *apps, init=before), Reading())


def state(shared: str, left: ReusableCpus | None = None, **assigned: str) -> CPUState:
    held = {name: cpuset.parse(cpus) for name, cpus in assigned.items()}
    return CPUState(cpuset.parse(shared), {"p": held} if held else {}, reuse=left or ReusableCpus())


def spelled(offered: HintMap | None) -> Spelled:
    if offered is None:
        return None
    assert list(offered) == ["cpu"]
    hints = offered["cpu"]
    assert isinstance(hints, HintList)
    return {cpuset.text(mask): hints.prefers(mask) for mask in hints.masks}


def of_container(manager: StaticCPUs, known: CPUState, pod: PodDemand) -> list[tuple[str, bool]] | None:
    hints = spelled(manager.container_hints(known, pod, pod.containers[-1]))
    return None if hints is None else list(hints.items())


@pytest.mark.parametrize("machine, options, shared, cpus, expected", FRESH.values(), ids=FRESH)
def test_a_new_container_is_offered_every_set_of_zones_with_room(
    machine: Machine, options: tuple[str, ...], shared: str, cpus: int, expected: dict[str, bool]
) -> None:
    offered = of_container(policy(machine, *options), state(shared), asking(cpus))
    assert offered == list(expected.items())


@pytest.mark.parametrize("assigned, cpus, expected", AGAIN.values(), ids=AGAIN)
def test_a_container_that_has_cpus_is_offered_their_zones(assigned: str, cpus: int, expected: dict[str, bool]) -> None:
    known = state(cpuset.text(0xFF & ~cpuset.parse(assigned)), c0=assigned)
    assert of_container(policy(), known, asking(cpus)) == list(expected.items())


@pytest.mark.parametrize("shared, left, cpus, expected", LEFT.values(), ids=LEFT)
def test_a_container_has_to_stay_with_what_init_containers_left(
    shared: str, left: str, cpus: int, expected: dict[str, bool]
) -> None:
    known = state(shared, ReusableCpus("p", cpuset.parse(left)))
    assert of_container(policy(), known, asking(cpus)) == list(expected.items())


def test_what_another_pod_left_does_not_count() -> None:
    known = state("0-3", ReusableCpus("q", cpuset.parse("4-7")))
    assert of_container(policy(), known, asking(4)) == []


@pytest.mark.parametrize(
    "container",
    [made.container(cpu="1500m"), made.container(cpu=2, burstable=True), made.container(cpu=2, memory=None)],
    ids=["a fraction", "burstable", "no memory"],
)
def test_a_container_without_cpus_of_its_own_does_not_care(container: Container) -> None:
    pod = demands.of(made.pod("p", container), Reading())
    assert of_container(policy(), state("0-7"), pod) is None
    assert policy().pod_hints(state("0-7"), pod) is None


# (pod, what its containers hold, what init containers left, hints)
WHOLE: dict[str, tuple[PodDemand, dict[str, str], str, Spelled]] = {
    "all containers together": (asking(2, 2), {}, "", {"1": True, "0-1": False}),
    "fractions are not counted": (asking(2, "1500m"), {}, "", EITHER),
    "the largest init container": (asking(1, init=(5,)), {}, "", {"0-1": True}),
    "too much together": (asking(4, 4), {}, "", {}),
    "everything assigned": (asking(1, 1), {"c0": "4", "c1": "5"}, "", {"1": True, "0-1": False}),
    "assigned across zones": (asking(1, 1), {"c0": "3", "c1": "4"}, "", {"0-1": False}),
    "a part assigned": (asking(2, 2), {"c0": "4-5"}, "", {"1": True, "0-1": False}),
    "a part assigned in the smaller zone": (asking(2, 2), {"c0": "1-2"}, "", {"0-1": False}),
    "one has another size than it asks for": (asking(2, 2), {"c0": "4-5", "c1": "6"}, "", {}),
    "init containers overlap the others": (
        asking(2, init=(2,)),
        {"i0": "4-5", "c0": "4-5"},
        "",
        {"1": True, "0-1": False},
    ),
    "left and assigned count once": (asking(3, init=(2,)), {"i0": "4-5"}, "4-5", {"1": True, "0-1": False}),
}


@pytest.mark.parametrize("pod, assigned, left, expected", WHOLE.values(), ids=WHOLE)
def test_a_pod_is_offered_zones_for_all_its_containers(
    pod: PodDemand, assigned: dict[str, str], left: str, expected: dict[str, bool]
) -> None:
    busy = cpuset.parse(",".join(assigned.values()))
    known = state(cpuset.text(0xFF & ~busy), ReusableCpus("p", cpuset.parse(left)), **assigned)
    assert spelled(policy().pod_hints(known, pod)) == expected
