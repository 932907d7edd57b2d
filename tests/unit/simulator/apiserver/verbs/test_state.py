"""Events are forgotten an hour after they were last written."""

from numalign.simulator.apiserver.storage.resources import EVENTS
from numalign.simulator.apiserver.verbs.api import Patch
from tests.unit.simulator.apiserver import doors


def names(door: doors.Door) -> list[str]:
    return [tree["metadata"]["name"] for tree in door.api.list(EVENTS).items]


def test_an_old_event_goes_when_the_next_is_made() -> None:
    door = doors.Door()
    door.api.create(EVENTS, doors.named("old"))
    door.hand.seconds = 3599
    door.api.create(EVENTS, doors.named("later"))
    before = names(door)
    door.hand.seconds = 3600
    changes = door.changes(EVENTS)
    door.api.create(EVENTS, doors.named("new"))
    assert (before, names(door)) == (["later", "old"], ["later", "new"])
    assert [(change.kind, change.key[1]) for change in changes] == [("DELETED", "old"), ("ADDED", "new")]


def test_an_event_that_is_written_again_lives_on() -> None:
    door = doors.Door()
    door.api.create(EVENTS, doors.named("old"))
    door.hand.seconds = 3000
    door.api.patch(EVENTS, "old", "default", Patch("merge", {"count": 2}))
    door.hand.seconds = 4000
    door.api.create(EVENTS, doors.named("new"))
    assert names(door) == ["new", "old"]


def test_an_event_that_was_deleted_is_not_deleted_again() -> None:
    door = doors.Door()
    door.api.create(EVENTS, doors.named("old"))
    door.api.delete(EVENTS, "old", "default")
    door.hand.seconds = 4000
    door.api.create(EVENTS, doors.named("new"))
    assert names(door) == ["new"]


def test_an_event_that_was_written_twice_in_one_moment_goes_once() -> None:
    door = doors.Door()
    door.api.create(EVENTS, doors.named("old"))
    door.api.patch(EVENTS, "old", "default", Patch("merge", {"count": 2}))
    door.hand.seconds = 4000
    door.api.create(EVENTS, doors.named("new"))
    assert names(door) == ["new"]
