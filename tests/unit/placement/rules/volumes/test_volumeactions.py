"""What is written for a pod's claims, what rules see meanwhile, and how far it is."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from numalign.api.objects.volumes import BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE
from numalign.placement.rules.volumes import volumeactions, volumebinding
from numalign.placement.rules.volumes.volumeactions import VolumeFailure, VolumePlan, VolumeProgress
from tests.unit.placement.rules import worlds
from tests.unit.placement.rules.stores import Store, claim, pod, storage_class, volume

REFERENCE = {
    "kind": "PersistentVolumeClaim",
    "apiVersion": "v1",
    "namespace": "default",
    "name": "c",
    "uid": "uid-c",
    "resourceVersion": "1",
}
SELECTED = {"annotations": {SELECTED_NODE: "a"}}


def store(*more: Any) -> Store:
    """A claim c that finds a volume on a, and a claim d for which one is made."""
    fast = storage_class("fast", "csi.example")
    return Store(storage_class(), fast, volume("v", node="a"), claim("c"), claim("d", storageClassName="fast"), *more)


def planned(there: Store, *claims: str) -> VolumePlan:
    rule = there.binding()
    prepared = rule.prepare(pod(*claims), there.world)
    assert isinstance(prepared, volumebinding.PreparedVolumes)
    return rule.plan(prepared, 0, "a")


def test_a_volume_is_reserved_and_a_claim_gets_its_node() -> None:
    plan = planned(store(), "c", "d")
    assert [each.patch for each in plan.binds] == [
        {
            "metadata": {"resourceVersion": "1", "annotations": {BOUND_BY_CONTROLLER: "yes"}},
            "spec": {"claimRef": REFERENCE},
        }
    ]
    assert [each.patch for each in plan.selections] == [{"metadata": {"resourceVersion": "1"} | SELECTED}]


def test_a_volume_that_was_set_aside_before_only_gets_the_rest_of_the_reference() -> None:
    there = store()
    there.put(volume("v", node="a", claimRef={"namespace": "default", "name": "c"}))
    (bind,) = planned(there, "c").binds
    assert (bind.bound.metadata.annotations, bind.patch["spec"]) == ({}, {"claimRef": REFERENCE})


def test_nothing_is_written_for_bound_claims() -> None:
    there = store()
    there.put(claim("c", bound="v"))
    assert planned(there, "c").is_empty


def test_other_pods_see_what_is_about_to_be_written_until_it_is_taken_back() -> None:
    there = store(claim("e"))
    plan = planned(there, "c", "d")
    volumeactions.assume(plan, there.stock)
    assert worlds.fitting(there.binding(), pod("d"), there.world) == ["a"]
    assert worlds.fitting(there.binding(), pod("e"), there.world) == []
    volumeactions.take_back(plan, there.stock)
    assert worlds.fitting(there.binding(), pod("d"), there.world) == ["a", "b", "c"]
    assert worlds.fitting(there.binding(), pod("e"), there.world) == ["a"]


def test_what_the_api_server_says_later_ends_what_was_assumed() -> None:
    there = store(claim("e"))
    volumeactions.assume(planned(there, "c"), there.stock)
    there.put(volume("v", node="a"))
    assert worlds.fitting(there.binding(), pod("e"), there.world) == []
    there.put(volume("v", node="a", metadata={"resourceVersion": "2"}))
    assert worlds.fitting(there.binding(), pod("e"), there.world) == ["a"]


NEWER = {"resourceVersion": "2"}
BOUND = {"annotations": {BIND_COMPLETED: "yes"}} | NEWER
MADE = {"annotations": {BIND_COMPLETED: "yes", SELECTED_NODE: "a"}} | NEWER
TAKEN = volume("v", node="a", metadata=NEWER, claimRef=REFERENCE)

# What is put after both claims were planned for node a.
STEPS: dict[str, tuple[tuple[str, ...], tuple[Any, ...], volumeactions.Step]] = {
    "nothing seen yet": (("c",), (), VolumeProgress.WAITING),
    "seen, not bound": (("c",), (TAKEN,), VolumeProgress.WAITING),
    "bound": (("c",), (TAKEN, claim("c", volumeName="v", metadata=BOUND)), VolumeProgress.DONE),
    "taken back": (("c",), (volume("v", node="a", metadata=NEWER),), VolumeFailure('ClaimRef got reset for pv "v"')),
    "moved": (
        ("c",),
        (volume("v", node="b", metadata=NEWER, claimRef=REFERENCE),),
        VolumeFailure('pv "v" node affinity doesn\'t match node "a": no matching NodeSelectorTerms'),
    ),
    "not made yet": (("d",), (claim("d", metadata=SELECTED | NEWER),), VolumeProgress.WAITING),
    "made, volume not seen": (("d",), (claim("d", volumeName="new", metadata=MADE),), VolumeProgress.WAITING),
    "made": (("d",), (claim("d", volumeName="new", metadata=MADE), volume("new")), VolumeProgress.DONE),
    "could not be made": (
        ("d",),
        (claim("d", metadata={"annotations": {"x": "y"}} | NEWER),),
        VolumeFailure('provisioning failed for PVC "d"'),
    ),
    "annotations gone": (
        ("d",),
        (claim("d", metadata=NEWER),),
        VolumeFailure('selectedNode annotation reset for PVC "d"'),
    ),
}


@pytest.mark.parametrize("claims, things, expected", STEPS.values(), ids=STEPS)
def test_binding_goes_on_until_it_is_done_or_fails(
    claims: tuple[str, ...], things: tuple[Any, ...], expected: volumeactions.Step
) -> None:
    there = store()
    plan = planned(there, *claims)
    there.put(*things)
    assert volumeactions.of(plan, there.stock, there.world) == expected


GONE = {
    "node": 'failed to get node "z": node "z" not found',
    "volume": 'failed to check binding: persistentvolume "v" not found',
}


def test_binding_fails_when_its_parts_are_gone() -> None:
    there = store()
    plan = planned(there, "c", "d")
    elsewhere = msgspec.structs.replace(plan, node="z")
    assert volumeactions.of(elsewhere, there.stock, there.world) == VolumeFailure(GONE["node"])
    there.stock.volumes.drop("v")
    assert volumeactions.of(plan, there.stock, there.world) == VolumeFailure(GONE["volume"])


def test_binding_fails_when_a_claim_is_gone() -> None:
    there = store()
    plan = planned(there, "d")
    there.stock.claims.drop("default/d")
    why = 'failed to check provisioning pvc: persistentvolumeclaim "default/d" not found'
    assert volumeactions.of(plan, there.stock, there.world) == VolumeFailure(why)
