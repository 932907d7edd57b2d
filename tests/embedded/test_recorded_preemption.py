"""The plugin's own preemption table through the whole scheduler: one node, one pod on it, one that needs its place.

With flavour reference as the plugin did, with flavour exact as the kubelet would have it."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.api.nrt import normalise, placementcodec
from numalign.api.nrt.placementcodec import ContainerRef
from numalign.simulator import virtualtime
from numalign.simulator.apiserver.storage.resources import PODS
from numalign.simulator.trees import Tree
from tests.embedded.barecluster import Bare
from tests.embedded.test_reference_cache import complete
from tests.oracle import plugincases

ROUNDS = 45.0
NAMESPACE = "ns"
NAME = "numalign"
WITHOUT_PREFILTER = "integration_preemption/004"
"""The plugin loses track of victims if its PreFilter is switched off; what we simulate does not depend on that."""

RECORDED = {
    case.id: case.case
    for path in plugincases.WHOLE
    for case in plugincases.cases(path)
    if case.suite == "integration_preemption"
}


def configured(args: dict[str, Any], flavour: str) -> dict[str, Any]:
    settings = [
        {"name": "NodeResourceTopologyMatch", "args": args},
        {"name": "Numalign", "args": {"flavour": flavour}},
    ]
    return {"profiles": [{"schedulerName": NAME, "pluginConfig": settings}]}


def named(given: dict[str, Any], who: str) -> Tree:
    pod = complete(given[who]["pod"])
    return {**pod, "spec": {**pod["spec"], "schedulerName": NAME, "priorityClassName": who}}


def furnished(given: dict[str, Any]) -> Bare:
    bare = Bare()
    bare.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    for who in ("victim", "preemptor"):
        meta, value = {"name": who}, given[who]["priority"]
        bare.create({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": meta, "value": value})
    bare.create(given["node"])
    bare.create(given["nrtBeforeVictim"])
    return bare


def with_victim(given: dict[str, Any]) -> Tree:
    report: Tree = given["nrtWithVictim"]
    if not given["nrtCarriesPlacement"]:
        return report
    meta, spec = given["victim"]["pod"]["metadata"], given["victim"]["pod"]["spec"]
    places = [ContainerRef(meta["namespace"], meta["name"], each["name"]) for each in spec["containers"]]
    payload = placementcodec.encode(dict.fromkeys(places, given["victim"]["numaNode"]), len(report["zones"]))
    attribute = {"name": normalise.PLACEMENT_METADATA, "value": payload.metadata}
    return {**report, "attributes": [*report["attributes"], attribute]}


async def played(given: dict[str, Any], flavour: str) -> tuple[bool, bool]:
    """Whether the victim had to go, and whether the other one is on the node in the end."""
    bare, victim, preemptor = furnished(given), named(given, "victim"), named(given, "preemptor")
    async with bare.scheduler(configured(given["config"], flavour)):
        await bare.clock.sleep(3.0)
        bare.create(victim)
        await bare.clock.sleep(3.0)
        bare.set_status(NAMESPACE, victim["metadata"]["name"], phase="Running", startTime="2026-01-01T00:00:00Z")
        bare.write(with_victim(given))
        await bare.clock.sleep(ROUNDS)
        bare.create(preemptor)
        await bare.clock.sleep(ROUNDS)
        evicted = "deletionTimestamp" in bare.pods()[victim["metadata"]["name"]]["metadata"]
        if evicted:
            bare.api.delete(PODS, victim["metadata"]["name"], NAMESPACE, grace=0)
            bare.write(given["nrtBeforeVictim"])
        await bare.clock.sleep(2 * ROUNDS)
    return evicted, bool(bare.bound()[preemptor["metadata"]["name"]])


def played_out(case: dict[str, Any], flavour: str) -> dict[str, bool]:
    evicted, bound = virtualtime.run(played(case["input"], flavour))
    return {"eviction": evicted, "preemptorEventuallyScheduled": bound}


@pytest.mark.parametrize("name", sorted(RECORDED.keys() - {WITHOUT_PREFILTER}))
def test_as_the_plugin_with_its_flavour(name: str) -> None:
    assert played_out(RECORDED[name], "reference") == RECORDED[name]["expect"]


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_whatever_the_plugin_s_cache_is_set_to_a_lesser_pod_makes_room(name: str) -> None:
    given = RECORDED[name]["input"]
    lesser = given["victim"]["priority"] < given["preemptor"]["priority"]
    assert played_out(RECORDED[name], "exact") == {"eviction": lesser, "preemptorEventuallyScheduled": lesser}
