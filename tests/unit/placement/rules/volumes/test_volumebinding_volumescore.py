"""Nodes score by how their volumes, or their free space, fit what claims ask for."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.placement.rules import stores, worlds
from tests.unit.placement.rules.stores import Store, claim, pod, space, storage_class, volume

FULLER = {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]}
FAST = (storage_class("fast", "csi.example"), stores.csi_driver("csi.example", storageCapacity=True))


def scored(store: Store, *claims: str, **args: Any) -> list[int] | None:
    return worlds.scores(store.binding(**args), pod(*claims), store.world)


def test_emptier_volumes_score_higher_unless_the_profile_says_otherwise() -> None:
    store = Store(storage_class(), claim("c", "5Gi"))
    store.put(volume("v", "10Gi", node="a"), volume("w", "20Gi", node="b"), volume("x", "5Gi", node="c"))
    assert scored(store, "c") == [50, 75, 0]
    assert scored(store, "c", **FULLER) == [50, 25, 100]


def test_claims_of_a_class_count_together_and_classes_on_average() -> None:
    store = Store(storage_class(), storage_class("other"), nodes="a")
    store.put(volume("v", "10Gi"), volume("w", "30Gi"), volume("x", "10Gi", storageClassName="other"))
    store.put(claim("c", "5Gi"), claim("d", "5Gi"), claim("e", "3Gi", storageClassName="other"))
    assert (scored(store, "c", "d"), scored(store, "c", "d", "e")) == ([75], [73])


SPACES = {
    "by what is left": ((space("s", "10Gi", zone="a"), space("t", "40Gi", zone="b"), space("u", "5Gi")), [50, 88, 0]),
    "by all that is left, whatever the largest volume": (
        (space("s", "20Gi", maximumVolumeSize="5Gi"),),
        [75, 75, 75],
    ),
}


@pytest.mark.parametrize("spaces, expected", SPACES.values(), ids=SPACES)
def test_volumes_to_be_made_score_by_the_space_that_is_reported(spaces: tuple[Any, ...], expected: list[int]) -> None:
    store = Store(*FAST, claim("c", "5Gi", storageClassName="fast"), *spaces)
    assert scored(store, "c") == expected


def test_two_volumes_are_made_of_the_same_space() -> None:
    store = Store(*FAST, space("s", "20Gi"), nodes="a")
    store.put(claim("c", storageClassName="fast"), claim("d", storageClassName="fast"))
    assert scored(store, "c", "d") == [50]


def test_where_some_volume_exists_only_those_count() -> None:
    store = Store(*FAST, storage_class(), volume("v", "10Gi", node="a"), space("s", "50Gi"), nodes="a")
    store.put(claim("c"), claim("d", storageClassName="fast"))
    assert scored(store, "c", "d") == [50]


def test_bound_claims_score_nothing() -> None:
    store = Store(volume("v"), claim("c", bound="v"))
    assert scored(store, "c") == [0, 0, 0]
