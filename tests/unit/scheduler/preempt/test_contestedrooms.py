"""When a preemptor waits until other schedulers have reacted to the room that its victims left."""

from __future__ import annotations

from numalign.scheduler.preempt.contestedrooms import MOST_ROUNDS, SETTLING, ContestedRooms
from numalign.scheduler.queue.nominations import Nominations
from tests.unit.scheduler import servers
from tests.unit.scheduler.servers import Servers, trainer

PREEMPTOR = trainer("prod", gpus=4)
UID = PREEMPTOR.metadata.uid


class Room:
    """A node from which pods are evicted for a preemptor, while another scheduler's pod waits."""

    def __init__(self, *, contested: bool = True) -> None:
        self.cluster, self.nominations = Servers("a").cluster, Nominations()
        self.rooms = ContestedRooms(self.cluster, self.nominations)
        if contested:
            self.cluster.waits_elsewhere(trainer("other", schedulerName="default-scheduler"))

    def evict(self, *victims: str) -> None:
        self.nominations.put(PREEMPTOR, "a")
        self.nominations.expect(UID, [f"uid-{each}" for each in victims])


def test_the_preemptor_waits_until_others_have_reacted() -> None:
    room = Room()
    room.evict("v")
    assert room.rooms.held(UID, 10.0) == "a"
    assert room.rooms.held(UID, 10.0 + SETTLING / 2) == "a"
    assert room.rooms.held(UID, 10.0 + SETTLING) == ""


def test_it_does_not_wait_before_its_victims_are_gone_or_where_nothing_else_waits() -> None:
    room = Room()
    room.cluster.pod(servers.on(trainer("v"), "a"), 0.0)
    room.evict("v")
    assert room.rooms.held(UID, 10.0) == ""
    alone = Room(contested=False)
    alone.evict("v")
    assert alone.rooms.held(UID, 10.0) == ""


def test_a_pod_that_was_placed_or_deleted_elsewhere_is_no_rival() -> None:
    other = trainer("other", schedulerName="default-scheduler")
    placed, deleted = Room(), Room()
    placed.cluster.pod(servers.on(other, "b"), 1.0)
    deleted.cluster.pod_gone(other, 1.0)
    for room in (placed, deleted):
        room.evict("v")
        assert room.rooms.held(UID, 10.0) == ""


def test_it_waits_for_a_few_rounds_and_then_takes_its_chance() -> None:
    room, held = Room(), list[str]()
    for number in range(MOST_ROUNDS + 1):
        room.evict(f"v{number}")
        held.append(room.rooms.held(UID, 10.0 * number))
    assert held == ["a"] * MOST_ROUNDS + [""]


def test_preemptors_that_are_gone_are_not_remembered() -> None:
    room = Room()
    room.evict("v")
    room.rooms.held(UID, 1.0)
    room.nominations.remove(UID)
    other = trainer("second")
    room.nominations.put(other, "a")
    room.nominations.expect(other.metadata.uid, ["uid-w"])
    room.rooms.held(other.metadata.uid, 2.0)
    assert set(room.rooms._rooms) == {other.metadata.uid}
