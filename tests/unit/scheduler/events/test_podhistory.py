"""A pod's history: each entry once, limited in size, found by name or uid, and the same in the log."""

from __future__ import annotations

import io
import logging

import pytest

from numalign.api.objects.meta import ObjectMeta
from numalign.process import log
from numalign.scheduler.events import podhistory
from numalign.scheduler.events.podhistory import FIRST_LINES, LAST_LINES, SILENT, PodHistories


def pod(name: str, uid: str = "") -> ObjectMeta:
    return ObjectMeta(name=name, namespace="default", uid=uid or f"uid-{name}")


def recorded(times: int = 0) -> PodHistories:
    kept = PodHistories(lambda: 5.0)
    for number in range(times):
        kept.record(pod("p"), "tried", attempt=number)
    return kept


def test_a_story_is_found_by_name_and_by_uid() -> None:
    kept = recorded(2)
    kept.record(pod("q"), "waits")
    for key in ("default/p", "uid-p"):
        (story,) = kept.of(key)
        assert [(line.at, line.what, line.about) for line in story.lines] == [
            (5.0, "tried", {"attempt": 0}),
            (5.0, "tried", {"attempt": 1}),
        ]


def test_two_pods_of_one_name_have_two_stories_the_latest_last() -> None:
    kept = recorded()
    for uid in ("first", "second"):
        kept.record(pod("p", uid), "waits")
    assert [story.uid for story in kept.of("default/p")] == ["first", "second"]


def test_of_a_long_story_the_middle_is_left_out_and_counted() -> None:
    many = FIRST_LINES + LAST_LINES + 10
    (story,) = recorded(many).of("default/p")
    numbers = [line.about["attempt"] for line in story.lines]
    assert numbers == [*range(FIRST_LINES), *range(many - LAST_LINES, many)]
    assert story.left_out == 10


def test_of_many_pods_those_not_heard_of_for_longest_are_forgotten() -> None:
    kept = PodHistories(lambda: 0.0, most_pods=2)
    for name in ("a", "b", "a", "c"):
        kept.record(pod(name), "waits")
    assert [len(kept.of(f"default/{name}")) for name in "abc"] == [1, 0, 1]


def test_the_silent_history_keeps_nothing() -> None:
    SILENT.record(pod("p"), "waits")
    assert len(SILENT) == 0


@pytest.mark.parametrize("verbosity, lines", [(2, 1), (4, 2)], ids=["usual", "debugging"])
def test_the_log_has_the_same_with_name_and_uid_in_every_line(verbosity: int, lines: int) -> None:
    stream, logger = io.StringIO(), logging.getLogger(log.ROOT)
    before = logger.handlers[:], logger.propagate, logger.level
    log.start("text", verbosity, stream)
    try:
        kept = recorded(1)
        kept.warn(pod("p"), "turned away", why="TopologyAffinityError")
    finally:
        logger.handlers[:], logger.propagate = before[0], before[1]
        logger.setLevel(before[2])
    written = stream.getvalue().splitlines()
    assert len(written) == lines
    assert all("pod=default/p uid=uid-p" in line for line in written)
    assert written[-1].endswith("why=TopologyAffinityError")
    assert podhistory.LOG.name.startswith(log.ROOT)
