"""Which zones the containers of a pod get in direct mode (koordinator spec 20.4 and 20.5)."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from numalign.api.attributes import directspec
from numalign.api.attributes.directmode import NodeDefaults
from numalign.api.decode import cpuset
from numalign.api.objects.pod import Pod
from numalign.kubelet.cpu.topology import discover
from numalign.kubelet.demand import Role
from numalign.placement.columns.deviceshares import Shares
from numalign.placement.columns.directmachine import DirectMachine, FreeState
from numalign.placement.direct import scope, taking
from numalign.placement.direct.asks import ContainerAsk, PodAsk
from numalign.placement.direct.scope import Assignment, Unplaced
from tests.unit.kubelet import made
from tests.unit.placement.direct import devices, machines
from tests.unit.placement.direct.machines import GIB, ask, assigned, machine, pod, zones

SINGLE = '{"policy": "SingleNUMANode", "scope": "%s"}'
STRATEGIC = '{"policy": "SingleNUMANode", "scope": "Container", "strategy": "%s"}'


def both(
    on: DirectMachine, *cpus: Any, policy: str = "SingleNUMANode", free: FreeState | None = None, **more: Any
) -> Any:
    """The zones under scope pod and under scope container."""
    spec = '{"policy": "%s", "scope": "%s"}'
    each = (pod(*cpus, spec=spec % (policy, one), **more) for one in ("Pod", "Container"))
    return tuple(zones(assigned(of, on, free), on) for of in each)


def test_cs_1_two_containers_that_fill_a_zone_each_need_scope_container() -> None:
    assert both(machine(), 6, 6) == (None, [(0,), (1,)])


def test_cs_2_two_containers_that_fit_one_zone_share_it() -> None:
    assert both(machine(), 4, 4) == ([(0,), (0,)], [(0,), (0,)])


def test_cs_3_the_emptiest_zone_first_spreads_containers() -> None:
    assert zones(assigned(pod(4, 4, spec=STRATEGIC % "LeastAllocated"), machine()), machine()) == [(0,), (1,)]


def test_cs_4_containers_are_packed_so_that_the_last_one_fits() -> None:
    assert both(machine(), 5, 3, 8) == (None, [(0,), (0,), (1,)])


def test_cs_5_a_container_without_room_sends_an_earlier_one_elsewhere() -> None:
    found = assigned(pod(5, 3, 8, spec=STRATEGIC % "LeastAllocated"), machine())
    assert zones(found, machine()) == [(0,), (0,), (1,)]


def test_cs_6_an_app_container_uses_the_cpus_of_an_init_container_again() -> None:
    init = [made.container("i", cpu=8)]
    for name in ("Pod", "Container"):
        on = machine()
        found = assigned(pod(6, init=init, spec=SINGLE % name), on)
        assert isinstance(found, Assignment)
        assert zones(found, on) == [(0,), (0,)]
        assert (on.empty.cpus & ~found.after.cpus).bit_count() == 8


def test_cs_7_an_init_container_goes_where_the_app_container_fits() -> None:
    on = machine()
    free = on.empty._replace(cpus=on.empty.cpus & ~0b11)
    for name in ("Pod", "Container"):
        found = assigned(pod(8, init=[made.container("i", cpu=4)], spec=SINGLE % name), on, free)
        assert isinstance(found, Assignment)
        assert zones(found, on) == [(1,), (1,)]
        assert (free.cpus & ~found.after.cpus).bit_count() == 8


def test_cs_8_a_sidecar_keeps_its_cpus() -> None:
    init = [made.container("s", cpu=2, sidecar=True)]
    assert both(machine(), 8, init=init) == (None, [(0,), (1,)])


def test_cs_9_an_excluded_container_runs_in_the_pool_of_the_node() -> None:
    spec = '{"policy": "SingleNUMANode", "scope": "%s", "containers": {"exclude": ["c1"]}}'
    for name in ("Pod", "Container"):
        found = assigned(pod(8, "500m", spec=spec % name), machine())
        assert zones(found, machine()) == [(0,), ()]


def test_cs_10_a_container_that_needs_both_zones_leaves_one_zone_to_the_next() -> None:
    assert both(machine(), 10, 4, policy="Restricted") == ([(0, 1), (0, 1)], [(0, 1), (1,)])


def test_under_restricted_a_container_takes_no_more_zones_than_it_needs_on_an_empty_machine() -> None:
    on = machine()
    free = on.empty._replace(cpus=cpuset.parse("0-4,8-12"))
    assert both(on, 6, policy="Restricted", free=free) == (None, None)
    assert both(on, 6, policy="BestEffort", free=free) == ([(0, 1)], [(0, 1)])


def test_a_container_that_wants_more_than_its_zone_has_is_named() -> None:
    assert assigned(pod(2, 9, spec=SINGLE % "Container"), machine()) == Unplaced(1, 1)


def test_the_stricter_policy_of_pod_and_node_counts() -> None:
    on = machine(defaults=NodeDefaults(policy="single-numa-node"))
    assert assigned(pod(9, spec='{"policy": "BestEffort"}'), on) == Unplaced(0, 1)
    assert zones(assigned(pod(4), on), on) == [(0,)]


def test_a_pod_without_a_policy_on_a_node_without_one_is_not_aligned() -> None:
    found = assigned(pod(4), machine())
    assert isinstance(found, Assignment)
    assert found.grants == (taking.NO_GRANT,)


def test_an_override_gives_one_container_another_policy() -> None:
    containers = '{"overrides": {"c0": {"policy": "SingleNUMANode"}}}'
    spec = f'{{"scope": "Container", "policy": "BestEffort", "containers": {containers}}}'
    on = machine()
    assert zones(assigned(pod(6, 9, spec=spec), on), on) == [(0,), (0, 1)]
    assert assigned(pod(9, 6, spec=spec), on) == Unplaced(0, 1)


def test_exclusive_pods_inside_a_zone_and_over_zones_stay_apart() -> None:
    on = machine(4, 8)
    wide = '{"policy": "Restricted", "exclusive": "Required"}'
    narrow = '{"policy": "SingleNUMANode", "exclusive": "Required"}'
    first = assigned(pod(12, spec=wide), on)
    assert isinstance(first, Assignment)
    second = assigned(pod(2, spec=narrow), on, first.after)
    assert zones(second, on) == [(2,)]
    assert isinstance(second, Assignment)
    # Zones 2 and 3 have room for 14 CPUs, and zone 2 holds a container of a single zone.
    assert zones(assigned(pod(14, spec=wide), on, second.after), on) is None
    assert zones(assigned(pod(14, spec='{"policy": "Restricted"}'), on, second.after), on) == [(2, 3)]


def test_shared_containers_keep_their_share_of_the_pool() -> None:
    on = machine(2, 4)
    first = assigned(pod("1500m", spec=SINGLE % "Container"), on)
    assert isinstance(first, Assignment)
    assert first.after.shared == (1500, 0)
    # Two of four CPUs have to stay in the pool of zone 0.
    assert zones(assigned(pod(3, spec=SINGLE % "Container"), on, first.after), on) == [(1,)]
    assert zones(assigned(pod(2, spec=SINGLE % "Container"), on, first.after), on) == [(0,)]


def test_memory_is_packed_into_the_zones_or_divided_evenly() -> None:
    on = machine(memory=8 * GIB)
    spec = '{"policy": "Restricted", "strategy": "%s"}'

    def of(strategy: str) -> Any:
        container = made.container("a", cpu=2, memory="10Gi")
        found = assigned(machines.with_spec(made.pod("p", container), spec % strategy), on)
        assert isinstance(found, Assignment)
        return found.grants[0].memory

    assert of("MostAllocated") == ((8 * GIB, 2 * GIB),)
    assert of("DistributeEvenly") == ((5 * GIB, 5 * GIB),)


def test_devices_come_from_the_zones_of_the_container_by_minor() -> None:
    on = machine(devices=[("example.com/gpu", (0b11, 0b1100), 0)])
    container = made.container("a", cpu=6, gpu=2)
    other = structs.replace(container, name="b")
    of = machines.with_spec(made.pod("p", container, other), SINGLE % "Container")
    found = assigned(of, on)
    assert isinstance(found, Assignment)
    assert [grant.devices for grant in found.grants] == [(0b11,), (0b1100,)]
    assert zones(found, on) == [(0,), (1,)]


def test_whole_cores_are_required_or_preferred() -> None:
    on = machine(2, 4, 2)
    free = on.empty._replace(cpus=cpuset.parse("0,2,4,6,8-15"))

    def cpus(cpu_spec: str) -> str | None:
        found = assigned(pod(4, spec=SINGLE % "Container", cpu_spec=cpu_spec), on, free)
        return cpuset.text(found.grants[0].cpus) if isinstance(found, Assignment) else None

    assert cpus('{"required": "FullPCPUs"}') == "8-11"
    assert cpus('{"required": "SpreadByPCPUs"}') == "0,2,4,6"
    assert cpus('{"preferred": "FullPCPUs"}') == "0,2,4,6"
    odd = assigned(pod(3, spec=SINGLE % "Container", cpu_spec='{"required": "FullPCPUs"}'), on)
    assert odd == Unplaced(0, 1, partial_cores=True)


def test_a_core_with_a_reserved_thread_is_not_whole() -> None:
    # CPU 0 of the core (0, 1) is reserved.
    plain = made.machine(zones=1, cores=3, threads=2)
    zone = plain.zones[0]
    left = tuple(structs.replace(core, cpus=tuple(cpu for cpu in core.cpus if cpu != 0)) for core in zone.cores)
    reserved = structs.replace(plain, zones=(structs.replace(zone, cores=left),))
    on = DirectMachine(zones=(0,), topology=discover(reserved), terms=machine().terms)
    required = '{"required": "FullPCPUs"}'
    found = assigned(pod(4, spec=SINGLE % "Container", cpu_spec=required), on)
    assert isinstance(found, Assignment)
    assert cpuset.text(found.grants[0].cpus) == "1-2,4-5"
    assert isinstance(assigned(pod(6, spec=SINGLE % "Container", cpu_spec=required), on), Unplaced)
    assert isinstance(assigned(pod(3, spec=SINGLE % "Container", cpu_spec=required), on), Unplaced)


# Properties


SHARED: list[dict[str, int | str]] = [{}, {devices.GPU: 100}, {devices.GPU: 200}, {devices.CORE: 40, devices.RATIO: 60}]


def partly_used(draw: st.DrawFn, on: DirectMachine) -> Shares:
    whole = on.stock.whole
    held = [draw(st.sampled_from([0, 0, 50, 100])) for _ in on.stock.units]
    return whole._replace(
        parts=tuple(parts - each for parts, each in zip(whole.parts, held, strict=True)),
        memory=tuple(memory - memory * each // 100 for memory, each in zip(whole.memory, held, strict=True)),
    )


@st.composite
def situations(draw: st.DrawFn) -> tuple[DirectMachine, FreeState, Pod]:
    """Small machines with some CPUs and memory in use, and a pod of up to four containers."""
    # Zones with devices are never alike, so that the search has to look at each of them.
    table = devices.table() if draw(st.booleans()) else None
    number = draw(st.integers(1, 3)) if table is None else 2
    on = machine(number, draw(st.integers(1, 3)), draw(st.sampled_from([1, 1, 2])), memory=8 * GIB, table=table)
    used = draw(st.integers(0, on.topology.cpus)) & draw(st.integers(0, on.topology.cpus))
    free = on.empty._replace(
        cpus=on.topology.cpus & ~used,
        shares=partly_used(draw, on),
        memory=(tuple(draw(st.integers(4, 8)) * GIB for _ in on.zones),),
    )
    amounts = st.one_of(st.integers(1, 5), st.sampled_from(["500m", "1500m"]))

    def container(name: str, sidecar: bool = False) -> Any:
        memory = draw(st.sampled_from([None, None, "1Gi", "3Gi"]))
        shared = draw(st.sampled_from(SHARED)) if table is not None else {}
        return devices.container(name, shared, cpu=draw(amounts), memory=memory, sidecar=sidecar)

    init = [container(f"i{place}", draw(st.booleans())) for place in range(draw(st.integers(0, 2)))]
    apps = [container(f"a{place}") for place in range(draw(st.integers(1, 4 - len(init))))]
    policy = draw(st.sampled_from(["BestEffort", "Restricted", "SingleNUMANode"]))
    strategy = draw(st.sampled_from(directspec.STRATEGIES))
    name = draw(st.sampled_from(["Container", "Container", "Pod"]))
    spec = f'{{"policy": "{policy}", "scope": "{name}", "strategy": "{strategy}"}}'
    cpu = draw(st.sampled_from(["", '{"preferred": "SpreadByPCPUs"}']))
    return on, free, machines.with_spec(made.pod("p", *apps, init=init), spec, cpu)


def zone_sets(on: DirectMachine, pod: PodAsk, asked: ContainerAsk) -> list[int]:
    """The sets of zones that the container's policy allows."""
    every = range(1, on.every_zone + 1)
    empty = taking.nothing(on)
    roomy = [mask for mask in every if taking.fit(on, on.empty, empty, asked, pod, mask) is not None]
    width = {
        "none": len(on.zones),
        "single-numa-node": 1,
        "restricted": min(map(int.bit_count, roomy), default=0),
    }.get(asked.policy)
    return [mask for mask in every if width is None or mask.bit_count() == width]


def every_way(on: DirectMachine, free: FreeState, asked: PodAsk) -> Iterator[FreeState]:
    """What is free after each combination of zones that the policies allow and that has room for all containers."""
    allowed = [zone_sets(on, asked, each) for each in asked.containers]
    for combination in product(*allowed):
        left, reuse = free, taking.nothing(on)
        for each, mask in zip(asked.containers, combination, strict=True):
            grant = taking.fit(on, left, reuse, each, asked, mask)
            if grant is None:
                break
            left, reuse = taking.charged(left, reuse, grant, is_init=each.role is Role.INIT)
        else:
            yield left


def check_search(situation: tuple[DirectMachine, FreeState, Pod]) -> None:
    on, free, of = situation
    asked = ask(of, on)
    if asked.scope == "pod":
        return
    found, ways = scope.assign(on, free, asked), list(every_way(on, free, asked))
    assert isinstance(found, Assignment) is bool(ways)
    # Under best-effort, fewer zones come before a smaller footprint.
    if isinstance(found, Assignment) and asked.policy != "best-effort":
        assert scope.footprint(free, found.after) == min(scope.footprint(free, after) for after in ways)


@settings(max_examples=200)
@given(situations())
def test_zones_are_found_whenever_there_are_any_and_with_the_smallest_footprint(situation: Any) -> None:
    check_search(situation)


@pytest.mark.slow
@settings(max_examples=10_000)
@given(situations())
def test_the_same_on_many_machines(situation: Any) -> None:
    check_search(situation)


@st.composite
def crowded(draw: st.DrawFn) -> tuple[DirectMachine, Pod]:
    """Empty machines and pods with more containers than the search can go through."""
    on = machine(draw(st.integers(3, 5)), draw(st.integers(2, 4)), memory=8 * GIB)
    init = [made.container(f"i{place}", cpu=draw(st.integers(1, 4))) for place in range(draw(st.integers(1, 3)))]
    apps = [made.container(f"a{place}", cpu=draw(st.integers(1, 4))) for place in range(draw(st.integers(3, 6)))]
    policy = draw(st.sampled_from(["BestEffort", "Restricted", "SingleNUMANode"]))
    return on, machines.with_spec(made.pod("p", *apps, init=init), f'{{"policy": "{policy}"}}')


@settings(max_examples=60, deadline=None)
@given(crowded())
def test_a_pod_keeps_no_more_than_its_containers_ask_for_together(situation: tuple[DirectMachine, Pod]) -> None:
    on, of = situation
    asked, found = ask(of, on), assigned(of, on)
    if isinstance(found, Assignment):
        cpus, _, memory, _ = scope.footprint(on.empty, found.after)
        assert cpus <= 1000 * sum(each.cpus for each in asked.containers)
        assert memory <= sum(sum(each.memory) for each in asked.containers)
        assert cpus >= 1000 * sum(each.cpus for each in asked.containers if each.role is Role.APP)


def lasting(asked: PodAsk, found: Assignment) -> Sequence[tuple[Any, Any]]:
    pairs = zip(asked.containers, found.grants, strict=True)
    return [(each, grant) for each, grant in pairs if each.role is not Role.INIT]


@given(situations())
def test_a_container_gets_what_it_asks_for_inside_its_zones_and_nobody_elses(situation: Any) -> None:
    on, free, of = situation
    asked, found = ask(of, on), assigned(of, on, free)
    if isinstance(found, Unplaced):
        return
    for each, grant in zip(asked.containers, found.grants, strict=True):
        assert grant.cpus.bit_count() == each.cpus
        assert not grant.cpus & ~free.cpus
        assert not grant.cpus & ~on.of_mask[grant.zones]
        assert sum(grant.shared) == each.milli
        assert [sum(amounts) for amounts in grant.memory] == list(each.memory)
    held = 0
    for _, grant in lasting(asked, found):
        assert not held & grant.cpus
        held |= grant.cpus
    assert found.after.cpus & free.cpus == found.after.cpus
    assert all(left >= 0 for amounts in found.after.memory for left in amounts)
    for place in range(len(on.zones)):
        # What is not anybody's own is the shared pool, and it is as large as its containers need.
        assert found.after.poolable(on, place) >= 0 or found.after.shared[place] == free.shared[place]
