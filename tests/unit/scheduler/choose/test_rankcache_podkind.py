"""Pods are recognised by the parts that they share with one that was met before."""

from __future__ import annotations

from msgspec import structs

from numalign.api.objects.pod import ClaimVolume, Container, Pod, PodSpec, Volume
from numalign.scheduler.choose import rankcache
from numalign.scheduler.choose.rankcache import PodKinds
from tests.unit.scheduler import waitingpods

FIRST = waitingpods.pod("first", {"containers": [{"name": "main"}]})


def met() -> PodKinds[str]:
    found = PodKinds[str](most=2)
    found.keep(rankcache.kind_parts(FIRST), "known")
    return found


def like_first(**spec: object) -> Pod:
    return structs.replace(FIRST, spec=structs.replace(FIRST.spec, **spec))


def test_a_pod_that_shares_all_parts_is_known_whatever_its_name() -> None:
    meta = structs.replace(FIRST.metadata, name="second", uid="2")
    assert met().find(rankcache.kind_parts(structs.replace(FIRST, metadata=meta))) == "known"


def test_a_pod_that_shares_only_containers_is_not() -> None:
    assert met().find(rankcache.kind_parts(like_first(node_selector={"disk": "ssd"}))) is None


def test_files_of_a_pods_own_make_no_difference_claims_do() -> None:
    own, claim = Volume(name="kube-api-access-1"), ClaimVolume(claim_name="data")
    assert met().find(rankcache.kind_parts(like_first(volumes=(own,)))) == "known"
    assert (
        met().find(rankcache.kind_parts(like_first(volumes=(Volume(name="v", persistent_volume_claim=claim),)))) is None
    )


def test_no_more_kinds_are_kept_than_asked_for() -> None:
    known = met()
    for name in ("one", "two"):
        known.keep(rankcache.kind_parts(Pod(spec=PodSpec(containers=(Container(name=name),)))), name)
    assert known.find(rankcache.kind_parts(FIRST)) is None
