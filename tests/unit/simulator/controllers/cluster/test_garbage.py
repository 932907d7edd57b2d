from hypothesis import given
from hypothesis import strategies as st

from numalign.simulator.apiserver.storage.resources import CONFIGMAPS
from numalign.simulator.controllers.cluster import garbage
from numalign.simulator.controllers.cluster.garbage import OwnedObject, OwnerGraph
from numalign.simulator.controllers.framework.actions import Action, Delete, MergePatch
from numalign.simulator.trees import Tree


def reference(uid: str, *, blocks: bool = True) -> Tree:
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": uid, "uid": uid, "blockOwnerDeletion": blocks}


def item(uid: str, *owners: str, finalizers: tuple[str, ...] = (), deleting: bool = False) -> OwnedObject:
    return OwnedObject(uid, CONFIGMAPS, ("default", uid), tuple(map(reference, owners)), finalizers, deleting)


def graph(*items: OwnedObject) -> OwnerGraph:
    made = OwnerGraph()
    for each in items:
        made.put(each)
    return made


def wanted(looked_at: OwnedObject, *others: OwnedObject, served: bool = True) -> list[Action]:
    return garbage.reconcile(looked_at, graph(looked_at, *others), lambda reference: served)


def test_what_nobody_owns_stays() -> None:
    assert wanted(item("a")) == []


def test_what_a_living_object_owns_stays() -> None:
    assert wanted(item("a", "owner"), item("owner")) == []


def test_what_is_owned_by_what_is_gone_goes() -> None:
    assert wanted(item("a", "gone")) == [Delete(CONFIGMAPS, item("a").reference(), propagation="Background")]


def test_an_owner_of_a_kind_that_is_not_served_is_believed() -> None:
    assert wanted(item("a", "elsewhere"), served=False) == []


def test_one_living_owner_is_enough_and_the_others_are_forgotten() -> None:
    [patch] = wanted(item("a", "gone", "owner"), item("owner"))
    assert isinstance(patch, MergePatch)
    assert [each["uid"] for each in patch.body["metadata"]["ownerReferences"]] == ["owner"]


def test_in_the_foreground_the_owner_waits_for_what_blocks_it() -> None:
    owner = item("owner", finalizers=("foregroundDeletion",), deleting=True)
    assert wanted(owner, item("a", "owner")) == []
    assert wanted(item("a", "owner"), owner) == [Delete(CONFIGMAPS, item("a").reference(), propagation="Background")]
    [patch] = wanted(owner)
    assert isinstance(patch, MergePatch)
    assert patch.body["metadata"]["finalizers"] is None


def test_in_the_foreground_what_has_dependents_goes_in_the_foreground_too() -> None:
    owner = item("owner", finalizers=("foregroundDeletion",), deleting=True)
    [removal] = wanted(item("a", "owner"), owner, item("child", "a"))
    assert isinstance(removal, Delete)
    assert removal.propagation == "Foreground"


def test_orphans_are_let_go_before_their_owner() -> None:
    owner = item("owner", finalizers=("orphan", "other"), deleting=True)
    released, finalized = wanted(owner, item("a", "owner"))
    assert isinstance(released, MergePatch)
    assert isinstance(finalized, MergePatch)
    assert released.body["metadata"]["ownerReferences"] is None
    assert finalized.body["metadata"]["finalizers"] == ["other"]


UIDS = st.sampled_from("abcdef")
ITEMS = st.dictionaries(
    UIDS,
    st.tuples(st.lists(UIDS, unique=True, max_size=3), st.sampled_from(["", "foregroundDeletion", "orphan"])),
    max_size=6,
)


@given(ITEMS)
def test_nothing_with_a_living_owner_is_ever_removed(drawn: dict[str, tuple[list[str], str]]) -> None:
    items = [
        item(uid, *owners, finalizers=(held,) if held else (), deleting=bool(held))
        for uid, (owners, held) in drawn.items()
    ]
    known = graph(*items)
    for each in items:
        removed = any(isinstance(action, Delete) for action in garbage.reconcile(each, known, lambda reference: True))
        owners = [known.get(reference["uid"]) for reference in each.owners]
        living = [owner for owner in owners if owner is not None and not owner.waits_for_dependents()]
        assert not (removed and living)


@given(st.lists(st.tuples(UIDS, st.lists(UIDS, unique=True, max_size=3)), max_size=20), st.lists(UIDS, max_size=6))
def test_the_graph_knows_the_dependents_of_everybody(put: list[tuple[str, list[str]]], dropped: list[str]) -> None:
    known, kept = OwnerGraph(), dict[str, list[str]]()
    for uid, owners in put:
        known.put(item(uid, *owners))
        kept[uid] = owners
    for uid in dropped:
        known.drop(uid)
        kept.pop(uid, None)
    for uid in "abcdef":
        expected = {each for each, owners in kept.items() if uid in owners}
        assert {each.uid for each in known.dependents(uid)} == expected
