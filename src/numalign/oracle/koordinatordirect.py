"""Compares recorded decisions of Koordinator's scheduler with those of direct mode.

CPUs, exclusivity, the split over zones and the choice of zones are ours there as they are Koordinator's. Failures are
compared by presence. Koordinator divides amounts evenly over zones, which is our strategy DistributeEvenly. Of its
hints the preferred ones are compared: direct mode has no hints by resource, it asks which zones have room for
everything. Ratios for over-commitment are not read; no recorded case shows a difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from numalign.api.attributes import directspec
from numalign.api.attributes.directspec import BindPolicy, Strategy
from numalign.api.decode import cpuset, quantity
from numalign.api.decode.quantity import Format
from numalign.api.objects import resourcenames
from numalign.kubelet.cpu.topology import CPUTopology, discover
from numalign.kubelet.demand import Role
from numalign.kubelet.machine.machine import Core, Machine, Zone
from numalign.kubelet.topologymanager import mask as masks
from numalign.oracle.harness import suite
from numalign.oracle.harness.divergence import Case, Difference
from numalign.oracle.harness.suite import Suite
from numalign.placement.columns.directmachine import MILLI, DirectMachine, DirectTerms, FreeState
from numalign.placement.direct import picking, scope, taking
from numalign.placement.direct.asks import ContainerAsk, PodAsk
from numalign.placement.direct.picking import Picking
from numalign.placement.direct.scope import Assignment
from numalign.placement.direct.taking import Grant

FAILED: Final = {"error": True}


def _topology(shape: Sequence[int]) -> CPUTopology:
    """Sockets, zones per socket, cores per zone, threads per core; CPUs are numbered thread by thread."""
    sockets, zones, cores, threads = shape
    cpus = iter(range(sockets * zones * cores * threads))
    found = [
        Zone(zone, tuple(Core(zone // zones, tuple(next(cpus) for _ in range(threads))) for _ in range(cores)))
        for zone in range(sockets * zones)
    ]
    return discover(Machine("", tuple(found)))


# CPUs


def _taken(case: Case) -> object:
    given = case["input"]
    topology, held = _topology(given["topology"]), cpuset.parse(given["allocated"])
    exclusion = given["allocated_exclusive"]
    how = Picking(
        bind=given["bind_policy"],
        fill=given["numa_strategy"] == "MostAllocated",
        exclusion=given["exclusive_policy"],
        held_cores=held if exclusion == "PCPULevel" else 0,
        held_zones=held if exclusion == "NUMANodeLevel" else 0,
    )
    free, need = topology.cpus & ~held, given["need"]
    first = cpuset.parse(given["preferred"]) & free
    reserved = picking.take(topology, first, min(need, first.bit_count()), how) or 0
    rest = picking.take(topology, free & ~reserved, need - reserved.bit_count(), how)
    return FAILED if rest is None else {"cpus": cpuset.text(reserved | rest)}


# Exclusivity


def _allowed(case: Case) -> object:
    given = case["input"]
    if given["exclusive"] != "Required" or given["affinity"] is None:
        return {"allowed": given["exclusive"] != "Required"}
    states = given["zone_states"]
    single, spread = (masks.of(zone for zone, state in enumerate(states) if state == word) for word in STATES)
    free = FreeState(0, (), (), (), single=single, spread=spread)
    return {"allowed": scope.is_apart(masks.of(given["affinity"]), free)}


STATES: Final = ("single", "shared")


# Amounts by zone


def _machine(zones: Mapping[str, Mapping[str, str]], topology: CPUTopology) -> DirectMachine:
    ids = tuple(sorted(map(int, zones)))
    kinds = sorted({name for amounts in zones.values() for name in amounts if name != resourcenames.CPU})
    memory = tuple((kind, tuple(_units(zones[str(zone)].get(kind, "0")) for zone in ids)) for kind in kinds)
    return DirectMachine(zones=ids, topology=topology, memory=memory, terms=DirectTerms())


def _free(machine: DirectMachine, pinned: int, used: Mapping[str, Mapping[str, str]]) -> FreeState:
    held = [used.get(str(zone), {}) for zone in machine.zones]
    milli = [quantity.parse(amounts.get(resourcenames.CPU, "0")).milli for amounts in held]
    own = [(pinned & cpus).bit_count() * MILLI for cpus in machine.cpus]
    return machine.empty._replace(
        cpus=machine.topology.cpus & ~pinned,
        shared=tuple(max(0, amount - mine) for amount, mine in zip(milli, own, strict=True)),
        memory=tuple(
            tuple(left - _units(amounts.get(kind, "0")) for left, amounts in zip(lefts, held, strict=True))
            for (kind, _), lefts in zip(machine.memory, machine.empty.memory, strict=True)
        ),
    )


def _units(text: str) -> int:
    return quantity.parse(text).value


def _ask(given: Mapping[str, Any], machine: DirectMachine, strategy: Strategy) -> PodAsk:
    wanted = given.get("original_requests") or given["requests"]
    milli = quantity.parse(wanted.get(resourcenames.CPU, "0")).milli
    pinned = given.get("cpu_bind", False)
    bind: BindPolicy = given.get("bind_policy") or "FullPCPUs"
    container = ContainerAsk(
        role=Role.APP,
        policy=directspec.POLICIES[given.get("policy", "BestEffort")],
        cpus=milli // MILLI if pinned else 0,
        milli=0 if pinned else milli,
        memory=tuple(_units(wanted.get(kind, "0")) for kind, _ in machine.memory),
    )
    return PodAsk(
        containers=(container,),
        policy=container.policy,
        strategy=strategy,
        required=bind if given.get("bind_required") else None,
        preferred=bind,
    )


def _situation(given: Mapping[str, Any], strategy: Strategy) -> tuple[DirectMachine, FreeState, PodAsk]:
    machine = _machine(given["zone_allocatable"], _topology(given["topology"]))
    existing = given["existing"]
    free = _free(machine, cpuset.parse(existing["cpus"]) & machine.topology.cpus, existing["zones"])
    return machine, free, _ask(given, machine, strategy)


def _fit(machine: DirectMachine, free: FreeState, asked: PodAsk, zones: int) -> Grant | None:
    return taking.fit(machine, free, taking.nothing(machine), asked.containers[0], asked, zones)


def _allocated(case: Case) -> object:
    given = case["input"]
    machine, free, asked = _situation(given, "DistributeEvenly")
    grant = _fit(machine, free, asked, masks.of(given["affinity"]))
    if grant is None:
        return FAILED
    zones = {}
    for place, zone in enumerate(machine.zones):
        milli = (grant.cpus & machine.cpus[place]).bit_count() * MILLI + (grant.shared[place] if grant.shared else 0)
        amounts = {resourcenames.CPU: str(quantity.of_milli(milli))} if milli else {}
        for (kind, _), by_zone in zip(machine.memory, grant.memory, strict=True):
            if by_zone[place]:
                amounts[kind] = str(quantity.of(by_zone[place], Format.BINARY_SI))
        if amounts:
            zones[str(zone)] = amounts
    return {"zones": zones, "cpus": cpuset.text(grant.cpus)}


def _same_or_failed(expected: Any, answered: Any) -> Sequence[Difference]:
    return suite.exactly(FAILED if "error" in expected else expected, answered)


def _preferred(case: Case) -> object:
    """By resource the zones that direct mode would choose among: as few as have room for everything."""
    given = case["input"]
    machine, free, asked = _situation(given, "DistributeEvenly")
    found: list[list[int]] = []
    for size in range(1, len(machine.zones) + 1):
        found = [
            list(masks.members(zones))
            for zones in masks.of_size(machine.zones, size)
            if _fit(machine, free, asked, zones) is not None
        ]
        if found:
            break
    known = {resourcenames.CPU, *(kind for kind, _ in machine.memory)}
    return {resource: found for resource in given["requests"] if resource in known}


def _only_preferred(expected: Any, answered: Any) -> Sequence[Difference]:
    hints = {
        resource: [zones for zones, preferred in each if preferred] for resource, each in expected["hints"].items()
    }
    return suite.exactly(hints, answered)


def _selected(case: Case) -> object:
    given = case["input"]
    zones, total = given["zones"], given["node_allocatable"]
    share = {name: str(quantity.of(_units(amount) // zones)) for name, amount in total.items()}
    topology = _topology((zones, 1, int(share[resourcenames.CPU]), 1))
    machine = _machine({str(zone): share for zone in range(zones)}, topology)
    free = _free(machine, 0, given["zone_used"])
    found = scope.assign(machine, free, _ask(given, machine, given["numa_scoring"]))
    return {"affinity": list(machine.ids(found.grants[0].zones))} if isinstance(found, Assignment) else FAILED


SUITES: tuple[Suite, ...] = (
    Suite("cpu.take", _taken),
    Suite("tm.exclusive", _allowed),
    Suite("numa.allocate", _allocated, _same_or_failed),
    Suite("numa.hints", _preferred, _only_preferred),
    Suite("numa.select", _selected),
)
