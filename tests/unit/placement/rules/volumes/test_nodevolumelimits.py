"""A node takes as many volumes of a driver as it can attach."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numalign.api.objects.volumes import CSINode, PersistentVolume, PersistentVolumeClaim, VolumeAttachment
from numalign.placement.rules.rule import Refusal
from numalign.placement.rules.volumes.nodevolumelimits import TOO_MANY
from tests.unit.placement.rules import stores, worlds
from tests.unit.placement.rules.stores import Store, attachment, claim, csi_node, pod, storage_class, volume

DRIVER = "csi.example"
EBS = "ebs.csi.aws.com"
ONE_EACH = (csi_node("a", csi_example=1), csi_node("b", csi_example=2))


def disk(name: str, **fields: Any) -> tuple[PersistentVolume, PersistentVolumeClaim]:
    """A volume of the driver and a claim of that name that is bound to it."""
    source = fields if fields else {"csi": {"driver": DRIVER, "volumeHandle": name}}
    return volume(f"pv-{name}", **source), claim(name, bound=f"pv-{name}")


def fitting(store: Store, *claims: str, **spec: Any) -> str:
    return "".join(worlds.fitting(store.limits(), pod(*claims, **spec), store.world))


# What is on a, and whether a second volume fits under a limit of one.
HELD: dict[str, tuple[list[Any], list[Any], bool]] = {
    "nothing": ([], [], True),
    "another volume": ([pod("other")], [], False),
    "the same volume": ([pod("new")], [], True),
    "a volume that is still attached": ([], [attachment("x", "a", "pv-other")], False),
    "one attached and used": ([pod("new")], [attachment("x", "a", "pv-new")], True),
    "one attached elsewhere": ([], [attachment("x", "b", "pv-other")], True),
    "attached by another driver": ([], [attachment("x", "a", "pv-other", "other.example")], True),
    "attached, but the volume is gone": ([], [attachment("x", "a", "pv-gone")], True),
    "a claim that is gone": ([pod("gone")], [], True),
    "the one volume twice": ([pod("new"), pod("new")], [], True),
}


@pytest.mark.parametrize("on_a, more, fits", HELD.values(), ids=HELD)
def test_volumes_count_once_per_node(on_a: list[Any], more: list[Any], fits: bool) -> None:
    store = Store(*ONE_EACH, *disk("new"), *disk("other"), *more, pods={"a": on_a})
    found = worlds.refusals(store.limits(), pod("new"), store.world)
    assert found == [None if fits else TOO_MANY, None, None]


def test_what_is_attached_and_new_again_counts_twice() -> None:
    store = Store(*ONE_EACH, *disk("new"), attachment("x", "a", "pv-new"))
    assert fitting(store, "new") == "bc"


def test_two_new_volumes_need_room_for_two() -> None:
    assert fitting(Store(*ONE_EACH, *disk("one"), *disk("two")), "one", "two") == "bc"


def test_a_waiting_claim_counts_for_the_driver_of_its_class() -> None:
    store = Store(*ONE_EACH, storage_class("fast", DRIVER), *disk("other"), pods={"a": [pod("other")]})
    store.put(claim("new", storageClassName="fast"))
    assert fitting(store, "new") == "bc"
    store.put(claim("new", storageClassName="unknown", metadata={"resourceVersion": "2"}))
    assert fitting(store, "new") == "abc"


BUILT_IN = {
    "by claim": (disk("new", awsElasticBlockStore={"volumeID": "aws://a/vol-1"}), ["new"], []),
    "in the pod": ((), [], [{"name": "v", "awsElasticBlockStore": {"volumeID": "vol-1"}}]),
    "of a class": (
        (storage_class("ebs", "kubernetes.io/aws-ebs"), claim("new", storageClassName="ebs")),
        ["new"],
        [],
    ),
}


@pytest.mark.parametrize("things, claims, inline", BUILT_IN.values(), ids=BUILT_IN)
def test_built_in_volumes_count_for_their_driver(things: Any, claims: list[str], inline: list[Any]) -> None:
    store = Store(csi_node("a", ebs_csi_aws_com=0), csi_node("b", csi_example=0), *things)
    assert fitting(store, *claims, volumes=inline) == "bc"


def test_limits_that_are_not_reported_are_no_limits() -> None:
    store = Store(csi_node("a", csi_example=None), *disk("new"))
    assert fitting(store, "new") == "abc"


def test_a_driver_can_ask_for_nodes_where_it_runs() -> None:
    needed = stores.csi_driver(DRIVER, preventPodSchedulingIfMissing=True)
    store = Store(needed, csi_node("a", csi_example=5), csi_node("b"), *disk("new"))
    missing = Refusal(("csi.example CSI driver is not installed on the node",))
    assert worlds.refusals(store.limits(), pod("new"), store.world) == [None, missing, missing]


def test_nodes_without_drivers_do_not_take_built_in_volumes_for_a_drivers() -> None:
    needed = stores.csi_driver(EBS, preventPodSchedulingIfMissing=True)
    store = Store(needed, csi_node("a", csi_example=5), *disk("new", awsElasticBlockStore={"volumeID": "vol-1"}))
    assert fitting(store, "new") == "bc"


PROBLEMS = {
    "missing": (["gone"], [], 'looking up PVC default/gone: persistentvolumeclaim "gone" not found'),
    "without a name": ([""], [], "PersistentVolumeClaim had no name"),
    "of another pod": (
        [],
        [stores.ephemeral("scratch")],
        "PVC default/pod-scratch was not created for pod default/pod (pod is not owner)",
    ),
}


@pytest.mark.parametrize("claims, inline, why", PROBLEMS.values(), ids=PROBLEMS)
def test_claims_that_cannot_be_counted_refuse_every_node(claims: list[str], inline: list[Any], why: str) -> None:
    store = Store(claim("pod-scratch", metadata=stores.owned("other")))
    found = worlds.refusals(store.limits(), pod(*claims, volumes=inline), store.world)
    assert found == [Refusal((why,), unresolvable=True)] * 3


def test_taking_pods_away_makes_room() -> None:
    store = Store(*ONE_EACH, *disk("new"), *disk("other"), pods={"a": [pod("other")]})
    rule = store.limits()
    prepared = rule.prepare(pod("new"), store.world)
    assert prepared is not None
    tries = [rule.filter_row(prepared, 0, *what) for what in (((), ()), (["a/0"], ()), ((), [pod("new")]))]
    assert [code and prepared.refusals[code] for code in tries] == [TOO_MANY, 0, 0]


def test_pods_without_volumes_to_attach_are_left_alone() -> None:
    store = Store()
    assert store.limits().prepare(pod(volumes=[{"name": "tmp", "emptyDir": {}}]), store.world) is None


things = st.one_of(
    st.sampled_from("abc").flatmap(lambda name: st.integers(0, 3).map(lambda limit: csi_node(name, csi_example=limit))),
    st.sampled_from("xyz").flatmap(lambda name: st.sampled_from(disk(name))),
    st.builds(attachment, st.sampled_from("mn"), st.sampled_from("abc"), st.sampled_from(["pv-x", "pv-y"])),
    st.sampled_from("xyz").map(lambda name: claim(name, storageClassName="fast", metadata={"resourceVersion": "2"})),
)
drops = st.sampled_from(
    [(CSINode, "a"), (PersistentVolume, "pv-x"), (PersistentVolumeClaim, "default/y"), (VolumeAttachment, "m")]
)
pods = st.tuples(st.sampled_from("uv"), st.integers(0, 2), st.lists(st.sampled_from("xyz"), max_size=2))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(things, drops, pods), max_size=15))
def test_counts_follow_every_change(history: list[Any]) -> None:
    store, asking = Store(storage_class("fast", DRIVER)), pod("x", "z")
    store.put(*disk("x"), *disk("z"))
    for step in history:
        match step:
            case (type() as kind, name):
                store.shelf(kind).drop(name)
            case (uid, row, claims):
                store.world.put_pod(uid, row, pod(*claims, name=uid))
            case thing:
                store.put(thing)
        # A row on its own is counted afresh, so both answers agree only if nothing was missed.
        worlds.refusals(store.limits(), asking, store.world)
