"""The store: order, the way back in time, and the index by node."""

from hypothesis import given
from hypothesis import strategies as st

from numalign.simulator import trees
from numalign.simulator.apiserver.storage.resources import CONFIGMAPS, PODS
from numalign.simulator.apiserver.storage.store import Store
from tests.unit.simulator.apiserver import doors

STEPS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9) | st.none()), max_size=25)


@given(STEPS)
def test_every_version_can_be_seen_again(steps: list[tuple[str, int | None]]) -> None:
    """A step writes a value under a name, or removes it."""
    store = Store()
    past: dict[int, dict[str, int]] = {1: {}}
    collection = store.collection(CONFIGMAPS)
    for name, value in steps:
        old = store.entry(CONFIGMAPS, name, "default")
        before = trees.decoded(old.data) if old else None
        if value is not None:
            store.commit(CONFIGMAPS, doors.named(name) | {"value": value}, old, before)
        elif old is not None and before is not None:
            store.remove(CONFIGMAPS, trees.decoded(old.data), old, before)
        past[store.version] = {entry.name: trees.decoded(entry.data)["value"] for entry in collection.within("")}
    for version, then in past.items():
        seen = {entry.name: trees.decoded(entry.data)["value"] for entry in collection.as_of(version)}
        assert (seen, list(seen)) == (then, sorted(then))


def test_pods_are_found_by_their_node_while_they_are_there() -> None:
    api = doors.door()
    for name in ("b", "a"):
        api.create(PODS, doors.pod(name))
        api.bind(name, "default", "node-1")
    collection = api.state.store.collection(PODS)
    bound = [entry.name for entry in collection.on_node("node-1")]
    api.delete(PODS, "a", "default", grace=0)
    assert (bound, [entry.name for entry in collection.on_node("node-1")]) == (["a", "b"], ["b"])


def test_namespaces_that_begin_alike_are_kept_apart() -> None:
    api = doors.door()
    for namespace in ("team", "team-a", "tea"):
        api.create(CONFIGMAPS, doors.named("x", namespace))
    assert [tree["metadata"]["namespace"] for tree in api.list(CONFIGMAPS, "team").items] == ["team"]


def test_the_ring_forgets_the_oldest() -> None:
    api = doors.door(watch_cache_size=3)
    for name in "abcde":
        api.create(CONFIGMAPS, doors.named(name))
    cache = api.state.store.collection(CONFIGMAPS).watch_cache
    assert (cache.floor, [event.version for event in cache.after(cache.floor)]) == (3, [4, 5, 6])
    assert (cache.reaches(3), cache.reaches(2)) == (True, False)
