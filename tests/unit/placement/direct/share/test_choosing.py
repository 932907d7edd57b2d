"""Which devices a container gets: near each other, near those of other types, and no more than there are."""

from typing import Any

import pytest

from numalign.api.attributes.devicetable import Partition
from numalign.placement.columns.directmachine import DirectMachine, FreeState
from numalign.placement.direct import taking
from numalign.placement.direct.scope import Assignment, Unplaced
from tests.unit.placement.direct import devices
from tests.unit.placement.direct.devices import CORE, FPGA, GIB, GPU, JOINT, MEMORY, RATIO, RDMA, SAME_PCIE, SHARED
from tests.unit.placement.direct.machines import assigned, machine, zones

ANY = '{"policy": "None"}'
PAIRS = tuple(Partition((first, first + 1), 1) for first in (0, 2, 4, 6))


def dgx(*more: Any, **table: Any) -> DirectMachine:
    return machine(table=devices.table(*more, **table))


def placed(on: DirectMachine, *pods: Any) -> tuple[Assignment, FreeState]:
    """The last of these pods, one after the other, and what was free before it."""
    *others, last = pods
    free = on.empty
    for each in others:
        found = assigned(each, on, free)
        assert isinstance(found, Assignment), each
        free = found.after
    found = assigned(last, on, free)
    assert isinstance(found, Assignment), last
    return found, free


def gpus(on: DirectMachine, *pods: Any) -> list[list[int]]:
    """By container of the last pod, the minors of its GPUs."""
    return [devices.minors(on, grant) for grant in placed(on, *pods)[0].grants]


def test_a_gpu_comes_from_the_zone_of_the_container() -> None:
    on = dgx()
    found, _ = placed(on, devices.pod({GPU: 100}, {GPU: 400}))
    assert zones(found, on) == [(0,), (1,)]
    assert [devices.minors(on, grant) for grant in found.grants] == [[0], [4, 5, 6, 7]]


def test_fractions_share_a_gpu_until_it_is_used_up() -> None:
    on, half, rest = dgx(), devices.pod({CORE: 50, RATIO: 50}), devices.pod({CORE: 30, RATIO: 40})
    assert gpus(on, half) == [[0]]
    assert gpus(on, half, rest) == [[0]]
    assert gpus(on, half, rest, rest) == [[1]]
    found, _ = placed(on, half)
    assert devices.granted(on, found.grants[0])[0].resources == {CORE: "50", RATIO: "50", MEMORY: "40Gi"}


def test_a_fraction_leaves_whole_gpus_alone_and_they_leave_it() -> None:
    on, half = dgx(devices.gpu(0, 0, "r0"), devices.gpu(1, 0, "r0")), devices.pod({CORE: 50, RATIO: 50})
    assert gpus(on, half, devices.pod({GPU: 100})) == [[1]]
    assert gpus(on, devices.pod({GPU: 100}), half) == [[1]]
    assert isinstance(assigned(devices.pod({GPU: 200}), on, placed(on, half)[0].after), Unplaced)


def test_the_emptiest_gpu_comes_first_where_the_pod_spreads() -> None:
    on, spec = dgx(), '{"policy": "SingleNUMANode", "strategy": "LeastAllocated"}'
    first = devices.pod({CORE: 20, RATIO: 20}, spec=spec)
    assert gpus(on, first, first) != gpus(on, first)


def test_memory_may_be_asked_for_in_bytes() -> None:
    on = dgx(devices.gpu(0, 0, "r0"))
    asked = devices.pod({MEMORY: "50Gi"})
    found, _ = placed(on, asked)
    assert found.after.shares.memory[0] == 30 * GIB
    assert isinstance(assigned(asked, on, found.after), Unplaced)


def test_a_ratio_of_a_gpu_without_a_size_is_counted_in_hundredths() -> None:
    on = dgx(devices.gpu(0, 0, "r0", memory=0))
    asked = devices.pod({RATIO: 60})
    found, _ = placed(on, asked)
    assert devices.granted(on, found.grants[0])[0].resources == {RATIO: "60"}
    assert isinstance(assigned(asked, on, found.after), Unplaced)


def test_several_shared_gpus_get_equal_parts() -> None:
    on = dgx()
    found, _ = placed(on, devices.pod({SHARED: 2, CORE: 100, RATIO: 80}))
    (grant,) = found.grants
    assert [each.resources for each in devices.granted(on, grant)] == [{CORE: "50", RATIO: "40", MEMORY: "32Gi"}] * 2


def test_an_unhealthy_device_is_not_handed_out() -> None:
    on = dgx(devices.gpu(0, 0, "r0", parts=0, memory=0), devices.gpu(1, 0, "r0"))
    assert gpus(on, devices.pod({RATIO: 10})) == [[1]]


def test_gpus_are_on_one_root_if_possible_else_in_one_zone() -> None:
    on = dgx()
    assert gpus(on, devices.pod({GPU: 200}, spec=ANY)) == [[0, 1]]
    # GPU 0 is in use, so the next pair on one root is 2 and 3.
    assert gpus(on, devices.pod({GPU: 100}), devices.pod({GPU: 200}, spec=ANY)) == [[2, 3]]
    assert gpus(on, devices.pod({GPU: 300}, spec=ANY)) == [[0, 1, 2]]
    assert gpus(on, devices.pod({GPU: 100}), devices.pod({GPU: 400}, spec=ANY)) == [[4, 5, 6, 7]]
    assert len(gpus(on, devices.pod({GPU: 800}, spec=ANY))[0]) == 8


def test_one_gpu_comes_from_the_root_that_is_in_use_already() -> None:
    on = dgx()
    assert gpus(on, devices.pod({GPU: 100}), devices.pod({GPU: 100})) == [[1]]


@pytest.mark.parametrize(
    "within, count, fits",
    [
        ("PCIe", 2, True),
        ("PCIe", 3, False),
        ("NUMANode", 4, True),
        ("NUMANode", 5, False),
        ("Node", 8, True),
        ("Device", 1, True),
    ],
)
def test_a_required_scope_is_kept(within: str, count: int, fits: bool) -> None:
    asked = devices.pod({GPU: count * 100}, spec=ANY, devices=f'{{"types": {{"gpu": {{"within": "{within}"}}}}}}')
    found = assigned(asked, dgx())
    assert isinstance(found, Assignment) is fits
    if isinstance(found, Unplaced):
        assert found.is_connected


def test_gpu_and_nic_are_on_the_same_root() -> None:
    on = dgx()
    asked = devices.pod({GPU: 100, RDMA: 50}, devices=SAME_PCIE)
    found, _ = placed(on, devices.pod({GPU: 300}), asked)
    (grant,) = found.grants
    assert (devices.minors(on, grant), devices.minors(on, grant, "rdma")) == ([3], [1])


def test_where_no_root_has_both_the_pod_waits() -> None:
    on = dgx(devices.gpu(0, 0, "a"), devices.nic(0, 0, "b"))
    asked = devices.pod({GPU: 100, RDMA: 100}, devices=SAME_PCIE)
    refused = assigned(asked, on)
    assert isinstance(refused, Unplaced)
    assert refused.is_connected
    # Without the requirement the zone is enough.
    assert isinstance(assigned(devices.pod({GPU: 100, RDMA: 100}, devices=JOINT), on), Assignment)


def test_each_root_of_several_gpus_gives_a_nic() -> None:
    on = dgx()
    found, _ = placed(on, devices.pod({GPU: 400, RDMA: 100}, devices=SAME_PCIE))
    assert devices.minors(on, found.grants[0], "rdma") == [0, 1]


def test_the_gpu_gives_way_to_the_nic_that_is_left() -> None:
    on = dgx()
    busy = devices.pod({RDMA: 300}, spec=ANY)
    found, before = placed(on, busy, devices.pod({GPU: 100, RDMA: 100}, devices=SAME_PCIE))
    root = next(at for at, unit in enumerate(on.stock.units) if unit.kind == "rdma" and before.shares.parts[at])
    assert [on.stock.units[root].minor] == devices.minors(on, found.grants[0], "rdma")
    assert devices.minors(on, found.grants[0])[0] // 2 == on.stock.units[root].minor


def test_without_a_scope_devices_are_as_near_as_they_can_be() -> None:
    on = dgx(devices.gpu(0, 0, "a"), devices.gpu(1, 1, "b"), devices.nic(0, 1, "c"))
    found, _ = placed(on, devices.pod({GPU: 100, RDMA: 1}, spec=ANY, devices=JOINT))
    assert devices.minors(on, found.grants[0]) == [1]


def test_an_unknown_root_is_no_common_root() -> None:
    on = dgx(devices.gpu(0, 0, ""), devices.nic(0, 0, ""))
    assert isinstance(assigned(devices.pod({GPU: 100, RDMA: 1}, devices=SAME_PCIE), on), Unplaced)


def test_a_device_without_a_zone_goes_with_any_zone_after_all_others() -> None:
    on = dgx(devices.gpu(0, -1, "a"), devices.gpu(1, 1, "b"))
    assert gpus(on, devices.pod({GPU: 100})) == [[0]]
    both = machine(1, table=devices.table(devices.gpu(0, -1, "a"), devices.gpu(1, 0, "b")))
    assert gpus(both, devices.pod({GPU: 100})) == [[1]]


def test_virtual_functions_are_handed_out_once() -> None:
    on = dgx(devices.nic(0, 0, "a", functions=2))
    asked = devices.pod({RDMA: 1}, devices='{"types": {"rdma": {"functions": {}}}}')
    buses = []
    free = on.empty
    for _ in range(2):
        found = assigned(asked, on, free)
        assert isinstance(found, Assignment)
        buses += [each.bus for each in devices.granted(on, found.grants[0], "rdma")[0].extension.vfs]
        free = found.after
    assert buses == ["0000:00:00.0", "0000:00:00.1"]
    assert isinstance(assigned(asked, on, free), Unplaced)
    # A part without a function of its own is still there.
    assert isinstance(assigned(devices.pod({RDMA: 1}), on, free), Assignment)


def test_selectors_choose_devices_by_label() -> None:
    on = dgx(devices.nic(0, 0, "a"), devices.nic(1, 0, "b", labels=(("net", "storage"),)))
    hint = '{"types": {"rdma": {"selector": {"matchLabels": {"net": "storage"}}}}}'
    found, _ = placed(on, devices.pod({RDMA: 1}, devices=hint))
    assert devices.minors(on, found.grants[0], "rdma") == [1]


def test_a_count_may_be_left_to_the_machine() -> None:
    on = dgx(devices.nic(0, 0, "a"), devices.nic(1, 0, "b"), devices.nic(2, 0, "c"))

    def nics(amount: int, hint: str) -> dict[int, str]:
        found, _ = placed(on, devices.pod({RDMA: amount}, devices=f'{{"types": {{"rdma": {hint}}}}}'))
        return {each.minor: each.resources[RDMA] for each in devices.granted(on, found.grants[0], "rdma")}

    assert nics(10, '{"counting": "ApplyForAll"}') == {0: "10", 1: "10", 2: "10"}
    assert nics(2, '{"counting": "RequestsAsCount"}') == {0: "1", 1: "1"}
    assert nics(2, '{"counting": "RequestsAsCount", "exclusive": "DeviceLevel"}') == {0: "100", 1: "100"}


def test_a_pod_may_want_roots_without_others() -> None:
    on = dgx()
    alone = devices.pod({CORE: 10, RATIO: 10}, devices='{"types": {"gpu": {"exclusive": "PCIeLevel"}}}')
    assert gpus(on, devices.pod({CORE: 10, RATIO: 10}), alone) == [[2]]


def test_partitions_of_linked_gpus_come_first() -> None:
    on = dgx(partitions=(*PAIRS, Partition((1, 2), 5)))
    assert gpus(on, devices.pod({GPU: 200}, spec=ANY)) == [[1, 2]]
    single = devices.pod({GPU: 100})
    assert gpus(on, single, single, devices.pod({GPU: 200}, spec=ANY)) == [[2, 3]]


def test_of_equal_partitions_the_one_that_leaves_most_is_taken() -> None:
    quads = (Partition((0, 1, 2, 3), 1), Partition((4, 5, 6, 7), 1))
    on = dgx(partitions=(*PAIRS, *quads, *(Partition((each,), 1) for each in range(8))))
    assert gpus(on, devices.pod({GPU: 200}, spec=ANY), devices.pod({GPU: 200}, spec=ANY)) == [[2, 3]]


def test_only_a_partition_will_do_where_pod_or_node_say_so() -> None:
    restricted = '{"partition": {"policy": "Restricted", "bandwidth": "200Gi"}}'
    fast = Partition((0, 1), 2, 400 * GIB)
    on = dgx(partitions=(*PAIRS, fast))
    asked = devices.pod({GPU: 200}, spec=ANY, devices=restricted)
    found, _ = placed(on, asked)
    assert devices.minors(on, found.grants[0]) == [0, 1]
    assert isinstance(assigned(asked, on, found.after), Unplaced)
    honored = dgx(partitions=PAIRS, only_partitions=True)
    assert isinstance(assigned(devices.pod({GPU: 300}, spec=ANY), honored), Unplaced)
    assert isinstance(assigned(devices.pod({GPU: 300}, spec=ANY), dgx(partitions=PAIRS)), Assignment)
    # All of the memory is a whole GPU, too.
    assert isinstance(assigned(devices.pod({RATIO: 300}, spec=ANY), honored), Unplaced)


def test_an_init_container_hands_its_devices_on() -> None:
    on = dgx()
    init = [devices.container("i", {GPU: 200})]
    found, _ = placed(on, devices.pod({CORE: 50, RATIO: 50}, {GPU: 100}, init=init))
    first, half, whole = (devices.minors(on, grant) for grant in found.grants)
    assert first == [0, 1]
    assert sorted(half + whole) == [0, 1]
    assert sum(on.empty.shares.parts) - sum(found.after.shares.parts) == 200


def test_a_vendors_name_means_whole_gpus_where_no_plugin_hands_them_out() -> None:
    on = dgx()
    assert gpus(on, devices.pod({"nvidia.com/gpu": 2})) == [[0, 1]]
    plugin = machine(devices=[("nvidia.com/gpu", (0b11, 0), 0)], table=devices.table())
    found, _ = placed(plugin, devices.pod({"nvidia.com/gpu": 2}))
    assert found.grants[0].devices == (0b11,)
    assert not found.grants[0].shares.parts


def test_a_machine_without_such_devices_refuses_the_pod() -> None:
    refused = assigned(devices.pod({FPGA: 100}), machine())
    assert refused == Unplaced(0, 1)
    assert taking.NO_GRANT.shares.parts == ()
