"""Where one pod is, and what has become of it."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.placement.columns.holdings import Source
from numalign.scheduler.explain import explanations
from numalign.scheduler.explain.explanations import Stage
from tests.unit.scheduler import waitingpods
from tests.unit.scheduler.servers import GPU, on, trainer
from tests.unit.scheduler.towns import Town

STAGES: dict[str, tuple[dict[str, Any], dict[str, Any], Stage]] = {
    "gated": ({"schedulingGates": [{"name": "quota"}]}, {}, Stage.GATED),
    "waiting": ({}, {"phase": "Pending"}, Stage.WAITING),
    "bound": ({"nodeName": "a"}, {"phase": "Pending"}, Stage.BOUND),
    "running": ({"nodeName": "a"}, {"phase": "Running"}, Stage.RUNNING),
    "rejected": ({"nodeName": "a"}, {"phase": "Failed", "reason": "TopologyAffinityError"}, Stage.REJECTED),
    "out of something": ({"nodeName": "a"}, {"phase": "Failed", "reason": "OutOfcpu"}, Stage.REJECTED),
    "failed": ({"nodeName": "a"}, {"phase": "Failed", "reason": "Evicted"}, Stage.FAILED),
    "succeeded": ({"nodeName": "a"}, {"phase": "Succeeded"}, Stage.SUCCEEDED),
}


@pytest.mark.parametrize("spec, status, stage", STAGES.values(), ids=STAGES)
def test_the_stage_of_a_pod(spec: dict[str, Any], status: dict[str, Any], stage: Stage) -> None:
    assert explanations.of(waitingpods.pod("p", spec, status), Town().cluster).stage is stage


def test_a_running_pod_is_shown_with_its_zones() -> None:
    town = Town()
    town.put(trainer("p", gpus=4), "a")
    found = explanations.of(on(trainer("p", gpus=4), "a", phase="Running"), town.cluster)
    assert found.tenant is not None
    assert (found.tenant.source, found.tenant.containers) == (Source.PREDICTED, {"main": ((0,),)})
    assert [each.amount for each in found.tenant.charges if each.resource == GPU] == [4]


def test_a_decision_that_is_under_way_counts() -> None:
    town = Town()
    assert town.fits_on(trainer("p"), "a")
    found = explanations.of(trainer("p"), town.cluster)
    assert (found.stage, found.node) == (Stage.DECIDED, "a")


def test_what_the_scheduler_wrote_is_passed_on_while_it_waits() -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
    found = explanations.of(waitingpods.pod("p", {}, {"conditions": [condition]}), Town().cluster)
    assert (found.reason, found.message) == ("Unschedulable", "0/1 nodes")


def test_what_the_node_wrote_is_passed_on_after_that() -> None:
    status = {"phase": "Failed", "reason": "TopologyAffinityError", "message": "Resources cannot be allocated"}
    found = explanations.of(waitingpods.pod("p", {"nodeName": "a"}, status), Town().cluster)
    assert (found.reason, found.message, found.tenant) == ("TopologyAffinityError", status["message"], None)


def test_a_pod_on_its_way_out_is_leaving() -> None:
    leaving = waitingpods.pod("p", {"nodeName": "a"}, {"phase": "Running"}, deletionTimestamp="2026-01-01T00:00:00Z")
    assert explanations.of(leaving, Town().cluster).is_leaving
