"""Recorded steps of scoring and filtering: NUMA set search, distances, deductions, resource order."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from numalign.api.decode import decode, quantity
from numalign.api.objects.pod import Container
from numalign.api.objects.qos import QoS
from numalign.oracle.harness import suite
from numalign.oracle.harness.divergence import Case, Difference
from numalign.oracle.harness.suite import Suite
from numalign.oracle.plugin.suites import objects
from numalign.placement.reference import classes, demand, filter, leastnuma
from numalign.placement.reference.demand import Demand
from numalign.placement.reference.numanodes import NumaNode

FLOAT32 = 1e-6
"""Distances were recorded in single precision."""


def _numa_nodes(given: Mapping[str, Any]) -> tuple[NumaNode, ...]:
    return tuple(map(_numa_node, given["numaNodes"] or ()))


def _numa_node(raw: Mapping[str, Any]) -> NumaNode:
    free = {name: amount.nanos for name, amount in objects.resources(raw["resources"]).items()}
    return NumaNode(raw["numaID"], free, {int(zone): cost for zone, cost in (raw["costs"] or {}).items()})


def _written(nodes: Sequence[NumaNode]) -> list[object]:
    return [
        {
            "numaID": node.id,
            "resources": {name: str(quantity.Quantity(amount)) for name, amount in node.free.items()},
            "costs": {str(zone): cost for zone, cost in node.costs.items()},
        }
        for node in nodes
    ]


def _demand(given: Mapping[str, Any]) -> Demand:
    return demand.wanted(objects.resources(given["requests"]), QoS(given.get("qos", QoS.GUARANTEED)))


def _smallest_set(case: Case) -> object:
    nodes = _numa_nodes(case["input"])
    found = leastnuma.smallest_set(_demand(case["input"]), nodes)
    ids = sorted({nodes[place].id for place in found.places}) if found else None
    return {"numaIDs": ids, "minDistance": bool(found and found.closest)}


def _normalised(case: Case) -> object:
    given = case["input"]
    count, closest, most = given["numaNodesCount"], given["minDistance"], given["maxNUMANodes"]
    return {"score": leastnuma.normalised(count, closest=closest, most=most)}


def _distance(case: Case) -> object:
    sets = [tuple(places) for places in case["input"]["combinations"]]
    return {"distance": leastnuma.min_distance(_numa_nodes(case["input"]), sets) / len(sets[0]) ** 2}


def _close_enough(expected: Any, answered: Any) -> Sequence[Difference]:
    wanted, found = expected["distance"], answered["distance"]
    same = abs(wanted - found) <= FLOAT32 * abs(wanted)
    return suite.exactly({**expected, "distance": found} if same else expected, answered)


def _deducted(case: Case) -> object:
    given = case["input"]
    left = filter.deducted(_demand(given), _numa_nodes(given), given["numaID"])
    return {"error": left is None, "numaNodes": None if left is None else _written(left)}


def _taken(case: Case) -> object:
    given = case["input"]
    return {"numaNodes": _written(leastnuma.taken(_demand(given), _numa_nodes(given), tuple(given["indexes"])))}


def _elsewhere(case: Case) -> bool:
    return leastnuma.is_elsewhere(_demand(case["input"]), _numa_nodes(case["input"]))


def _effective(case: Case) -> object:
    total = demand.effective(objects.pod(case["input"]["pod"]))
    return {"resources": {name: str(amount) for name, amount in total.items()}}


def _is_exclusive(case: Case) -> bool:
    listed = frozenset(case["input"]["nrtResources"] or ())
    return classes.is_exclusive_pod(objects.pod(case["input"]["pod"]), listed)


def _yes_or_no(name: str, answer: Callable[[Case], bool]) -> Suite:
    return Suite(name, lambda case: {"result": answer(case)})


SUITES: tuple[Suite, ...] = (
    Suite("numa_nodes_required", _smallest_set),
    Suite("normalize_score", _normalised),
    Suite("min_avg_distance", _distance, _close_enough),
    Suite("subtract_from_numa_node", _deducted, objects.by_amount),
    Suite("subtract_from_numas_greedy", _taken, objects.by_amount),
    Suite("pod_effective_request", _effective, objects.by_amount),
    _yes_or_no("only_non_numa_resources", _elsewhere),
    _yes_or_no("is_host_level_resource", lambda case: classes.is_host_level(case["input"]["resource"])),
    _yes_or_no("is_numa_affine_resource", lambda case: classes.is_numa_affine(case["input"]["resource"])),
    _yes_or_no("include_non_native", lambda case: classes.asks_for_devices(objects.pod(case["input"]["pod"]))),
    _yes_or_no("exclusive_for_pod", _is_exclusive),
    _yes_or_no("exclusive_for_pod_nrt_scoped", _is_exclusive),
    _yes_or_no("is_sidecar", lambda case: decode.decode(Container, case["input"]["container"]).is_sidecar),
)
