"""What a node reports is what the engine reads, number by number, for any node whatever happened on it."""

from collections.abc import Mapping

from numalign.kubelet import admission
from numalign.kubelet.machine.machine import Device
from numalign.kubelet.report import zonetable
from numalign.kubelet.report.zonetable import Cell
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState
from numalign.kubelet.topologymanager import mask as masks
from numalign.placement.columns.nodefacts import Assumption, RowFacts
from numalign.placement.reports import read as ingest
from tests.campaigns import holds_for
from tests.strategies import reports
from tests.strategies.lives import Life

EMPTY = Cell(0, 0)
MEMORY = ("memory", "hugepages-2Mi", "hugepages-1Gi")


def read(life: Life) -> tuple[Kubelet, KubeletState, RowFacts]:
    facts = ingest.read(reports.ours(life.kubelet, life.end), None)
    return life.kubelet, admission.collect(life.kubelet, life.end), facts


def by_zone(kubelet: Kubelet, row: Mapping[int, Cell], what: str) -> tuple[int, ...]:
    return tuple(getattr(row.get(1 << zone, EMPTY), what) for zone in kubelet.machine.zone_ids)


def known(kubelet: Kubelet, device: Device) -> int:
    """The zones of a device that the machine has."""
    return masks.of(device.zones or ()) & kubelet.machine.all_zones


@holds_for(reports.reported_lives(), examples=25)
def test_our_own_reports_leave_nothing_open(life: Life) -> None:
    kubelet, _, facts = read(life)
    # Of a kubelet that would end with a panic, it is the kubelet that something is supposed of.
    assert facts.assumptions <= {Assumption.CLOSEST_DESPITE_GAPS}
    assert facts.supplies.keys() - facts.from_checkpoints == (set() if kubelet.cpu else {"cpu"})


@holds_for(reports.reported_lives(), examples=25)
def test_cpus_and_memory_are_those_of_the_managers(life: Life) -> None:
    kubelet, state, facts = read(life)
    rows = zonetable.of(kubelet, state).rows
    for resource in {"cpu", *MEMORY} & rows.keys():
        supply = facts.supplies[resource]
        assert supply.free == by_zone(kubelet, rows[resource], "free")
        assert supply.allocatable == by_zone(kubelet, rows[resource], "allocatable")


@holds_for(reports.reported_lives(), examples=25)
def test_sizes_are_those_that_preference_counts(life: Life) -> None:
    kubelet, _, facts = read(life)
    zones = kubelet.machine.zones
    assert facts.supplies["cpu"].size == tuple(sum(len(core.cpus) for core in zone.cores) for zone in zones)
    for kind in kubelet.machine.memory_types if kubelet.memory else ():
        assert kubelet.memory
        allocatable = kubelet.memory.allocatable
        assert facts.supplies[kind].size == tuple(allocatable[zone.id].get(kind, 0) for zone in zones)


@holds_for(reports.reported_lives(), examples=25)
def test_every_device_is_counted_once(life: Life) -> None:
    kubelet, state, facts = read(life)
    for resource, inventory in kubelet.devices.inventories.items():
        supply, wide = facts.supplies[resource], [each for each in facts.classes if each.resource == resource]
        free = inventory.healthy - state.devices.in_use(resource)
        assert sum(supply.size) + supply.homeless_size + sum(each.size for each in wide) == len(inventory.by_id)
        assert sum(supply.free) + supply.homeless + sum(each.free for each in wide) == len(free)


@holds_for(reports.reported_lives(), examples=25)
def test_devices_are_where_they_can_be_reached(life: Life) -> None:
    kubelet, state, facts = read(life)
    for resource, inventory in kubelet.devices.inventories.items():
        supply, wide = facts.supplies[resource], [each for each in facts.classes if each.resource == resource]
        free = [inventory.by_id[each] for each in inventory.healthy - state.devices.in_use(resource)]
        for position, zone in enumerate(kubelet.machine.zone_ids):
            reached = [device for device in free if known(kubelet, device) >> zone & 1]
            here = supply.free[position] + sum(each.free for each in wide if each.zones >> position & 1)
            assert here == len(reached)


@holds_for(reports.reported_lives(), examples=25)
def test_cores_are_counted_by_their_free_threads(life: Life) -> None:
    kubelet, state, facts = read(life)
    if kubelet.cpu and state.cpu:
        free = kubelet.cpu.available(state.cpu)
        physical = state.cpu.default & ~kubelet.cpu.reserved_cores
        assert facts.cores is not None
        counted = [sum(count * (place + 1) for place, count in enumerate(zone)) for zone in facts.cores]
        assert tuple(counted) == facts.supplies["cpu"].free
        assert sum(map(sum, facts.cores)) == sum(1 for core in kubelet.cpu.topology.cores.values() if core & free)
        assert facts.free_full_core_cpus == physical.bit_count()


@holds_for(reports.reported_lives(), examples=25)
def test_groups_are_those_of_the_memory_manager(life: Life) -> None:
    kubelet, state, facts = read(life)
    if state.memory:
        assert facts.groups
        zones = [state.memory.zones[zone] for zone in kubelet.machine.zone_ids]
        assert [facts.rules.real(cells) for cells in facts.groups.cells] == [masks.members(z.cells) for z in zones]
        assert facts.groups.busy == masks.of(place for place, zone in enumerate(zones) if zone.assignments)


@holds_for(reports.reported_lives(), examples=25)
def test_rules_are_the_settings(life: Life) -> None:
    kubelet, _, facts = read(life)
    rules, settings = facts.rules, kubelet.settings
    assert (rules.policy, rules.scope) == (settings.topology_policy, settings.topology_scope)
    assert (rules.static_cpus, rules.static_memory) == (kubelet.cpu is not None, kubelet.memory is not None)
    assert (rules.zones, rules.minor, rules.reading) == (kubelet.machine.zone_ids, settings.minor, kubelet.reading)
    assert rules.cpu_options == {name for name, text in settings.cpu_options.items() if text == "true"}
    assert (rules.distances is None) == (kubelet.rules.distances is None)


@holds_for(reports.reported_lives(), examples=25)
def test_distances_order_masks_as_the_kubelet_does(life: Life) -> None:
    kubelet, _, facts = read(life)
    if facts.rules.distances is not None and kubelet.rules.distances is not None:
        zones = kubelet.machine.zone_ids
        assert facts.rules.distances == tuple(tuple(kubelet.rules.distances[a][b] for b in zones) for a in zones)


@holds_for(reports.reported_lives(), examples=25)
def test_every_pod_that_holds_something_is_listed(life: Life) -> None:
    _, state, facts = read(life)
    holders = {*state.devices.pods, *(state.cpu.assignments if state.cpu else ())}
    holders |= {*(state.memory.blocks if state.memory else ())}
    assert facts.placements is not None
    assert {pod.name for pod in facts.placements} == {uid for uid in holders if _holds(state, uid)}


def _holds(state: KubeletState, uid: str) -> bool:
    cpus = state.cpu is not None and any(state.cpu.assignments.get(uid, {}).values())
    memory = state.memory is not None and any(state.memory.blocks.get(uid, {}).values())
    return uid in state.active and (cpus or memory or any(state.devices.pods.get(uid, {}).values()))


@holds_for(reports.reported_lives(), examples=25)
def test_plain_reports_say_what_they_leave_open(life: Life) -> None:
    """And promise nothing that the node does not have: free is what it is, but for what init containers hide."""
    for publisher in ("rte", "nfd"):
        facts = ingest.read(reports.plain(life.kubelet, life.end, publisher), reports.node(life.kubelet))
        assert facts.assumptions >= {Assumption.PLACEMENTS_UNKNOWN, Assumption.CPU_POLICY_FROM_AMOUNTS}
        assert facts.rules.minor == life.kubelet.settings.minor
        assert all(
            0 <= a <= b for each in facts.supplies.values() for a, b in zip(each.free, each.allocatable, strict=True)
        )
