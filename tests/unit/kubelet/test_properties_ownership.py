"""Whatever happens on a node, nothing belongs to two containers that run at the same time.

Machines are drawn with equal sockets and equal cores: elsewhere the kubelet takes an average for the size of a socket
or a core and hands CPUs out twice (kubelet spec 4), which test_cpu_packed shows."""

from collections.abc import Iterable, Iterator
from functools import reduce
from itertools import combinations
from operator import or_

from numalign.kubelet import demand as demands
from numalign.kubelet import versions
from numalign.kubelet.demand import Role
from numalign.kubelet.state import KubeletState
from tests.campaigns import holds_for
from tests.strategies.lives import Life, lives

SERVED_WHOLE = {"feature_gates": {"PodLevelResourceManagers": True}, "minor": versions.NEWEST}
"""Pods with pod-level resources get one allocation for all their containers."""


def disjoint(sets: Iterable[Iterable[object]]) -> bool:
    return not any(set(one) & set(other) for one, other in combinations(sets, 2))


def members(cpus: int) -> set[int]:
    return {cpu for cpu in range(cpus.bit_length()) if cpus >> cpu & 1}


def cpus_of_pods(state: KubeletState) -> list[set[int]]:
    """The CPUs of each pod, including ended pods that are not collected yet."""
    assert state.cpu is not None
    held, whole = state.cpu.assignments, state.cpu.pods
    return [members(reduce(or_, held.get(uid, {}).values(), whole.get(uid, 0))) for uid in {*held, *whole}]


def devices_of_pods(state: KubeletState) -> list[set[tuple[str, str]]]:
    return [
        {(resource, each) for held in containers.values() for resource, ids in held.items() for each in ids}
        for containers in state.devices.pods.values()
    ]


def keeping(life: Life, state: KubeletState) -> Iterator[tuple[str, list[str]]]:
    """For every active pod the containers that keep what they hold: sidecars and apps."""
    for uid, pod in state.active.items():
        demand = demands.of(pod, life.kubelet.reading)
        yield uid, [each.name for each in demand.containers if each.role is not Role.INIT]


@holds_for(lives(), examples=50)
def test_no_cpu_belongs_to_two_pods(life: Life) -> None:
    assert all(disjoint(cpus_of_pods(moment.state)) for moment in life.moments() if moment.state.cpu)


@holds_for(lives(settings=SERVED_WHOLE, pod_level=True), examples=50)
def test_no_cpu_belongs_to_two_pods_where_pods_are_served_whole(life: Life) -> None:
    assert all(disjoint(cpus_of_pods(moment.state)) for moment in life.moments() if moment.state.cpu)


@holds_for(lives(pod_level=True), examples=50)
def test_no_device_belongs_to_two_pods(life: Life) -> None:
    assert all(disjoint(devices_of_pods(moment.state)) for moment in life.moments())


@holds_for(lives(), examples=50)
def test_sidecars_and_apps_of_a_pod_have_cpus_of_their_own(life: Life) -> None:
    for state in (moment.state for moment in life.moments() if moment.state.cpu):
        assert state.cpu
        for uid, names in keeping(life, state):
            assert disjoint(members(state.cpu.assigned(uid, name) or 0) for name in names)


@holds_for(lives(), examples=50)
def test_sidecars_and_apps_of_a_pod_have_devices_of_their_own(life: Life) -> None:
    for state in (moment.state for moment in life.moments()):
        for uid, names in keeping(life, state):
            held = [state.devices.held(uid, name) for name in names]
            for resource in life.kubelet.machine.devices:
                assert disjoint(each.get(resource, ()) for each in held)


@holds_for(lives(), examples=50)
def test_shared_set_and_assignments_partition_the_cpus_that_are_managed(life: Life) -> None:
    """All CPUs, or with strict-cpu-reservation all but the reserved ones (kubelet spec 5.1)."""
    policy = life.kubelet.cpu
    for state in (moment.state.cpu for moment in life.moments() if moment.state.cpu):
        assert policy
        held = reduce(or_, (cpus for pod in state.assignments.values() for cpus in pod.values()), 0)
        assert state.default & held == 0
        assert state.default | held == policy.managed


@holds_for(lives(settings=SERVED_WHOLE, pod_level=True), examples=50)
def test_reserved_cpus_are_never_handed_out(life: Life) -> None:
    policy = life.kubelet.cpu
    for state in (moment.state for moment in life.moments() if moment.state.cpu):
        assert policy
        assert not any(pod & members(policy.reserved) for pod in cpus_of_pods(state))
