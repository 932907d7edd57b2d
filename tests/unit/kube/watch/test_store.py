"""What each new look at an object changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.api.errors import BadObject
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import Pod
from numalign.kube.lists import Unreadable
from numalign.kube.watch.store import Change, ListedObjects, Store

Thing = Pod | Unreadable


def pod(version: int, uid: str = "u1", name: str = "a") -> Pod:
    return Pod(metadata=ObjectMeta(name=name, namespace="ns", uid=uid, resource_version=str(version)))


def broken(version: int, uid: str = "u1") -> Unreadable:
    return Unreadable(pod(version, uid).metadata, BadObject("Pod", "ns/a", "spec", "is 7"))


PUTS: dict[str, tuple[Thing, list[Change[Pod]]]] = {
    "a new version is an update": (pod(2), [Change(pod(1), pod(2))]),
    "the same version is no news": (pod(1), []),
    "another object of the name ends the first": (pod(2, "u2"), [Change(pod(1), None), Change(None, pod(2, "u2"))]),
    "an unreadable version leaves the last one": (broken(2), []),
    "an unreadable successor ends the first": (broken(2, "u2"), [Change(pod(1), None)]),
}


@pytest.mark.parametrize("thing, changes", PUTS.values(), ids=PUTS)
def test_seen_again(thing: Thing, changes: list[Change[Pod]]) -> None:
    store = Store[Pod]()
    assert store.put(pod(1)) == [Change(None, pod(1))]
    assert store.put(thing) == changes


@pytest.mark.parametrize("thing, changes", PUTS.values(), ids=PUTS)
def test_a_complete_list_makes_the_same_changes(thing: Thing, changes: list[Change[Pod]]) -> None:
    store = Store[Pod]()
    store.put(pod(1))
    found = ListedObjects(store)
    found.add([thing])
    assert store.replace(found) == changes


REMOVALS: dict[str, tuple[Thing, list[Change[Pod]]]] = {
    "with its final state": (pod(2), [Change(pod(1), None, pod(2))]),
    "unreadably": (broken(2), [Change(pod(1), None)]),
    "a predecessor of the name": (pod(2, "u0"), []),
    "one that is not there": (pod(2, name="b"), []),
}


@pytest.mark.parametrize("thing, changes", REMOVALS.values(), ids=REMOVALS)
def test_seen_to_be_deleted(thing: Thing, changes: list[Change[Pod]]) -> None:
    store = Store[Pod]()
    store.put(pod(1))
    assert store.remove(thing) == changes
    assert len(store) == (0 if changes else 1)


def test_what_a_look_does_not_find_is_gone_before_anything_new_comes() -> None:
    store = Store[Pod]()
    store.put(pod(1))
    found = ListedObjects(store)
    found.add([pod(5, "u2", "b")])
    assert store.replace(found) == [Change(pod(1), None), Change(None, pod(5, "u2", "b"))]


def test_what_did_not_change_stays_the_same_object() -> None:
    store = Store[Pod]()
    first = pod(1)
    store.put(first)
    found = ListedObjects(store)
    found.add([pod(1)])
    assert store.replace(found) == []
    assert store.get("a", "ns") is first


THINGS = st.builds(pod, st.integers(1, 3), st.sampled_from(["u1", "u2"]), st.sampled_from("abc"))


@given(st.lists(st.lists(THINGS)))
def test_after_a_look_the_store_is_what_was_found(looks: list[list[Pod]]) -> None:
    store, heard = Store[Pod](), dict[str, Pod]()
    for look in looks:
        found = ListedObjects(store)
        found.add(look)
        for change in store.replace(found):
            thing = change.new or change.old
            assert thing is not None
            assert heard.pop(thing.metadata.name, None) == change.old
            heard |= {thing.metadata.name: change.new} if change.new else {}
        assert {each.metadata.name: each for each in store} == heard == {each.metadata.name: each for each in look}
