"""Filter: decides whether a node accepts a pod.

`decide` is the whole extension point, with what the cache and the preemption cycle know handed in; `align` is its core
for a node with a report. A NUMA node has to meet each request set alone; containers take theirs one after the other,
each from the lowest id that has room, and nothing is tried again (scheduler plugin spec 7).
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from numalign.api.nrt.placementcodec import ContainerRef
from numalign.api.objects.pod import Pod
from numalign.placement.reference import eviction, numanodes, status
from numalign.placement.reference.demand import Demand, PodDemand
from numalign.placement.reference.numanodes import NumaNode, Reading
from numalign.placement.reference.status import Status

ANY_ID: Final = (1 << numanodes.MOST_IDS) - 1
POLICY: Final = "single-numa-node"


class Seen(Struct, frozen=True):
    """What the cache says about a node."""

    fresh: bool = True
    reading: Reading | None = None


class Preemption(Struct, frozen=True):
    """Pods that are taken to be gone in this cycle, and where the cache knows containers to be."""

    victims: tuple[Pod, ...] = ()
    placement: Mapping[ContainerRef, int] | None = None


NO_PREEMPTION: Final = Preemption()


class FilterResult(Struct, frozen=True):
    status: Status
    rejects_node: bool = False
    """Whether the cache must mark the node for a refresh, because Filter rejected it."""


PASSES: Final = FilterResult(status.SUCCESS)


def decide(
    pod: PodDemand, present: frozenset[str] | None, seen: Seen, preemption: Preemption = NO_PREEMPTION
) -> FilterResult:
    """`present`: the resources that the node has at all (`classes.present_on`); None: there is no such node."""
    if present is None:
        return FilterResult(status.NODE_NOT_FOUND)
    if pod.bypasses:
        return PASSES
    if not seen.fresh:
        return FilterResult(status.STALE)
    if seen.reading is None:
        return PASSES
    if not preemption.victims:
        aligned = align(pod, present, seen.reading)
        return FilterResult(aligned, rejects_node=not aligned.is_success)
    after = _after_eviction(seen.reading, preemption)
    return FilterResult(after if isinstance(after, Status) else align(pod, present, after))


def _after_eviction(reading: Reading, preemption: Preemption) -> Reading | Status:
    # Without placement nothing can be added back, so the pod is checked against the node as it is.
    if not preemption.placement:
        return reading
    simulated = eviction.simulate(reading.report, preemption.victims, preemption.placement)
    if isinstance(simulated, eviction.Impossible):
        return status.unschedulable(f"{eviction.PREFIX}{simulated}")
    return numanodes.read(simulated)


def align(pod: PodDemand, present: frozenset[str], reading: Reading) -> Status:
    """The status of a node with a report. Nodes with policies other than single-numa-node accept every pod."""
    if reading.manager.policy != POLICY:
        return status.SUCCESS
    if reading.manager.scope == "pod":
        return status.SUCCESS if fit(pod.whole, reading.numa_nodes, present) is not None else status.POD
    return _containers(pod, present, reading.numa_nodes)


def _containers(pod: PodDemand, present: frozenset[str], numa_nodes: tuple[NumaNode, ...]) -> Status:
    # Init containers, including sidecars, deduct nothing: each is checked against the full list.
    for init in pod.init:
        if fit(init.demand, numa_nodes, present) is None:
            return status.SIDECAR if init.sidecar else status.INIT_CONTAINER
    left = numa_nodes
    for demand in pod.apps:
        chosen = fit(demand, left, present)
        rest = None if chosen is None else deducted(demand, left, chosen)
        if rest is None:
            return status.CONTAINER
        left = rest
    return status.SUCCESS


def fit(demand: Demand, numa_nodes: tuple[NumaNode, ...], present: frozenset[str]) -> int | None:
    """The lowest id that can meet the whole demand; 0 if no zone matters; None if there is none."""
    candidates = ANY_ID
    for name, amount, counted, host_level in demand.needs:
        if name not in present:
            return None
        suitable, listed = 0, False
        for node in numa_nodes:
            free = node.free.get(name)
            if free is not None:
                listed = True
                if not counted or free >= amount:
                    suitable |= 1 << node.id
        if not listed and host_level:
            continue
        candidates &= suitable
        if not candidates:
            return None
    return (candidates & -candidates).bit_length() - 1


def deducted(demand: Demand, numa_nodes: tuple[NumaNode, ...], chosen: int) -> tuple[NumaNode, ...] | None:
    """The list after `chosen` gave what is counted. None if it has less than that, which takes two zones of one id."""
    left = list(numa_nodes)
    for place, node in enumerate(numa_nodes):
        if node.id == chosen:
            free = _after(demand, node.free)
            if free is None:
                return None
            left[place] = NumaNode(node.id, free, node.costs)
    return tuple(left)


def _after(demand: Demand, free: dict[str, int]) -> dict[str, int] | None:
    rest = dict(free)
    for name, amount, counted, _ in demand.needs:
        if counted and name in rest:
            rest[name] -= amount
            if rest[name] < 0:
                return None
    return rest
