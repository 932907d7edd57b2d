"""What pods hold on nodes in direct mode, by the decisions on the pods themselves.

`nodes` keeps it in step with facts. A pod counts from its decision on; the first decision about a pod on a node counts,
whatever its annotation says later. What is free is summed up from all pods of the node whenever one goes, so that
holdings that overlap, as after an annotation was forged, free nothing too much."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from numalign.api.attributes.devicetable import KINDS
from numalign.api.attributes.directresult import ContainerResult, DirectResult
from numalign.api.decode import quantity
from numalign.api.objects import resourcenames
from numalign.placement.columns.deviceshares import LOOSE
from numalign.placement.columns.directmachine import MILLI, DirectMachine, FreeState, positions
from numalign.placement.direct.share import amounts as sharing
from numalign.placement.direct.share.amounts import Held


class DirectProblem(StrEnum):
    """What decisions on pods must not be."""

    UNREADABLE = "direct-decision-unreadable"
    OVERLAP = "direct-decisions-overlap"


class PodHolding(Struct, frozen=True, kw_only=True):
    """What a pod keeps from others, by real zone; independent of the node's report, which may come later."""

    cpus: int = 0
    milli: Mapping[int, int] = {}
    """Thousandths of CPUs, its own and shared ones."""
    memory: Mapping[tuple[str, int], int] = {}
    """Bytes by type and zone."""
    devices: Mapping[str, int] = {}
    """Minors by resource."""
    shares: Held = {}
    single: frozenset[int] = frozenset()
    spread: frozenset[int] = frozenset()
    """Zones of containers that have one zone, and several."""
    exclusion: str = ""
    containers: Mapping[str, tuple[tuple[int, ...], ...]] = {}
    """By container its zones, as one possible set; without those that are not aligned."""


def holding(result: DirectResult) -> PodHolding:
    """What the decision keeps from others. QuantityError if its amounts make no sense."""
    milli: dict[int, int] = {}
    memory: dict[tuple[str, int], int] = {}
    for each in result.numa_node_resources:
        for name, text in each.resources.items():
            amount = quantity.parse(text)
            if name == resourcenames.CPU:
                milli[each.node] = amount.milli
            else:
                memory[name, each.node] = amount.value
    devices: dict[str, int] = {}
    for container in result.containers:
        for resource, grants in container.devices.items():
            # Shared devices count for the pod as a whole.
            for grant in grants if resource not in KINDS else ():
                devices[resource] = devices.get(resource, 0) | 1 << grant.minor
    return PodHolding(
        cpus=result.cpus,
        milli=milli,
        memory=memory,
        devices=devices,
        shares=sharing.held(result.devices),
        single=_zones(result.containers, several=False),
        spread=_zones(result.containers, several=True),
        exclusion=result.exclusion,
        containers={each.name: (each.zones,) for each in result.containers if each.zones},
    )


def _zones(containers: tuple[ContainerResult, ...], *, several: bool) -> frozenset[int]:
    return frozenset(zone for each in containers if (len(each.zones) > 1) is several for zone in each.zones)


class DirectLedger:
    """Holdings by node and pod."""

    def __init__(self) -> None:
        self.problems: Counter[str] = Counter()
        self._pods: dict[str, dict[str, PodHolding | DirectResult]] = {}
        """By node and uid. Of a decision that was just made the holding is worked out once it is needed."""
        self._nodes: dict[str, str] = {}
        """By uid."""
        self._free: dict[str, tuple[DirectMachine, FreeState]] = {}

    def __contains__(self, uid: str) -> bool:
        return uid in self._nodes

    def node_of(self, uid: str) -> str | None:
        return self._nodes.get(uid)

    def pods(self, node: str) -> Mapping[str, PodHolding]:
        """By uid, in the order in which they came."""
        return {uid: self._holding(node, uid) for uid in self._pods.get(node, ())}

    def free(self, node: str, machine: DirectMachine) -> FreeState:
        known = self._free.get(node)
        if known is None or known[0] is not machine:
            known = self._free[node] = machine, self.without(node, machine, ())
        return known[1]

    def without(self, node: str, machine: DirectMachine, uids: frozenset[str] | tuple[str, ...]) -> FreeState:
        """What is free if these pods were gone."""
        free = machine.empty
        for uid in self._pods.get(node, ()):
            if uid not in uids:
                free = self._less(machine, free, self._holding(node, uid))
        return free

    def decided(self, uid: str, result: DirectResult, machine: DirectMachine, after: FreeState) -> None:
        """A pod was decided for its node; `after`: what is free then."""
        self.drop(uid)
        self._put(uid, result.node, result)
        self._free[result.node] = machine, after

    def found(self, uid: str, result: DirectResult) -> bool:
        """A pod was found on its node with a decision; whether that is new."""
        if self._nodes.get(uid) == result.node:
            return False
        try:
            held = holding(result)
        except quantity.QuantityError:
            self.problems[DirectProblem.UNREADABLE] += 1
            return False
        self.drop(uid)
        self._put(uid, result.node, held)
        self._free.pop(result.node, None)
        return True

    def drop(self, uid: str) -> str | None:
        """The pod holds nothing any more; the node on which it did."""
        node = self._nodes.pop(uid, None)
        if node is None:
            return None
        pods = self._pods[node]
        del pods[uid]
        self._free.pop(node, None)
        if not pods:
            del self._pods[node]
        return node

    def _put(self, uid: str, node: str, held: PodHolding | DirectResult) -> None:
        self._nodes[uid] = node
        self._pods.setdefault(node, {})[uid] = held

    def _holding(self, node: str, uid: str) -> PodHolding:
        held = self._pods[node][uid]
        if isinstance(held, DirectResult):
            held = self._pods[node][uid] = holding(held)
        return held

    def _less(self, machine: DirectMachine, free: FreeState, held: PodHolding) -> FreeState:
        left, overlaps = less(machine, free, held)
        if overlaps:
            self.problems[DirectProblem.OVERLAP] += 1
        return left


def less(machine: DirectMachine, free: FreeState, held: PodHolding) -> tuple[FreeState, bool]:
    """What is free beside this pod, and whether others hold some of the same. What the machine does not have is left
    out."""
    cpus = held.cpus & machine.topology.cpus
    taken = [held.devices.get(name, 0) for name, _, _ in machine.devices]
    overlaps = bool(cpus & ~free.cpus) or any(own & ~left for own, left in zip(taken, free.devices, strict=True))
    shares = free.shares
    if held.shares and machine.stock.units:
        own_shares = sharing.taken(machine.stock, held.shares)
        overlaps = overlaps or sharing.exceeds(own_shares, free.shares, machine.stock)
        shares = sharing.less(free.shares, own_shares)
    own = [(cpus & inside).bit_count() * MILLI for inside in machine.cpus]
    shared = [
        used + max(0, held.milli.get(zone, 0) - pinned)
        for zone, used, pinned in zip(machine.zones, free.shared, own, strict=True)
    ]
    memory = [
        tuple([left - held.memory.get((name, zone), 0) for zone, left in zip(machine.zones, amounts, strict=True)])
        for (name, _), amounts in zip(machine.memory, free.memory, strict=True)
    ]
    then = free._replace(
        cpus=free.cpus & ~cpus,
        shared=tuple(shared),
        memory=tuple(memory),
        devices=tuple([left & ~own for left, own in zip(free.devices, taken, strict=True)]),
        shares=shares,
        single=free.single | _mask(machine, held.single),
        spread=free.spread | _mask(machine, held.spread),
        whole_cores=free.whole_cores | (cpus if held.exclusion == "PCPULevel" else 0),
        whole_zones=free.whole_zones | (cpus if held.exclusion == "NUMANodeLevel" else 0),
    )
    return then, overlaps


def zones(machine: DirectMachine, held: PodHolding) -> int:
    """A mask of the zones in which the pod has CPUs, memory or devices, or to which a container is aligned. A device
    of no zone counts for none."""
    found = _mask(machine, held.single | held.spread | held.milli.keys() | {zone for _, zone in held.memory})
    places = (machine.stock.place.get(key) for key in held.shares)
    for unit in (machine.stock.units[place] for place in places if place is not None):
        found |= 1 << unit.position if unit.position != LOOSE else 0
    for place, inside in enumerate(machine.cpus):
        minors = (held.devices.get(name, 0) & by_zone[place] for name, by_zone, _ in machine.devices)
        if held.cpus & inside or any(minors):
            found |= 1 << place
    return found


def _mask(machine: DirectMachine, zones: frozenset[int]) -> int:
    return sum(1 << place for place in positions(machine.every_zone) if machine.zones[place] in zones)
