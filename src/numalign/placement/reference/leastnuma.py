"""Score by LeastNUMANodes: the fewer NUMA nodes a pod needs, and the closer they are to each other, the better.

`scoring` calls `score` for Guaranteed pods, whatever the node's policy. `smallest_set` is the search: sets of one NUMA
node, then of two, and so on (scheduler plugin spec 9). The plugin looks at every set there is; here sets that cannot
hold the demand are not built, and beyond `MOST_SETS` of one size a good set is taken instead of the best.
"""

from collections.abc import Iterable, Sequence
from itertools import combinations
from math import comb
from typing import Final

from msgspec import Struct

from numalign.api.nrt.topologymanager import TopologyManager
from numalign.placement.reference.demand import Demand, PodDemand
from numalign.placement.reference.numanodes import NumaNode

HIGHEST: Final = 100
UNKNOWN_DISTANCE: Final = 255
MOST_SETS: Final = 10_000

Places = tuple[int, ...]
"""Positions in the list of NUMA nodes, ascending."""


class Found(Struct, frozen=True):
    places: Places
    closest: bool
    """No other set of this size, with or without room, is closer together."""


def score(pod: PodDemand, numa_nodes: tuple[NumaNode, ...], manager: TopologyManager) -> int:
    count, closest, left = 0, True, numa_nodes
    for demand in (pod.whole,) if manager.scope == "pod" else pod.containers:
        if is_elsewhere(demand, left):
            continue
        found = smallest_set(demand, left)
        if found is None:
            return 0
        count, closest = max(count, ids_in(left, found.places)), closest and found.closest
        # Init containers too: the plugin never gives back what they took.
        left = taken(demand, left, found.places)
    return normalised(count, closest=closest, most=manager.max_zones) if count else HIGHEST


def is_elsewhere(demand: Demand, numa_nodes: Iterable[NumaNode]) -> bool:
    """No NUMA node lists any of it."""
    names = {name for name, _ in demand.asked}
    return all(names.isdisjoint(node.free) for node in numa_nodes)


def normalised(count: int, *, closest: bool, most: int) -> int:
    """The score for a number of NUMA nodes; 0 for more than the node allows, where the plugin's gets negative."""
    step = HIGHEST // most
    return max(HIGHEST - count * step + (step // 2 if closest else 0), 0)


def ids_in(numa_nodes: Sequence[NumaNode], places: Places) -> int:
    return len({numa_nodes[place].id for place in places})


def smallest_set(demand: Demand, numa_nodes: Sequence[NumaNode]) -> Found | None:
    """The closest set of the smallest size that has room, the first by position; None if all together do not do."""
    names = {name for name, _ in demand.asked}
    usable = [place for place, node in enumerate(numa_nodes) if names <= node.free.keys()]
    for size in range(1, len(usable) + 1):
        if not _could_hold(demand, numa_nodes, usable, size):
            continue
        if comb(len(numa_nodes), size) > MOST_SETS:
            return _widest(demand, numa_nodes, usable)
        if found := _closest_of(demand, numa_nodes, usable, size):
            return found
    return None


def _could_hold(demand: Demand, numa_nodes: Sequence[NumaNode], usable: Sequence[int], size: int) -> bool:
    """Whether the roomiest of that number have enough, resource by resource: a larger set is needed if not."""
    for name, amount, counted, _ in demand.needs:
        free = sorted([numa_nodes[place].free[name] for place in usable], reverse=True)
        if counted and sum(free[:size]) < amount:
            return False
    return True


def _closest_of(demand: Demand, numa_nodes: Sequence[NumaNode], usable: Sequence[int], size: int) -> Found | None:
    roomy = [places for places in combinations(usable, size) if has_room(demand, numa_nodes, places)]
    if not roomy:
        return None
    best = min(roomy, key=lambda places: distance_sum(numa_nodes, places))
    everywhere = combinations(range(len(numa_nodes)), size)
    return Found(best, closest=distance_sum(numa_nodes, best) == min_distance(numa_nodes, everywhere))


def _widest(demand: Demand, numa_nodes: Sequence[NumaNode], usable: Sequence[int]) -> Found | None:
    """A small set, found without trying every one: NUMA nodes that can give most of the demand come first."""
    ordered = sorted(usable, key=lambda place: -_part(demand, numa_nodes[place]))
    for size in range(1, len(ordered) + 1):
        places = tuple(sorted(ordered[:size]))
        if has_room(demand, numa_nodes, places):
            return Found(places, closest=False)
    return None


def _part(demand: Demand, node: NumaNode) -> float:
    return sum(min(node.free[need.name] / need.amount, 1.0) for need in demand.needs)


def has_room(demand: Demand, numa_nodes: Sequence[NumaNode], places: Places) -> bool:
    for name, amount, counted, _ in demand.needs:
        if counted and sum([numa_nodes[place].free[name] for place in places]) < amount:
            return False
    return True


def min_distance(numa_nodes: Sequence[NumaNode], sets: Iterable[Places]) -> int:
    return min(distance_sum(numa_nodes, places) for places in sets)


def distance_sum(numa_nodes: Sequence[NumaNode], places: Places) -> int:
    """Over all ordered pairs, a NUMA node with itself too: between sets of one size it orders as the average does."""
    ids = [numa_nodes[place].id for place in places]
    total = 0
    for place in places:
        costs = numa_nodes[place].costs
        for zone in ids:
            total += costs.get(zone, UNKNOWN_DISTANCE)
    return total


def taken(demand: Demand, numa_nodes: Sequence[NumaNode], places: Places) -> tuple[NumaNode, ...]:
    """The list after these gave the demand, each all it has until there is enough, lowest id first."""
    left = list(numa_nodes)
    missing = dict(demand.asked)
    for place in sorted(places, key=lambda place: numa_nodes[place].id):
        node = left[place]
        free = dict(node.free)
        for name in missing.keys() & free.keys():
            given = min(missing[name], free[name])
            missing[name] -= given
            free[name] -= given
        left[place] = NumaNode(node.id, free, node.costs)
    return tuple(left)
