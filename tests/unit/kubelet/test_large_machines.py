"""Machines with more zones than anybody lists: answers without enumerating, or none, with how much it would take.

The kubelet itself goes through 2^zones masks per resource and every combination of them."""

from typing import Any

import pytest

from numalign.api.decode import cpuset
from numalign.api.objects.pod import Container, Pod, ResourceRequirements
from numalign.kubelet.machine import presets
from numalign.kubelet.machine.machine import Machine
from numalign.kubelet.machine.presets import GIB, GPU
from numalign.kubelet.refusals import StartRefusal
from numalign.kubelet.settings import MemoryReservation
from numalign.kubelet.topologymanager import mask as masks
from numalign.kubelet.topologymanager import policies
from numalign.kubelet.topologymanager.hints import BUDGET, Hint, HintList, Room, Supply
from numalign.kubelet.topologymanager.merge import Rules
from tests.nodes import Node, amounts, machine, pod, simple

# Two CPUs of 72 cores and 480 GiB with two GPUs each, and 32 zones of GPU memory, four of which have 186 GiB.
SUPERCHIP = presets.machine("superchip-34")
TWENTY = machine(zones=20, cores=4, memory=8)


def node(hardware: Machine, policy: str, scope: str = "container", **more: Any) -> Node:
    """A GiB is reserved in zones 0 and 1, and the number of zones is allowed."""
    reserved = tuple(MemoryReservation(zone, {"memory": GIB}) for zone in (0, 1))
    given = {
        "topology_options": {"max-allowable-numa-nodes": "34"},
        "reserved_memory": reserved,
        "reserved": {"cpu": 1000, "memory": 2 * GIB},
    }
    return Node(hardware, policy, scope, **given | more)


def wants(cpu: int, memory: str, gpus: int = 0) -> Pod:
    limits = amounts({"cpu": cpu, "memory": memory, GPU: gpus})
    return pod("p", Container(name="app", resources=ResourceRequirements(limits, limits)))


def test_a_kubelet_does_not_start_on_them_by_default() -> None:
    with pytest.raises(StartRefusal, match="unsupported on machines with more than 8 NUMA Nodes"):
        node(SUPERCHIP, "restricted", topology_options={})


# A pod by CPUs, memory and GPUs; then the zones of its hint and of its memory, None where it is refused.
Zones = tuple[int, ...]
SUPERCHIP_CASES: dict[str, tuple[str, Pod, Zones | None, Zones | None]] = {
    "one zone has it all": ("single-numa-node", wants(4, "8Gi", 1), (0,), (0,)),
    "no zone has three GPUs": ("single-numa-node", wants(4, "8Gi", 3), None, None),
    "no zone has so many CPUs": ("single-numa-node", wants(80, "8Gi"), None, None),
    "one zone for all under restricted": ("restricted", wants(4, "8Gi", 1), (0,), (0,)),
    "two zones for all": ("restricted", wants(100, "700Gi", 4), (0, 1), (0, 1)),
    "CPUs want one zone, GPUs two": ("restricted", wants(4, "8Gi", 3), None, None),
    "CPUs want one zone, memory two": ("restricted", wants(4, "700Gi"), None, None),
    "best-effort takes both zones for the GPUs": ("best-effort", wants(4, "8Gi", 3), (0, 1), (0, 1)),
    "memory reaches beyond the zones of the CPUs": ("best-effort", wants(4, "1200Gi"), (0, 1), (0, 1, 2, 10)),
    "memory of the whole machine": ("best-effort", wants(4, "1600Gi"), (0, 1), (0, 1, 2, 10, 18, 26)),
}


@pytest.mark.parametrize("scope", ["container", "pod"])
@pytest.mark.parametrize("policy, asked, hint, memory", SUPERCHIP_CASES.values(), ids=SUPERCHIP_CASES)
def test_where_a_pod_goes_on_34_zones(
    policy: str, asked: Pod, hint: Zones | None, memory: Zones | None, scope: str
) -> None:
    outcome = node(SUPERCHIP, policy, scope).admit(asked)
    assert outcome.admitted == (hint is not None)
    placed = [(each.affinity.mask or 0, block.zones) for each in outcome.placement.values() for block in each.memory]
    assert [tuple(map(masks.members, pair)) for pair in placed] == ([] if hint is None else [(hint, memory)])


def test_without_a_policy_memory_still_looks_for_its_place() -> None:
    placed = node(SUPERCHIP, "none").placed(wants(4, "1200Gi"))
    assert [masks.members(block.zones) for block in placed["app"].memory] == [(0, 1, 2, 10)]


@pytest.mark.parametrize("policy", ["none", "best-effort", "restricted", "single-numa-node"])
def test_the_kubelet_would_be_slow(policy: str) -> None:
    outcome = node(SUPERCHIP, policy).admit(wants(4, "8Gi", 1))
    assert outcome.slow
    assert outcome.steps >= 2**34 - 1


def test_few_masks_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = 0
    suits = Room.suits

    def counting(room: Room, mask: int) -> bool:
        nonlocal looked_at
        looked_at += 1
        return suits(room, mask)

    monkeypatch.setattr(Room, "suits", counting)
    for policy, asked, _, _ in SUPERCHIP_CASES.values():
        node(SUPERCHIP, policy).admit(asked)
    assert 0 < looked_at < BUDGET


def test_pods_fill_up_the_zones_one_after_the_other() -> None:
    full = node(SUPERCHIP, "single-numa-node")
    placed = [full.placed(simple(str(number), 60, "100Gi"))["app"].affinity.mask for number in range(2)]
    assert placed == [0b01, 0b10]
    assert full.admit(simple("last", 60, "100Gi")).reason == "TopologyAffinityError"


def test_memory_groups_are_kept_apart() -> None:
    grouped = node(SUPERCHIP, "none")
    zones = [
        grouped.placed(simple(uid, 1, size))["app"].memory[0].zones for uid, size in (("a", "700Gi"), ("b", "180Gi"))
    ]
    assert [masks.members(mask) for mask in zones] == [(0, 1), (2,)]


# Twenty zones of four CPUs: 184,756 ways to choose ten of them.


def test_one_two_or_all_zones_are_decided_on_twenty() -> None:
    wide = node(TWENTY, "restricted", memory_policy="None")
    assert cpuset.text(wide.placed(simple("one", 4, "1Gi"))["app"].cpus or 0) == "4-7"
    assert cpuset.text(wide.placed(simple("two", 8, "1Gi"))["app"].cpus or 0) == "8-15"


UNDECIDED = {
    "hints": ({"policy": "restricted"}, "the kubelet would merge every set of zones (about 1e+06 steps)"),
    "memory": (
        {"policy": "none", "cpu_policy": "none", "memory_policy": "Static"},
        "the kubelet would enumerate every set of zones (about 1e+06 steps)",
    ),
    "shares": (
        {"policy": "none", "cpu_options": {"distribute-cpus-across-numa": "true"}},
        "the kubelet would try every combination of zones and every share of the remainder",
    ),
}


@pytest.mark.parametrize("chosen, text", UNDECIDED.values(), ids=UNDECIDED)
def test_what_takes_too_long_is_left_undecided_with_a_count(chosen: dict[str, Any], text: str) -> None:
    wide = node(TWENTY, **{"memory_policy": "None"} | chosen)
    before = wide.state
    outcome = wide.admit(simple("ten", 40, "79Gi"))
    assert (outcome.verdict, outcome.placement) == ("undecided", {})
    assert outcome.message.startswith(text)
    assert wide.state == before


@pytest.mark.parametrize("count", [16, 17])
def test_a_resource_that_fits_nowhere_does_not_widen_what_others_settle_on(count: int) -> None:
    """Kubelet spec 3.1: an empty list is (nil, false), which restricts no zone."""
    zones = tuple(range(count))
    nowhere = Room(zones, (Supply(5, {1 << zone: 2 for zone in zones}, {}),)).hints()
    three = HintList((1 << 3,), frozenset({1 << 3}))
    assert policies.merge([{"nic": nowhere}, {"memory": three}], Rules("best-effort", zones)).best == Hint(
        1 << 3, False
    )
