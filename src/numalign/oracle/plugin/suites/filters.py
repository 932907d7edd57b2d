"""Recorded results of Filter, with and without preemption, and scheduling cycles of one pod."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from numalign.api.objects.pod import DEFAULT_SCHEDULER
from numalign.oracle.divergence import Difference
from numalign.oracle.plugin import defects
from numalign.oracle.plugin.suites import objects, reportedzones, scores, suite
from numalign.oracle.plugin.suites.reportedzones import ZONE_64
from numalign.oracle.plugin.suites.suite import Case, Deliberate, Suite
from numalign.placement.reference import args, classes, demand, filter, victims
from numalign.placement.reference.filter import Preemption, Seen, Verdict
from numalign.placement.reference.status import Status
from numalign.placement.reference.victims import Cycle


def _verdict(given: Mapping[str, Any], raw_node: objects.Raw | None) -> Verdict:
    wanted = demand.of(objects.pod(given["pod"]))
    if raw_node is None:
        return filter.decide(wanted, None, Seen())
    node = objects.node(raw_node)
    seen = objects.seen(node.metadata.name, given)
    return filter.decide(wanted, classes.present_on(node), seen, _preemption(given))


def _preemption(given: Mapping[str, Any]) -> Preemption:
    cycle, _ = victims.pre_filter(Cycle(args.preemption_mode(objects.settings(given))))
    for raw in given.get("victims") or ():
        cycle, _ = victims.remove_pod(cycle, objects.pod(raw))
    return Preemption(cycle.pods, objects.placement(given.get("placement")))


def _status(status: Status) -> dict[str, object]:
    return {"code": status.code, "reasons": status.reasons}


def _answer(case: Case) -> object:
    return {"status": _status(_verdict(case["input"], case["input"]["node"]).status)}


def _answer_with_mark(case: Case) -> object:
    verdict = _verdict(case["input"], case["input"]["node"])
    return {"status": _status(verdict.status), "markedMaybeOverReserved": verdict.rejects_node}


def _cycle(case: Case) -> object:
    given = case["input"]
    verdicts = {raw["metadata"]["name"]: _verdict(given, raw).status for raw in given["nodes"]}
    rated = scores.of_nodes(given)
    return {
        "left": [name for name, status in verdicts.items() if status.is_success],
        "stock": objects.pod(given["pod"]).spec.scheduler_name == DEFAULT_SCHEDULER,
        "message": "; ".join(reason for status in verdicts.values() for reason in status.reasons),
        "filter": {name: _status(status) for name, status in verdicts.items()},
        "scores": rated,
    }


def _same_cycle(expected: Any, answered: Any) -> Sequence[Difference]:
    """Filter and scores are compared exactly. The pod must end on an allowed node. Without one it stays pending with a
    message that contains the recorded text."""
    allowed, part = expected["allowedNodes"], expected["errorContains"]
    message = "" if answered["left"] else answered["message"]
    measured = {key: expected[key] for key in expected if key not in ("allowedNodes", "errorContains")}
    return [
        *suite.exactly(measured, {key: answered[key] for key in ("filter", "scores")}),
        *([] if _lands(allowed, answered) else [Difference("allowedNodes", allowed, answered["left"])]),
        *([] if part in message else [Difference("errorContains", part, message)]),
    ]


def _lands(allowed: Sequence[str], answered: Any) -> bool:
    """Allowed are the best nodes, or any feasible node if other plugins score too."""
    left, rated = answered["left"], answered["scores"]
    if not left:
        return not allowed
    best = max(rated[name] for name in left)
    ends = {name for name in left if answered["stock"] or rated[name] == best}
    return ends <= set(allowed) <= set(rated) and len(set(allowed)) == len(allowed)


def _has_zone_twice(given: Mapping[str, Any]) -> bool:
    listed = map(reportedzones.ids, objects.reports(given))
    return any(len(set(zones)) < len(zones) for zones in listed)


def _is_inconsistent(case: Case) -> bool:
    """The error of this defect only. Comparisons without reasons have just the code."""
    recorded, defect = case["expect"]["status"], defects.INCONSISTENT
    return bool(recorded["code"] == defect.code and recorded.get("reasons", defect.reasons)[0] == defect.reasons[0])


ZONE_TWICE = Deliberate(
    "zone-twice",
    "two zones of one id can fail the pod's whole cycle; the container does not fit there, and other nodes are tried",
    _has_zone_twice,
    _is_inconsistent,
)

PLAIN = ("filter_basic", "filter_multicontainer_pod_scope", "filter_multicontainer_container_scope")
MARKED = ("filter_random", "edge_filter", "filter_preemption", "filter_preemption_random", "reference_quirks_filter")


def _suites(names: Sequence[str], answer: Callable[[Case], object]) -> tuple[Suite, ...]:
    return tuple(Suite(name, answer, deliberate=(ZONE_64, ZONE_TWICE)) for name in names)


SUITES: tuple[Suite, ...] = (
    *_suites(PLAIN, _answer),
    *_suites(MARKED, _answer_with_mark),
    Suite("integration_single_cycle", _cycle, _same_cycle),
)
