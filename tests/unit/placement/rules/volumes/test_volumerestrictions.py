"""One machine mounts a disk once, and one pod uses a claim that is for one pod."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.placement.rules.rule import Refusal
from numalign.placement.rules.volumes.volumerestrictions import CLAIM_TAKEN, DISK_TAKEN
from tests.unit.placement.rules import stores, worlds
from tests.unit.placement.rules.stores import Store, claim, pod

ALONE = claim("c", accessModes=["ReadWriteOncePod"])


def gce(name: str = "d", **fields: Any) -> dict[str, Any]:
    return {"name": "v", "gcePersistentDisk": {"pdName": name} | fields}


def aws(name: str = "d", **fields: Any) -> dict[str, Any]:
    return {"name": "v", "awsElasticBlockStore": {"volumeID": name} | fields}


def iscsi(name: str = "d", **fields: Any) -> dict[str, Any]:
    return {"name": "v", "iscsi": {"iqn": name} | fields}


def rbd(*monitors: str, image: str = "d", **fields: Any) -> dict[str, Any]:
    return {"name": "v", "rbd": {"monitors": list(monitors), "image": image, "pool": "p"} | fields}


READERS: dict[str, Any] = {"readOnly": True}
DISKS = {
    "gce, the same": (gce(), gce(), True),
    "gce, another": (gce(), gce("e"), False),
    "gce, both reading": (gce(**READERS), gce(**READERS), False),
    "gce, one reading": (gce(**READERS), gce(), True),
    "aws, both reading": (aws(**READERS), aws(**READERS), True),
    "aws, another": (aws(), aws("e"), False),
    "iscsi, the same": (iscsi(), iscsi(), True),
    "iscsi, both reading": (iscsi(**READERS), iscsi(**READERS), False),
    "rbd, a monitor in common": (rbd("m", "n"), rbd("n", "o"), True),
    "rbd, none in common": (rbd("m"), rbd("n"), False),
    "rbd, another image": (rbd("m"), rbd("m", image="e"), False),
    "rbd, another pool": (rbd("m"), rbd("m", pool="q"), False),
    "rbd, both reading": (rbd("m", **READERS), rbd("m", **READERS), False),
    "different kinds": (gce(), aws(), False),
}


@pytest.mark.parametrize("wanted, there, taken", DISKS.values(), ids=DISKS)
def test_disks_conflict_on_their_node(wanted: dict[str, Any], there: dict[str, Any], taken: bool) -> None:
    store = Store(pods={"b": [pod(volumes=[there])]})
    found = worlds.refusals(store.restrictions(), pod(volumes=[wanted]), store.world)
    assert found == [None, DISK_TAKEN if taken else None, None]


def test_a_claim_for_one_pod_that_is_used_refuses_every_node() -> None:
    store = Store(ALONE, pods={"b": [pod("c")]})
    assert worlds.refusals(store.restrictions(), pod("c"), store.world) == [CLAIM_TAKEN] * 3


FREE = {
    "unused": (ALONE, {}),
    "used in another namespace": (ALONE, {"b": [pod("c", namespace="other")]}),
    "for many": (claim("c"), {"b": [pod("c")]}),
}


@pytest.mark.parametrize("given, pods", FREE.values(), ids=FREE)
def test_claims_that_no_other_pod_needs_are_free(given: Any, pods: dict[str, Any]) -> None:
    store = Store(given, pods=pods)
    assert store.restrictions().prepare(pod("c"), store.world) is None


def test_a_user_on_a_node_that_is_gone_does_not_count() -> None:
    store = Store(ALONE, pods={"b": [pod("c")]})
    store.world.drop_node(1)
    assert store.restrictions().prepare(pod("c"), store.world) is None


def test_a_missing_claim_refuses_every_node() -> None:
    store = Store()
    missing = Refusal(('persistentvolumeclaim "c" not found',), unresolvable=True)
    assert store.restrictions().prepare(pod("c"), store.world) == missing


def test_taking_the_user_away_frees_disk_and_claim() -> None:
    store = Store(ALONE, pods={"b": [pod("c", volumes=[gce()])]})
    rule = store.restrictions()
    prepared = rule.prepare(pod("c", volumes=[gce()]), store.world)
    assert not isinstance(prepared, Refusal)
    assert prepared is not None
    tries = [rule.filter_row(prepared, 1, *what) for what in (((), ()), (["b/0"], ()), (["b/0"], [pod("c")]))]
    assert [code and prepared.refusals[code] for code in tries] == [DISK_TAKEN, 0, CLAIM_TAKEN]


def test_volumes_of_pods_that_went_are_forgotten() -> None:
    store = Store(ALONE, pods={"b": [pod("c", volumes=[gce()])]})
    store.world.drop_pod("b/0")
    found = worlds.refusals(store.restrictions(), pod("c", volumes=[gce()]), store.world)
    assert found == [None, None, None]
    assert store.around.users.with_disks == {}


def test_ephemeral_claims_are_not_looked_at() -> None:
    store = Store()
    assert store.restrictions().prepare(pod(volumes=[stores.ephemeral("scratch")]), store.world) is None
