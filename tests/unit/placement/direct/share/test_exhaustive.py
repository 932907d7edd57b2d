"""Properties of shared devices: no part is held twice, and a place is found whenever exhaustive search finds one."""

from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numalign.api.attributes.devicetable import Device
from numalign.placement.columns.directmachine import DirectMachine, FreeState
from numalign.placement.direct.scope import Assignment
from numalign.placement.direct.share import amounts, choosing
from numalign.placement.direct.share.asks import ShareAsk, TypeAsk
from tests.unit.placement.direct import devices
from tests.unit.placement.direct.devices import CORE, GPU, JOINT, RATIO, RDMA, SAME_PCIE
from tests.unit.placement.direct.machines import ask, assigned, machine


@st.composite
def machines(draw: st.DrawFn) -> DirectMachine:
    """Up to six GPUs and four NICs, on up to four roots in up to two zones; some roots are unknown."""
    roots = draw(st.lists(st.integers(-1, 1), min_size=1, max_size=4))
    places = st.integers(0, len(roots) - 1)
    found: list[Device] = []
    for minor in range(draw(st.integers(1, 6))):
        at = draw(places)
        found.append(devices.gpu(minor, roots[at], f"r{at}" if draw(st.integers(0, 9)) else ""))
    for minor in range(draw(st.integers(0, 4))):
        at = draw(places)
        found.append(devices.nic(minor, roots[at], f"r{at}", functions=draw(st.integers(0, 2))))
    return machine(2, 8, table=devices.table(*found))


REQUESTS = [{GPU: 100}, {GPU: 200}, {GPU: 300}, {CORE: 50, RATIO: 50}, {RATIO: 30}, {RDMA: 50}, {RDMA: 200}, {}]
HINTS = [
    "",
    SAME_PCIE,
    SAME_PCIE,
    JOINT,
    '{"types": {"gpu": {"within": "PCIe"}}}',
    '{"types": {"rdma": {"functions": {}}}}',
]


@st.composite
def pods(draw: st.DrawFn) -> Any:
    policy = draw(st.sampled_from(["None", "BestEffort", "Restricted", "SingleNUMANode"]))
    spec = f'{{"policy": "{policy}", "strategy": "{draw(st.sampled_from(["MostAllocated", "LeastAllocated"]))}"}}'

    def container(name: str, **more: Any) -> Any:
        amounts = {**draw(st.sampled_from([*REQUESTS[:5], {}])), **draw(st.sampled_from(REQUESTS[5:]))}
        return devices.container(name, amounts, **more)

    init = [container("i", sidecar=draw(st.booleans())) for _ in range(draw(st.integers(0, 1)))]
    apps = [container(f"a{at}") for at in range(draw(st.integers(1, 2)))]
    return devices.pod(*apps, init=init, spec=spec, devices=draw(st.sampled_from(HINTS)))


def exists(on: DirectMachine, free: FreeState, asked: ShareAsk, mask: int) -> bool:
    """Whether some choice of devices is allowed, by trying all of them."""

    def fits(each: TypeAsk, at: int) -> bool:
        unit = on.stock.units[at]
        open_functions = each.functions_of(unit) & free.shares.functions[at]
        return (
            (unit.position < 0 or bool(mask >> unit.position & 1))
            and unit.parts > 0
            and free.shares.parts[at] >= each.parts
            and free.shares.memory[at] >= each.memory_of(unit)
            and (each.functions is None or open_functions > 0)
        )

    def sets(number: int, each: TypeAsk) -> list[tuple[int, ...]]:
        usable = [at for at in each.eligible if fits(each, at)]
        # On the same roots the secondary type may have to give more than was asked for.
        more = len(usable) if asked.same_pcie and 0 < number < asked.joint else each.count
        sizes = range(each.count, max(more, each.count) + 1)
        found = [some for size in sizes for some in combinations(usable, size)]
        return [some for some in found if each.within != "PCIe" or len({on.stock.units[at].root for at in some}) == 1]

    def allowed(choice: tuple[tuple[int, ...], ...]) -> bool:
        if not asked.same_pcie or not asked.joint:
            return True
        units = [[on.stock.units[at] for at in some] for some in choice[: asked.joint]]
        roots = [{unit.root for unit in each} for each in units]
        return all(own == roots[0] for own in roots) and all(unit.knows_root for each in units for unit in each)

    return any(map(allowed, product(*(sets(number, each) for number, each in enumerate(asked.types)))))


def check(on: DirectMachine, before: list[Any], of: Any) -> None:
    free = on.empty
    for each in before:
        found = assigned(each, on, free)
        free = found.after if isinstance(found, Assignment) else free
    for each in ask(of, on).containers:
        if each.shares is None:
            continue
        for mask in range(1, on.every_zone + 1):
            taken = choosing.allocate(on.stock, free.shares, on.stock.nothing, each.shares, mask, fill=True)
            assert (taken is not None) is exists(on, free, each.shares, mask)


@settings(max_examples=150, deadline=None)
@given(machines(), st.lists(pods(), max_size=2), pods())
def test_devices_are_found_whenever_there_are_any(on: DirectMachine, before: list[Any], of: Any) -> None:
    check(on, before, of)


@pytest.mark.slow
@settings(max_examples=10_000, deadline=None)
@given(machines(), st.lists(pods(), max_size=2), pods())
def test_the_same_on_many_machines(on: DirectMachine, before: list[Any], of: Any) -> None:
    check(on, before, of)


@settings(max_examples=150, deadline=None)
@given(machines(), st.lists(pods(), min_size=1, max_size=6))
def test_no_part_of_a_device_is_held_twice(on: DirectMachine, every: list[Any]) -> None:
    free, whole = on.empty, on.stock.whole
    for of in every:
        found = assigned(of, on, free)
        if not isinstance(found, Assignment):
            continue
        kept = amounts.less(free.shares, found.after.shares)
        # What stays with containers that run at the same time fits into what the pod keeps.
        running = on.stock.nothing
        for each, grant in zip(ask(of, on).containers, found.grants, strict=True):
            if not grant.shares.parts:
                continue
            assert not amounts.exceeds(grant.shares, free.shares, on.stock)
            if each.role.name != "INIT":
                assert not any(own & more for own, more in zip(running.functions, grant.shares.functions, strict=True))
                running = amounts.added(running, grant.shares)
        assert all(own <= held for own, held in zip(running.parts, kept.parts, strict=True))
        assert all(own <= held for own, held in zip(running.memory, kept.memory, strict=True))
        free = found.after
        assert all(0 <= left <= own for left, own in zip(free.shares.parts, whole.parts, strict=True))
        assert all(0 <= left <= own for left, own in zip(free.shares.memory, whole.memory, strict=True))


@settings(max_examples=150, deadline=None)
@given(machines(), pods())
def test_what_is_written_is_what_is_read(on: DirectMachine, of: Any) -> None:
    found = assigned(of, on)
    if isinstance(found, Assignment):
        kept = amounts.less(on.empty.shares, found.after.shares)
        assert amounts.taken(on.stock, amounts.held(amounts.grants(on.stock, kept))) == kept
