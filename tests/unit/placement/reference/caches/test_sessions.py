"""Recorded sessions, as the replay plays them: what is answered, and which repair a difference is put down to."""

from typing import Any

import pytest
from msgspec import to_builtins

from numalign.api.decode import structs
from numalign.api.nrt import fingerprint
from numalign.oracle.plugin.suites import caches, cachesessions
from numalign.placement.reference.caches import repairs
from tests.unit.placement.reference.caches import made

(SUITE,) = (suite for suite in caches.SUITES if suite.name == "cache_scenario")
RUNNING, PENDING, ENDED = made.pod("r"), made.pod("s", phase="Pending"), made.pod("e", phase="Failed")
OTHER_SCOPE = made.report(attributes={made.SCOPE: "pod"})


def plain(thing: structs.Wire) -> Any:
    return to_builtins(thing, enc_hook=structs.encodable)


def session(*steps: dict[str, Any], pods: tuple[Any, ...] = (), relevance: str = "Dedicated") -> dict[str, Any]:
    written = [
        {key: plain(value) if isinstance(value, structs.Wire) else value for key, value in step.items()}
        for step in steps
    ]
    return {
        "cacheType": "OverReserve",
        "initialNRTs": [plain(made.report())],
        "initialPods": list(map(plain, pods)),
        "podRelevance": relevance,
        "preemptionMode": "Disabled",
        "cache": None,
        "profileNames": [made.OURS],
        "steps": written,
    }


REJECTED, RESYNC, DESYNCED = {"op": "nodeRejected", "node": "n"}, {"op": "resync"}, {"op": "desynced"}
LOOK_UP = {"op": "getNRT", "node": "n"}


def put(*pods: Any) -> dict[str, Any]:
    return {"op": "apiPutNRT", "nrt": made.signed(made.report(), pods)}


def reserve(pod: Any) -> dict[str, Any]:
    return {"op": "reserve", "node": "n", "pod": pod}


LATE = {"op": "apiPutNRT", "nrt": made.report("m")}
FRACTION = made.pod("f", requests={"cpu": "500m", "memory": "1Gi"})
EXCLUSIVE = fingerprint.Method.EXCLUSIVE.value
PINS_CPUS = {"op": "apiPutNRT", "nrt": made.signed(made.report(zones=[{"cpu": "7"}]), [RUNNING], EXCLUSIVE)}
GONE = {"op": "watchEvent", "eventType": "DELETED", "nrt": made.report()}
WINDOW = [REJECTED, put(RUNNING), {"op": "resyncPrepare"}, reserve(made.pod("later")), {"op": "resyncCommit"}, LOOK_UP]

SHOWN = {
    "cache-late-report": session(LATE, RESYNC, LOOK_UP | {"node": "m"}),
    "cache-report-gone": session(GONE, LOOK_UP),
    "cache-missed-settings": session({"op": "apiPutNRT", "nrt": OTHER_SCOPE}, RESYNC),
    "cache-empty-node": session(REJECTED, put(), RESYNC),
    "cache-ended-pods": session(REJECTED, put(RUNNING), RESYNC, pods=(RUNNING, ENDED)),
    "cache-starting-pods": session(REJECTED, put(RUNNING, PENDING), RESYNC, pods=(RUNNING, PENDING)),
    "cache-pinned-pods": session(REJECTED, PINS_CPUS, RESYNC, pods=(RUNNING, FRACTION)),
    "cache-unreported-pod": session(reserve(PENDING), REJECTED, put(RUNNING), RESYNC, LOOK_UP, pods=(RUNNING, PENDING)),
    "cache-resync-window": session(*WINDOW, pods=(RUNNING,)),
}


def test_every_deliberate_difference_is_shown() -> None:
    assert set(SHOWN) == {each.anchor for each in SUITE.deliberate}


@pytest.mark.parametrize("anchor, given", SHOWN.items(), ids=SHOWN)
def test_a_difference_is_put_down_to_its_repair_alone(anchor: str, given: dict[str, Any]) -> None:
    assert [each.anchor for each in SUITE.deliberate if each.applies(given)] == [anchor]


ALIKE = {
    "a matching report": session(REJECTED, put(RUNNING), RESYNC, DESYNCED, LOOK_UP, pods=(RUNNING,)),
    "a report of other pods": session(REJECTED, put(ENDED), RESYNC, DESYNCED, LOOK_UP, pods=(RUNNING,)),
    "reservations": session(reserve(RUNNING), LOOK_UP, {"op": "unreserve", "node": "n", "pod": RUNNING}, LOOK_UP),
    "a watched change": session({"op": "watchEvent", "eventType": "MODIFIED", "nrt": OTHER_SCOPE}, DESYNCED),
    "a report that cannot be read": session({"op": "apiDeleteNRT", "node": "n"}, REJECTED, RESYNC, DESYNCED, LOOK_UP),
    "a pod that is removed": session({"op": "podRemove", "pod": RUNNING}, REJECTED, RESYNC, DESYNCED, pods=(RUNNING,)),
}


@pytest.mark.parametrize("given", ALIKE.values(), ids=ALIKE)
def test_where_nothing_is_mended_nothing_differs_on_purpose(given: dict[str, Any]) -> None:
    assert cachesessions.play(given) == cachesessions.play(given, repairs.NONE)
    assert not any(each.applies(given) for each in SUITE.deliberate)


def test_quantities_are_compared_by_value_and_everything_else_to_the_letter() -> None:
    given = session(reserve(RUNNING), LOOK_UP)
    expected: Any = {"steps": cachesessions.play(given)}
    zone = expected["steps"][1]["nrt"]["zones"][0]
    zone["resources"][0]["available"] = "8000m"
    assert not SUITE.compare(expected, {"steps": cachesessions.play(given)})
    zone["resources"][0]["available"] = "8001m"
    assert SUITE.compare(expected, {"steps": cachesessions.play(given)})


def test_every_step_has_an_answer_or_none() -> None:
    given = session(REJECTED, DESYNCED, RESYNC, {"op": "placement", "node": "n"}, {"op": "placement", "node": "m"})
    assert cachesessions.play(given) == [
        None,
        {"maybeOverReserved": ("n",), "configChanged": ()},
        {"generation": 0},
        {"containers": 0},
        {"containers": None},
    ]
