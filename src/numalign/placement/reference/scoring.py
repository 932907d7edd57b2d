"""Score: rates how well a node suits a pod, from 0 to 100.

`score` is the whole extension point. LeastAllocated, MostAllocated and BalancedAllocation rate every NUMA node for a
request set and keep the lowest rating that is not zero; LeastNUMANodes is `leastnuma` (scheduler plugin spec 8, 9).
Empty request sets are skipped; the plugin crashes on them (docs/compatibility/plugin.md).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from numalign.api.decode.quantity import NANO
from numalign.placement import referenceargs
from numalign.placement.reference import leastnuma
from numalign.placement.reference.demand import Demand, PodDemand
from numalign.placement.reference.filter import POLICY, Seen
from numalign.placement.reference.numanodes import NumaNode
from numalign.placement.referenceargs import NodeResourceTopologyMatchArgs, Strategy

HIGHEST: Final = 100
LOWEST: Final = 0

Rate = Callable[[Demand, NumaNode, Mapping[str, int]], int]


class ReferenceScoring(Struct, frozen=True):
    """How a profile scores: by which strategy, and which resource weighs how much (default 1)."""

    strategy: Strategy = Strategy.LEAST_ALLOCATED
    weights: Mapping[str, int] = {}


def scoring(args: NodeResourceTopologyMatchArgs) -> ReferenceScoring:
    """The scoring of complete settings."""
    strategy = args.scoring_strategy or referenceargs.ScoringStrategy()
    return ReferenceScoring(Strategy(strategy.type), referenceargs.weights(args))


def score(pod: PodDemand, seen: Seen, by: ReferenceScoring) -> int:
    if not pod.guaranteed:
        return HIGHEST
    if not seen.fresh or seen.reading is None:
        return LOWEST
    numa_nodes, manager = seen.reading.numa_nodes, seen.reading.manager
    if by.strategy is Strategy.LEAST_NUMA_NODES:
        return leastnuma.score(pod, numa_nodes, manager)
    if manager.policy != POLICY or not numa_nodes:
        return LOWEST
    sets = (pod.whole,) if manager.scope == "pod" else pod.containers
    return _mean([rated(demand, numa_nodes, by) for demand in sets if demand.asked])


def rated(demand: Demand, numa_nodes: Sequence[NumaNode], by: ReferenceScoring) -> int:
    """The lowest rating that is not zero."""
    rate = RATES[by.strategy]
    ratings = (rate(demand, node, by.weights) for node in numa_nodes)
    return min(filter(None, ratings), default=LOWEST)


def _mean(ratings: list[int]) -> int:
    return int(sum(ratings) / len(ratings)) if ratings else HIGHEST


def least_allocated(demand: Demand, node: NumaNode, weights: Mapping[str, int]) -> int:
    total = weight_sum = 0
    for name, wanted in demand.asked:
        weight, free = weights.get(name, 1), node.free.get(name, 0)
        weight_sum += weight
        if free and wanted <= free:
            total += weight * ((_units(free) - _units(wanted)) * HIGHEST // _units(free))
    return total // weight_sum


def most_allocated(demand: Demand, node: NumaNode, weights: Mapping[str, int]) -> int:
    total = weight_sum = 0
    for name, wanted in demand.asked:
        weight, free = weights.get(name, 1), node.free.get(name, 0)
        weight_sum += weight
        if free and wanted <= free:
            total += weight * (_units(wanted) * HIGHEST // _units(free))
    return total // weight_sum


def balanced_allocation(demand: Demand, node: NumaNode, _: Mapping[str, int]) -> int:
    """The more alike the shares that are taken of each resource, the better."""
    shares = [_share(_units(wanted), _units(node.free.get(name, 0))) for name, wanted in demand.asked]
    if any(share > 1 for share in shares):
        return LOWEST
    return int((1 - variance(shares)) * HIGHEST)


def _share(wanted: int, free: int) -> float:
    return float(wanted) / float(free) if free > 0 else 1.0


# In floating point and step by step as the plugin's library computes it, so that truncation gives the same number:
# two passes, with a correction for the rounding of the mean.
def variance(shares: Sequence[float]) -> float:
    """The sample variance; 0 for a single share (the plugin divides by zero there)."""
    if len(shares) < 2:
        return 0.0
    mean = sum(shares) / len(shares)
    squares = correction = 0.0
    for share in shares:
        distance = share - mean
        squares += distance * distance
        correction += distance
    return (squares - correction * correction / len(shares)) / (len(shares) - 1)


def _units(nanos: int) -> int:
    """Whole units, rounded up: half a CPU counts as one."""
    return -(-nanos // NANO)


RATES: Final[Mapping[Strategy, Rate]] = {
    Strategy.LEAST_ALLOCATED: least_allocated,
    Strategy.MOST_ALLOCATED: most_allocated,
    Strategy.BALANCED_ALLOCATION: balanced_allocation,
}
