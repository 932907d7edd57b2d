"""Bound volumes are used in their own zone and region."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.placement.rules.rule import Refusal
from numalign.placement.rules.volumes.volumezone import OTHER_ZONE
from tests.unit.placement.rules import stores, worlds
from tests.unit.placement.rules.stores import ZONE, Store, claim, pod, storage_class, volume

OLD_ZONE, REGION = "failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/region"

LABELS = {
    "its zone": ({ZONE: "a"}, "a"),
    "several zones": ({ZONE: "a__b"}, "ab"),
    "the old label, by the new one": ({OLD_ZONE: "b"}, "b"),
    "a label that nodes lack": ({REGION: "a"}, ""),
    "a list with a gap": ({ZONE: "a____c"}, "abc"),
    "other labels": ({"disk": "ssd"}, "abc"),
}


@pytest.mark.parametrize("labels, left", LABELS.values(), ids=LABELS)
def test_nodes_in_the_zones_of_the_volume_are_left(labels: dict[str, str], left: str) -> None:
    store = Store(volume("v", metadata={"labels": labels}), claim("c", bound="v"))
    found = worlds.refusals(store.zone(), pod("c"), store.world)
    assert [name for name, refusal in zip("abc", found, strict=True) if refusal is None] == list(left)
    assert set(found) <= {None, OTHER_ZONE}


def test_nodes_without_zones_and_regions_take_every_volume() -> None:
    store = Store(volume("v", metadata={"labels": {ZONE: "a"}}), claim("c", bound="v"))
    store.world.put_node(3, worlds.node("bare", labels={stores.HOST: "bare"}))
    assert worlds.fitting(store.zone(), pod("c"), store.world) == ["a", "bare"]


REFUSED: dict[str, tuple[Any, str]] = {
    "no claim": (None, 'persistentvolumeclaim "c" not found'),
    "no volume": (claim("c", bound="gone"), 'persistentvolume "gone" not found'),
    "no class": (claim("c", storageClassName=""), "PersistentVolumeClaim had no pv name and storageClass name"),
    "unknown class": (claim("c", storageClassName="gone"), 'storageclass.storage.k8s.io "gone" not found'),
    "class without a mode": (
        claim("c", storageClassName="odd"),
        'VolumeBindingMode not set for StorageClass "odd"',
    ),
    "class that does not wait": (claim("c", storageClassName="eager"), "PersistentVolume had no name"),
}


@pytest.mark.parametrize("given, reason", REFUSED.values(), ids=REFUSED)
def test_claims_that_should_be_bound_refuse_every_node(given: Any, reason: str) -> None:
    eager, odd = storage_class("eager", volumeBindingMode="Immediate"), storage_class("odd", volumeBindingMode="")
    store = Store(eager, odd, *([given] if given else []))
    assert store.zone().prepare(pod("c"), store.world) == Refusal((reason,), unresolvable=True)


def test_a_claim_without_a_name_refuses_every_node() -> None:
    store = Store()
    assert store.zone().prepare(pod(""), store.world) == Refusal(("PersistentVolumeClaim had no name",), True)


def test_waiting_claims_and_claims_of_the_pods_own_are_left_to_others() -> None:
    store = Store(storage_class(), claim("c"))
    asking = pod("c", volumes=[stores.ephemeral("scratch")])
    assert store.zone().prepare(asking, store.world) is None
