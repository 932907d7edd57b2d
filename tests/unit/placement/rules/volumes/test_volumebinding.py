"""Pods go where their volumes are, or where volumes for them can be found or made."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.api.objects.volumes import SELECTED_NODE
from numalign.placement.rules.rule import Refusal
from numalign.placement.rules.volumes import volumebinding
from tests.unit.placement.rules import stores, worlds
from tests.unit.placement.rules.stores import Store, claim, pod, storage_class, volume

DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z"}

REFUSED: dict[str, tuple[Any, str]] = {
    "missing": (None, 'persistentvolumeclaim "c" not found'),
    "lost": (
        claim("c", phase="Lost", volumeName="gone"),
        'persistentvolumeclaim "c" bound to non-existent persistentvolume "gone"',
    ),
    "being deleted": (claim("c", metadata=DELETED), 'persistentvolumeclaim "c" is being deleted'),
    "of no class": (claim("c", storageClassName=""), volumebinding.UNBOUND),
    "of an unknown class": (claim("c", storageClassName="gone"), volumebinding.UNBOUND),
    "of a class that does not wait": (claim("c", storageClassName="eager"), volumebinding.UNBOUND),
    "of a class without a mode": (
        claim("c", storageClassName="odd"),
        'VolumeBindingMode not set for StorageClass "odd"',
    ),
    "with a volume but not bound": (claim("c", volumeName="v"), volumebinding.UNBOUND),
}


@pytest.mark.parametrize("given, reason", REFUSED.values(), ids=REFUSED)
def test_claims_that_are_not_ready_refuse_every_node(given: Any, reason: str) -> None:
    eager, odd = storage_class("eager", volumeBindingMode="Immediate"), storage_class("odd", volumeBindingMode="")
    store = Store(storage_class(), eager, odd, *([given] if given else []))
    assert store.binding().prepare(pod("c"), store.world) == Refusal((reason,), unresolvable=True)


EPHEMERAL = {
    "not made yet": (
        None,
        'waiting for ephemeral volume controller to create the persistentvolumeclaim "pod-scratch"',
    ),
    "of somebody else": (
        stores.owned("other"),
        "PVC default/pod-scratch was not created for pod default/pod (pod is not owner)",
    ),
    "its own": (stores.owned("pod"), None),
}


@pytest.mark.parametrize("owner, reason", EPHEMERAL.values(), ids=EPHEMERAL)
def test_a_pod_waits_for_claims_of_its_own(owner: dict[str, Any] | None, reason: str | None) -> None:
    made = [] if owner is None else [claim("pod-scratch", bound="v", metadata=owner)]
    store = Store(storage_class(), volume("v"), *made)
    found = worlds.refusals(store.binding(), pod(volumes=[stores.ephemeral("scratch")]), store.world)
    assert {each and each.reasons for each in found} == {reason and (reason,)}


def reasons(store: Store, *claims: str) -> list[tuple[str, ...]]:
    """By node; nothing where the pod fits."""
    found = worlds.refusals(store.binding(), pod(*claims), store.world)
    assert all(each is None or each.unresolvable for each in found)
    return [() if each is None else each.reasons for each in found]


def fitting(store: Store, *claims: str) -> str:
    return "".join(name for name, why in zip("abc", reasons(store, *claims), strict=True) if not why)


def test_bound_claims_bind_the_pod_to_the_reach_of_their_volumes() -> None:
    store = Store(volume("v", node="b"), volume("everywhere"), claim("c", bound="v"), claim("d", bound="everywhere"))
    away = (volumebinding.NOT_IN_REACH,)
    assert reasons(store, "c", "d") == [away, (), away]


def test_a_bound_claim_without_its_volume_fits_nowhere() -> None:
    store = Store(volume("v", node="b"), claim("c", bound="v"), claim("d", bound="gone"))
    away, gone = (volumebinding.NOT_IN_REACH,), (volumebinding.VOLUME_GONE,)
    # A node gives the reason of the first claim that it cannot serve.
    assert (reasons(store, "c", "d"), reasons(store, "d", "c")) == ([away, gone, away], [gone] * 3)


def test_reasons_of_bound_and_waiting_claims_stand_side_by_side() -> None:
    store = Store(storage_class(), volume("v", node="b", phase="Bound"), claim("c", bound="v"), claim("d"))
    both = (volumebinding.NOT_IN_REACH, volumebinding.NO_VOLUME)
    assert reasons(store, "c", "d") == [both, both[1:], both]


# Volumes beside a free one on a; the nodes where a claim for 5Gi finds one.
CANDIDATES: dict[str, tuple[Any, str]] = {
    "free, on b": (volume("w", node="b"), "ab"),
    "free, everywhere": (volume("w"), "abc"),
    "too small": (volume("w", "4Gi", node="b"), "a"),
    "as small as can be": (volume("w", "5Gi", node="b"), "ab"),
    "not available": (volume("w", node="b", phase="Released"), "a"),
    "being deleted": (volume("w", node="b", metadata=DELETED), "a"),
    "of another class": (volume("w", node="b", storageClassName="other"), "a"),
    "a raw device": (volume("w", node="b", volumeMode="Block"), "a"),
    "with other attributes": (volume("w", node="b", volumeAttributesClassName="gold"), "a"),
    "with other access modes": (volume("w", node="b", accessModes=["ReadOnlyMany"]), "a"),
    "with more access modes": (volume("w", node="b", accessModes=["ReadOnlyMany", "ReadWriteOnce"]), "ab"),
    "for another claim": (volume("w", node="b", claimRef={"namespace": "default", "name": "x"}), "a"),
    "for an earlier claim of that name": (
        volume("w", node="b", claimRef={"namespace": "default", "name": "c", "uid": "before"}),
        "a",
    ),
    "set aside for the claim": (volume("w", node="b", claimRef={"namespace": "default", "name": "c"}), "b"),
    "set aside, though it suits nothing else": (
        volume("w", node="b", phase="Bound", claimRef={"namespace": "default", "name": "c", "uid": "uid-c"}),
        "b",
    ),
    "set aside, but too small": (
        volume("w", "1Gi", node="b", claimRef={"namespace": "default", "name": "c"}),
        "a",
    ),
}


@pytest.mark.parametrize("other, left", CANDIDATES.values(), ids=CANDIDATES)
def test_a_waiting_claim_finds_free_volumes_that_suit_it(other: Any, left: str) -> None:
    store = Store(storage_class(), volume("v", node="a"), other, claim("c"))
    assert fitting(store, "c") == left


def test_a_claim_can_choose_volumes_by_label() -> None:
    labelled = volume("w", node="b", metadata={"labels": {"disk": "ssd"}})
    store = Store(storage_class(), volume("v", node="a"), labelled)
    store.put(claim("c", selector={"matchLabels": {"disk": "ssd"}}))
    assert fitting(store, "c") == "b"


def test_two_claims_of_a_pod_need_two_volumes() -> None:
    store = Store(storage_class(), volume("v1", node="a"), volume("v2", node="a"), volume("w", node="b"))
    store.put(claim("c"), claim("d", "6Gi"))
    assert fitting(store, "c", "d") == "a"
    rule = store.binding()
    prepared = rule.prepare(pod("d", "c"), store.world)
    assert isinstance(prepared, volumebinding.PreparedVolumes)
    binds = rule.plan(prepared, 0, "a").binds
    # The smaller claim is served first.
    assert [(each.claim.metadata.name, each.volume.metadata.name) for each in binds] == [("c", "v1"), ("d", "v2")]


def test_the_smallest_volume_that_is_large_enough_is_taken() -> None:
    store = Store(storage_class(), volume("big", "9Gi"), volume("small", "6Gi"), volume("tiny", "1Gi"), claim("c"))
    rule = store.binding()
    prepared = rule.prepare(pod("c"), store.world)
    assert isinstance(prepared, volumebinding.PreparedVolumes)
    assert [each.volume.metadata.name for each in rule.plan(prepared, 2, "c").binds] == ["small"]


NO_VOLUME, NO_SPACE = (volumebinding.NO_VOLUME,), (volumebinding.NO_SPACE,)
FAST = claim("c", storageClassName="fast")
IN_B = [{"matchLabelExpressions": [{"key": stores.ZONE, "values": ["b"]}]}]
REPORTS = stores.csi_driver("csi.example", storageCapacity=True)

MADE: dict[str, tuple[tuple[Any, ...], list[tuple[str, ...]]]] = {
    "anywhere": ((storage_class("fast", "csi.example"),), [(), (), ()]),
    "nowhere": ((storage_class("fast"),), [NO_VOLUME] * 3),
    "in a zone": ((storage_class("fast", "csi.example", allowedTopologies=IN_B),), [NO_VOLUME, (), NO_VOLUME]),
    "by an empty term": ((storage_class("fast", "csi.example", allowedTopologies=[{}]),), [NO_VOLUME] * 3),
    "where there is space": (
        (storage_class("fast", "csi.example"), REPORTS, stores.space("s", "5Gi", zone="a")),
        [(), NO_SPACE, NO_SPACE],
    ),
    "where there is space for one so large": (
        (storage_class("fast", "csi.example"), REPORTS, stores.space("s", "50Gi", maximumVolumeSize="4Gi")),
        [NO_SPACE] * 3,
    ),
    "by a driver that does not report": (
        (storage_class("fast", "csi.example"), stores.csi_driver("csi.example"), stores.space("s", "1Gi")),
        [(), (), ()],
    ),
    "with space in no place": (
        (storage_class("fast", "csi.example"), REPORTS, stores.space("s", "50Gi", nodeTopology=None)),
        [NO_SPACE] * 3,
    ),
}


@pytest.mark.parametrize("things, expected", MADE.values(), ids=MADE)
def test_a_claim_without_a_volume_gets_one_made(things: tuple[Any, ...], expected: list[tuple[str, ...]]) -> None:
    assert reasons(Store(*things, FAST), "c") == expected


def test_a_claim_whose_volume_is_being_made_goes_to_the_node_it_is_made_for() -> None:
    chosen = claim("c", storageClassName="fast", metadata={"annotations": {SELECTED_NODE: "b"}})
    store = Store(storage_class("fast", "csi.example"), chosen)
    assert reasons(store, "c") == [NO_VOLUME, (), NO_VOLUME]


def test_built_in_volumes_are_reached_as_their_driver_says_where_it_runs() -> None:
    in_zone = {"required": {"nodeSelectorTerms": [{"matchExpressions": [stores.among(stores.ZONE, "a", "b")]}]}}
    disk = volume("v", nodeAffinity=in_zone, awsElasticBlockStore={"volumeID": "vol-1"})
    store = Store(disk, claim("c", bound="v"), stores.csi_node("b", migrated="kubernetes.io/aws-ebs"))
    # On b the zone is looked for under the driver's own label, which the node does not have.
    assert fitting(store, "c") == "a"


def test_pods_without_claims_are_left_alone() -> None:
    store = Store()
    asking = pod(volumes=[{"name": "tmp", "emptyDir": {}}])
    assert store.binding().prepare(asking, store.world) is None
    assert store.binding().prepare_score(asking, store.world, worlds.all_rows(store.world)) is None
