"""Filter and Score with the plugin's defects, for comparison only.

`replay` uses it to replay v0.34.7. Each defect is an entry of docs/compatibility/plugin.md. Where the plugin would
panic, `Crashed` is raised."""

from collections.abc import Sequence
from itertools import combinations
from typing import Final

from numalign.api.decode.quantity import NANO
from numalign.api.nrt import wire
from numalign.api.nrt.topologymanager import TopologyManager
from numalign.api.nrt.wire import NodeResourceTopology
from numalign.placement.reference import filter, leastnuma, numanodes, scoring, status
from numalign.placement.reference.demand import Demand, PodDemand
from numalign.placement.reference.filter import FilterResult, Seen
from numalign.placement.reference.leastnuma import Found
from numalign.placement.reference.numanodes import NumaNode
from numalign.placement.reference.scoring import ReferenceScoring
from numalign.placement.referenceargs import Strategy

INCONSISTENT: Final = status.error("inconsistent resource accounting")
NOT_A_NUMBER: Final = -(1 << 63)
"""The integer that Go makes of NaN and of numbers out of range."""
FARTHEST: Final = 255


class PluginPanic(Exception):
    """The plugin panics here."""


def decide(pod: PodDemand, present: frozenset[str] | None, seen: Seen) -> FilterResult:
    verdict = filter.decide(pod, present, seen)
    if present is None or pod.bypasses or not seen.fresh or seen.reading is None:
        return verdict
    if seen.reading.manager.policy == filter.POLICY:
        _read_zones(seen.reading.report)
    if verdict.status is status.CONTAINER and _is_inconsistent(pod, present, seen.reading.numa_nodes):
        return FilterResult(INCONSISTENT, rejects_node=True)
    return verdict


def score(pod: PodDemand, seen: Seen, by: ReferenceScoring) -> int:
    if not pod.guaranteed:
        return scoring.HIGHEST
    if not seen.fresh or seen.reading is None:
        return scoring.LOWEST
    numa_nodes, manager = seen.reading.numa_nodes, seen.reading.manager
    by_count = by.strategy is Strategy.LEAST_NUMA_NODES
    if manager.policy != filter.POLICY and not by_count:
        return scoring.LOWEST
    _read_zones(seen.reading.report)
    if by_count:
        return _least_numa(pod, numa_nodes, manager)
    if manager.scope == "pod":
        return _rated(pod.whole, numa_nodes, by)
    ratings = [float(_rated(demand, numa_nodes, by)) for demand in pod.containers]
    # asks-nothing: a pod without containers has no mean.
    return _whole(sum(ratings) / len(ratings)) if ratings else NOT_A_NUMBER


def _read_zones(report: NodeResourceTopology) -> None:
    """zone-64: the plugin indexes a table of 64 entries."""
    zones = (zone for zone in report.zones or () if zone.type == wire.NUMA_ZONE)
    if any(numanodes.id_in(zone.name) == numanodes.MOST_IDS for zone in zones):
        raise PluginPanic


def _is_inconsistent(pod: PodDemand, present: frozenset[str], numa_nodes: tuple[NumaNode, ...]) -> bool:
    """zone-twice: a container fits one of the two zones, and the other has less than it takes."""
    left = numa_nodes
    for demand in pod.apps:
        chosen = filter.fit(demand, left, present)
        if chosen is None:
            return False
        rest = filter.deducted(demand, left, chosen)
        if rest is None:
            return True
        left = rest
    return False


def _rated(demand: Demand, numa_nodes: Sequence[NumaNode], by: ReferenceScoring) -> int:
    """zone-gaps: the plugin uses a zone's id as its index in the list."""
    lowest = 0
    for node in numa_nodes:
        rating = _rating(demand, node, by)
        if lowest == 0 or (rating != 0 and rating < lowest):
            lowest = rating
        if node.id >= len(numa_nodes):
            raise PluginPanic
    return lowest


def _rating(demand: Demand, node: NumaNode, by: ReferenceScoring) -> int:
    if by.strategy is Strategy.BALANCED_ALLOCATION:
        return _balanced(demand, node)
    if not demand.asked:
        raise PluginPanic  # asks-nothing: division by the sum of no weights
    total = weights = 0
    for name, wanted in demand.asked:
        weight, free = by.weights.get(name, 1), node.free.get(name, 0)
        weights += weight
        if free and wanted <= free:
            taken, whole = _units(wanted), _units(free)
            total += weight * _percent(taken if by.strategy is Strategy.MOST_ALLOCATED else whole - taken, whole)
    return _quotient(total, weights)


def _percent(part: int, whole: int) -> int:
    """beyond-64-bits: the product wraps around."""
    product = part * scoring.HIGHEST
    return _quotient((product - NOT_A_NUMBER) % (1 << 64) + NOT_A_NUMBER, whole)


def _quotient(number: int, divisor: int) -> int:
    """Rounded towards zero."""
    return number // divisor if (number < 0) == (divisor < 0) else -(-number // divisor)


def _balanced(demand: Demand, node: NumaNode) -> int:
    shares = [_share(_units(wanted), _units(node.free.get(name, 0))) for name, wanted in demand.asked]
    if any(share > 1 for share in shares):
        return 0
    # balanced-one: fewer than two shares have no variance.
    return NOT_A_NUMBER if len(shares) < 2 else _whole((1 - scoring.variance(shares)) * scoring.HIGHEST)


def _share(wanted: int, free: int) -> float:
    """less-than-none: a negative amount gives a negative share."""
    return wanted / free if free else 1.0


def _units(nanos: int) -> int:
    return -(-nanos // NANO)


def _whole(number: float) -> int:
    return int(number) if abs(number) < -NOT_A_NUMBER else NOT_A_NUMBER


def _least_numa(pod: PodDemand, numa_nodes: tuple[NumaNode, ...], manager: TopologyManager) -> int:
    count, closest, left = 0, True, numa_nodes
    for demand in (pod.whole,) if manager.scope == "pod" else pod.containers:
        if leastnuma.is_elsewhere(demand, left):
            continue
        found = _smallest_set(demand, left)
        if found is None:
            return 0
        ids = sorted({left[place].id for place in found.places})
        count, closest = max(count, len(ids)), closest and found.closest
        if manager.scope != "pod":
            left = _taken(demand, left, ids)
    step = scoring.HIGHEST // manager.max_zones
    # below-zero: the plugin does not limit the score at zero.
    return scoring.HIGHEST - count * step + (step // 2 if closest else 0) if count else scoring.HIGHEST


def _smallest_set(demand: Demand, numa_nodes: tuple[NumaNode, ...]) -> Found | None:
    """far-zones: the search for the closest set starts at a distance that real ones can exceed."""
    names = {name for name, _ in demand.asked}
    usable = {place for place, node in enumerate(numa_nodes) if names <= node.free.keys()}
    for size in range(1, len(numa_nodes) + 1):
        sets = {
            places: leastnuma.distance_sum(numa_nodes, places) for places in combinations(range(len(numa_nodes)), size)
        }
        least = min(FARTHEST * size * size, *sets.values())
        roomy = [each for each in sets if usable.issuperset(each) and leastnuma.has_room(demand, numa_nodes, each)]
        near = [each for each in roomy if sets[each] < (FARTHEST + 1) * size * size]
        if near:
            best = min(near, key=lambda each: sets[each])
            return Found(best, closest=sets[best] == least)
    return None


def _taken(demand: Demand, numa_nodes: tuple[NumaNode, ...], ids: Sequence[int]) -> tuple[NumaNode, ...]:
    """zone-order and zone-gaps: ids are used as indexes here as well."""
    left = [NumaNode(node.id, dict(node.free), node.costs) for node in numa_nodes]
    for name, missing in demand.asked:
        for place in ids:
            if not missing:
                break
            if place >= len(left):
                raise PluginPanic
            free = left[place].free
            if name in free:
                given = min(missing, free[name])
                missing -= given
                free[name] -= given
    return tuple(left)
