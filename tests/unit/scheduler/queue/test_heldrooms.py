"""Rooms that Nodes hold are left free for the pods that come in the place of others."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from msgspec import structs

from numalign.api.attributes import heldrooms as written
from numalign.api.attributes.heldrooms import HeldRoom
from numalign.api.errors import BadObject
from numalign.api.objects.meta import OwnerReference
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod
from numalign.scheduler.queue.heldrooms import HeldRooms
from tests.unit.scheduler import waitingpods
from tests.unit.scheduler.waitingpods import asking, pod

START = datetime(2026, 1, 1, tzinfo=UTC)


class Time:
    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> float:
        return self.seconds

    def wall(self) -> datetime:
        return START + timedelta(seconds=self.seconds)


def owned(name: str, owner: str = "set", cpu: str = "4") -> Pod:
    made = pod(name, asking(cpu=cpu))
    controller = OwnerReference(kind="ReplicaSet", name=owner, uid=owner, controller=True)
    return structs.replace(made, metadata=structs.replace(made.metadata, owner_references=(controller,)))


def room(name: str = "old", seconds: float = 60.0) -> HeldRoom:
    return HeldRoom(uid=f"uid-{name}", until=(START + timedelta(seconds=seconds)).isoformat(), pod=owned(name))


def holding(*rooms: HeldRoom, name: str = "n") -> Node:
    made, text = waitingpods.node(name), written.written(rooms)
    annotations = {written.NAME: text} if text else {}
    return structs.replace(made, metadata=structs.replace(made.metadata, annotations=annotations))


class Stage:
    def __init__(self) -> None:
        self.queue, self.time = waitingpods.queue(), Time()
        self.rooms = HeldRooms(self.queue, cast(Any, self.time))

    def kept_from(self, name: str, priority: int = 0) -> int:
        """How many rooms of the node a pod has to leave free."""
        return len(self.queue.nominations.above("n", pod(name, {"priority": priority})))


def test_a_room_is_kept_from_all_but_critical_pods_until_the_node_holds_it_no_more() -> None:
    stage = Stage()
    stage.rooms.node(holding(room()))
    assert [stage.kept_from("other", each) for each in (0, 1_000_000_000, 2_000_000_000)] == [1, 1, 0]
    stage.rooms.node(holding())
    assert stage.kept_from("other") == 0


def test_the_next_pod_of_the_controller_takes_it_over_and_gives_it_back_when_it_goes() -> None:
    stage = Stage()
    stage.rooms.node(holding(room()))
    assert stage.rooms.awaited(owned("stranger", "other-set")) == ""
    assert stage.rooms.awaited(owned("smaller", cpu="2")) == ""
    assert stage.rooms.awaited(owned("new")) == "n"
    assert (stage.rooms.awaited(owned("newer")), stage.kept_from("other")) == ("", 0)
    stage.rooms.waits_no_more("uid-new")
    assert stage.kept_from("other") == 1
    assert stage.rooms.awaited(owned("newer")) == "n"


def test_a_heartbeat_that_repeats_the_annotation_holds_nothing_again() -> None:
    stage = Stage()
    stage.rooms.node(holding(room()))
    stage.rooms.awaited(owned("new"))
    stage.rooms.node(holding(room()))
    stage.rooms.node(holding(room(seconds=90.0)))
    assert stage.kept_from("other") == 0


@pytest.mark.parametrize("end", ["time", "node"])
def test_a_room_ends_with_its_time_and_with_its_node(end: str) -> None:
    stage = Stage()
    stage.rooms.node(holding(room(seconds=60.0)))
    stage.time.seconds = 59.0
    stage.rooms.tick()
    assert stage.kept_from("other") == 1
    if end == "time":
        stage.time.seconds = 60.0
        stage.rooms.tick()
    else:
        stage.rooms.node_gone("n")
    assert stage.kept_from("other") == 0
    stage.rooms.node(holding(room("late", seconds=-1.0)))
    assert stage.kept_from("other") == 0, "a room whose time is over is not held"


def test_pods_that_were_kept_away_are_tried_again_when_the_room_is_free() -> None:
    stage = Stage()
    stage.rooms.node(holding(room()))
    stage.queue.add(pod("waits"), 0.0)
    waitingpods.tried(stage.queue, waitingpods.refused("NodeResourcesFit"), 0.0)
    assert list(waitingpods.names(stage.queue)) == ["unschedulable"]
    stage.rooms.node(holding())
    assert list(waitingpods.names(stage.queue)) != ["unschedulable"]


@pytest.mark.parametrize(
    "text",
    ["nonsense", "{}", '[{"uid": "a"}]', '[{"uid": "a", "until": "soon", "pod": {}}]', "[" * 100_000, "x" * 200_000],
    ids=["no JSON", "no list", "fields missing", "no time", "nested", "long"],
)
def test_an_annotation_that_makes_no_sense_is_named_and_holds_nothing(text: str) -> None:
    stage = Stage()
    stage.rooms.node(holding(room()))
    broken = holding()
    broken = structs.replace(broken, metadata=structs.replace(broken.metadata, annotations={written.NAME: text}))
    with pytest.raises(BadObject, match=r"Node n, metadata.annotations\[numalign.io/held-rooms\].*remove"):
        stage.rooms.node(broken)
    assert stage.kept_from("other") == 0
    stage.rooms.node(broken)
