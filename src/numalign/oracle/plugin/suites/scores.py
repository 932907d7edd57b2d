"""Recorded scores of all four strategies, node by node, and the defects of the plugin that show in them."""

from collections.abc import Mapping
from typing import Any

from numalign.api.decode.quantity import NANO
from numalign.api.nrt import wire
from numalign.oracle.harness.divergence import Case, Raw
from numalign.oracle.harness.suite import DeliberateDifference, Suite
from numalign.oracle.plugin import defects
from numalign.oracle.plugin.suites import objects
from numalign.placement.reference import demand, numanodes, scoring
from numalign.placement.reference.numanodes import Reading
from numalign.placement.referenceargs import Strategy


def ids(report: Raw) -> list[int]:
    """The ids of all zones that are NUMA nodes."""
    names = (zone["name"] for zone in report["zones"] or () if zone["type"] == wire.NUMA_ZONE)
    return [zone for zone in map(numanodes.id_in, names) if zone is not None]


def crashed(case: Case) -> bool:
    return "referenceCrash" in case["expect"]


def _has_zone_64(given: Mapping[str, Any]) -> bool:
    return any(numanodes.MOST_IDS in ids(report) for report in objects.reports(given))


ZONE_64 = DeliberateDifference(
    "zone-64", "the plugin crashes on a zone named node-64; it is left out, as those above", _has_zone_64, crashed
)


def of_nodes(given: Mapping[str, Any]) -> dict[str, int]:
    by = scoring.scoring(objects.settings(given))
    pod = demand.of(objects.pod(given["pod"]))
    names = [raw["metadata"]["name"] for raw in given["nodes"]]
    return {name: scoring.score(pod, objects.seen(name, given), by) for name in names}


def _answer(case: Case) -> object:
    return {"scores": of_nodes(case["input"])}


def _answer_with_best(case: Case) -> object:
    scores = of_nodes(case["input"])
    # There is no best node if no node has a report.
    best = max(scores.values())
    return {"scores": scores, "best": {name: score for name, score in scores.items() if score == best and best}}


def _strategy(given: Mapping[str, Any]) -> Strategy:
    return scoring.scoring(objects.settings(given)).strategy


def _readings(given: Mapping[str, Any]) -> list[Reading]:
    return [numanodes.read(objects.report(raw)) for raw in objects.reports(given)]


def _ids(reading: Reading) -> list[int]:
    return [node.id for node in reading.numa_nodes]


def _has_gap(given: Mapping[str, Any]) -> bool:
    return any(max(_ids(reading), default=-1) >= len(reading.numa_nodes) for reading in _readings(given))


def _has_other_places(given: Mapping[str, Any]) -> bool:
    """A zone's id differs from its place in the list: out of order, after a gap, or duplicate."""
    by_least_numa = _strategy(given) is Strategy.LEAST_NUMA_NODES
    return by_least_numa and any(_ids(each) != list(range(len(each.numa_nodes))) for each in _readings(given))


def _asks_for(given: Mapping[str, Any], *, fewer_than: int) -> bool:
    pod = demand.of(objects.pod(given["pod"]))
    return any(len(each.asked) < fewer_than for each in (pod.whole, *pod.containers))


def _asks_for_nothing(given: Mapping[str, Any]) -> bool:
    return _asks_for(given, fewer_than=1)


def _asks_for_one(given: Mapping[str, Any]) -> bool:
    return _strategy(given) is Strategy.BALANCED_ALLOCATION and _asks_for(given, fewer_than=2)


def _has_less_than_none(given: Mapping[str, Any]) -> bool:
    amounts = (free for each in _readings(given) for node in each.numa_nodes for free in node.free.values())
    return _strategy(given) is Strategy.BALANCED_ALLOCATION and any(free < 0 for free in amounts)


def _is_beyond_64_bits(given: Mapping[str, Any]) -> bool:
    """A percentage of an amount does not fit into 64 bits."""
    amounts = (free for each in _readings(given) for node in each.numa_nodes for free in node.free.values())
    by_room = _strategy(given) in (Strategy.LEAST_ALLOCATED, Strategy.MOST_ALLOCATED)
    return by_room and any(free * scoring.HIGHEST >= NANO << 63 for free in amounts)


def _is_far(given: Mapping[str, Any]) -> bool:
    far = any(cost > 255 for each in _readings(given) for node in each.numa_nodes for cost in node.costs.values())
    return far and _strategy(given) is Strategy.LEAST_NUMA_NODES


def _has_many_zones(given: Mapping[str, Any]) -> bool:
    return any(len(reading.numa_nodes) > reading.manager.max_zones for reading in _readings(given))


def _defective(case: Case) -> bool:
    """The recording equals the result with the plugin's defects."""
    given, by = case["input"], scoring.scoring(objects.settings(case["input"]))
    pod = demand.of(objects.pod(given["pod"]))
    try:
        scores = {name: defects.score(pod, objects.seen(name, given), by) for name in case["expect"].get("scores", ())}
    except defects.PluginPanic:
        return False
    return bool(scores) and scores == case["expect"]["scores"]


DELIBERATE = (
    ZONE_64,
    DeliberateDifference(
        "zone-gaps", "the plugin takes ids for positions and crashes where ids have gaps", _has_gap, crashed
    ),
    DeliberateDifference(
        "zone-order", "the plugin takes ids for positions and deducts from another zone", _has_other_places, _defective
    ),
    DeliberateDifference(
        "asks-nothing",
        "a request set without resources does not count",
        _asks_for_nothing,
        lambda case: crashed(case) or _defective(case),
    ),
    DeliberateDifference("balanced-one", "a single resource is in balance with itself", _asks_for_one, _defective),
    DeliberateDifference("less-than-none", "a negative amount is no more than none", _has_less_than_none, _defective),
    DeliberateDifference(
        "beyond-64-bits", "percents of large amounts are counted in full", _is_beyond_64_bits, _defective
    ),
    DeliberateDifference("far-zones", "distances above 255 are distances too", _is_far, _defective),
    DeliberateDifference("below-zero", "a score is never below 0", _has_many_zones, _defective),
)

PLAIN = ("score_least_numa", "score_random", "edge_score", "reference_quirks_score")
WITH_BEST = ("score_strategies", "score_partial_data")

SUITES: tuple[Suite, ...] = (
    *(Suite(name, _answer, deliberate=DELIBERATE) for name in PLAIN),
    *(Suite(name, _answer_with_best, deliberate=DELIBERATE) for name in WITH_BEST),
)
