"""Recorded runs of a whole scheduler: whatever does not go as the steps expect comes out as a difference."""

from typing import Any

import pytest
from msgspec import to_builtins

from numalign.api.decode import structs
from numalign.oracle.plugin.suites import caches
from tests.unit.placement.reference.caches import made

(SUITE,) = (suite for suite in caches.SUITES if suite.name == "integration_cache")
NODE = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "20", "memory": "20Gi"}}}
POINTER = {"note": "see steps"}
FIRST, SECOND = (made.pod(name, node="", phase="", requests={"cpu": "6", "memory": "1Gi"}) for name in ("a", "b"))


def plain(thing: structs.Wire) -> Any:
    return to_builtins(thing, enc_hook=structs.encodable)


def create(pod: structs.Wire, node: str) -> dict[str, Any]:
    return {"op": "createPod", "pod": plain(pod), "expectedNode": node}


def differences(config: dict[str, Any], *steps: dict[str, Any]) -> list[Any]:
    given = {"config": config, "nodes": [NODE], "nrts": [plain(made.report())], "steps": list(steps)}
    return list(SUITE.compare(POINTER, SUITE.answer({"input": given})))


OVER, DISCARD = {"cacheResyncPeriodSeconds": 5}, {"discardReservedNodes": True}
RUNS: dict[str, tuple[dict[str, Any], str]] = {
    "charged to both zones": (OVER, ""),
    "open again once bound": (DISCARD, "n"),
    "trusts the report": ({}, "n"),
}


@pytest.mark.parametrize("config, second", RUNS.values(), ids=RUNS)
def test_the_cache_decides_about_the_second_pod(config: dict[str, Any], second: str) -> None:
    assert differences(config, create(FIRST, "n"), create(SECOND, second)) == []
    assert len(differences(config, create(FIRST, "n"), create(SECOND, "" if second else "n"))) == 1
    assert len(differences(config, create(FIRST, "elsewhere"), create(SECOND, second))) == 1


def test_a_pod_that_waits_is_tried_again_when_its_node_is_refreshed() -> None:
    bound = [{"op": "setPodPhase", "podIndexScheduled": 0, "phase": "Running"}]
    update = {"op": "updateNRT", "nrt": plain(made.signed(made.report(zones=[{"cpu": "4"}, made.ZONE]), [FIRST]))}
    begin = [create(FIRST, "n"), create(SECOND, "n")]
    assert len(differences(OVER, *begin, *bound)) == 1
    assert differences(OVER, *begin, {"op": "expectScheduledCount", "count": 1}, *bound, update) == []
    assert len(differences(OVER, *begin, *bound, update, {"op": "expectScheduledCount", "count": 1})) == 1


def test_an_expectation_beside_the_steps_is_not_passed_over() -> None:
    given = {"config": OVER, "nodes": [NODE], "nrts": [], "steps": []}
    assert SUITE.compare({"result": True}, SUITE.answer({"input": given}))
