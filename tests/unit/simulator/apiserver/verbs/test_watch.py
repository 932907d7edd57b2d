"""Watches: from which moment, and what a watcher of a selection sees of the changes of all."""

import pytest

from numalign.simulator import trees
from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import CONFIGMAPS, PODS
from numalign.simulator.apiserver.verbs.api import Api, Patch
from numalign.simulator.apiserver.verbs.list import SelectionPredicate, predicate
from numalign.simulator.apiserver.verbs.watch import Watch, WatchEvent, WatchStart
from tests.unit.simulator.apiserver import doors


def watched(api: Api, since: WatchStart, labels: str = "") -> list[WatchEvent]:
    """What comes first; later events are added as they come."""
    seen: list[WatchEvent] = []
    watch = Watch(api.state.store, CONFIGMAPS, predicate(CONFIGMAPS, "default", labels), seen.append)
    seen[:0] = watch.begin(since)
    return seen


def told(seen: list[WatchEvent]) -> list[tuple[str, str]]:
    return [(each.kind, each.entry.name) for each in seen]


def relabel(api: Api, name: str, app: str) -> None:
    api.patch(CONFIGMAPS, name, "default", Patch("merge", {"metadata": {"labels": {"app": app}}}))


def test_an_object_that_enters_a_selection_is_added_and_one_that_leaves_is_deleted() -> None:
    api = doors.door()
    seen = watched(api, WatchStart(), "app=red")
    api.create(CONFIGMAPS, doors.named("a", labels={"app": "blue"}))
    for app in ("red", "blue", "green", "red"):
        relabel(api, "a", app)
    api.delete(CONFIGMAPS, "a", "default")
    assert [each.kind for each in seen] == ["ADDED", "DELETED", "ADDED", "DELETED"]


def test_what_leaves_is_shown_as_it_was_with_the_version_of_its_leaving() -> None:
    api = doors.door()
    api.create(CONFIGMAPS, doors.named("a", labels={"app": "red"}))
    seen = watched(api, WatchStart(str(api.state.store.version)), "app=red")
    relabel(api, "a", "blue")
    metadata = trees.decoded(seen[0].entry.data)["metadata"]
    assert (metadata["labels"], metadata["resourceVersion"]) == ({"app": "red"}, str(api.state.store.version))


STARTS = {
    "nothing said": (WatchStart(), [("ADDED", "a"), ("ADDED", "b")]),
    "any": (WatchStart("0"), [("ADDED", "a"), ("ADDED", "b")]),
    "initial events": (WatchStart("", initial=True), [("ADDED", "a"), ("ADDED", "b")]),
    "no initial events": (WatchStart("", initial=False), []),
    "after the first": (WatchStart("2"), [("ADDED", "b"), ("MODIFIED", "a")]),
    "now": (WatchStart("4"), []),
    "a time to come": (WatchStart("99"), []),
}


@pytest.mark.parametrize("since, first", STARTS.values(), ids=STARTS)
def test_a_watch_begins_where_it_is_told(since: WatchStart, first: list[tuple[str, str]]) -> None:
    api = doors.door()
    api.create(CONFIGMAPS, doors.named("a"))
    api.create(CONFIGMAPS, doors.named("b"))
    relabel(api, "a", "red")
    assert told(watched(api, since)) == first


def test_a_watch_from_a_forgotten_version_is_refused() -> None:
    api = doors.door(watch_cache_size=2)
    for name in "abcd":
        api.create(CONFIGMAPS, doors.named(name))
    with pytest.raises(StatusError) as caught:
        watched(api, WatchStart("2"))
    assert (caught.value.code, caught.value.reason) == (410, "Expired")
    assert caught.value.message == "too old resource version: 2 (3)"


def test_a_closed_watch_hears_nothing() -> None:
    api = doors.door()
    seen: list[WatchEvent] = []
    watch = Watch(api.state.store, PODS, SelectionPredicate(), seen.append)
    watch.begin(WatchStart())
    watch.close()
    api.create(PODS, doors.pod("a"))
    assert seen == []
