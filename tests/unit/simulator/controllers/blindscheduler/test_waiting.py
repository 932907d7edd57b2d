from hypothesis import given
from hypothesis import strategies as st

from numalign.simulator.controllers.blindscheduler.waiting import LEFTOVER, Waiting

A, B, C = ("", "a"), ("", "b"), ("", "c")


def test_by_priority_then_by_age() -> None:
    waiting = Waiting()
    waiting.add(A, 0)
    waiting.add(B, 10)
    waiting.add(C, 0)
    taken = [waiting.take(0) for _ in range(3)]
    assert [entry.key for entry in taken if entry] == [B, A, C]


def test_a_rejected_pod_waits_for_a_change_and_for_its_backoff() -> None:
    waiting = Waiting()
    waiting.add(A, 0)
    backoffs = []
    now = 0.0
    for _ in range(6):
        entry = waiting.take(now)
        assert entry is not None
        waiting.reject(entry, now)
        assert waiting.take(now + 60) is None
        waiting.wake()
        due = waiting.next_due(now)
        assert due is not None
        backoffs.append(due - now)
        now = due
    assert backoffs == [1, 2, 4, 8, 10, 10]


def test_without_any_change_it_is_tried_again_after_five_minutes() -> None:
    waiting = Waiting()
    waiting.add(A, 0)
    entry = waiting.take(0)
    assert entry is not None
    waiting.reject(entry, 0)
    assert waiting.next_due(0) == LEFTOVER
    assert waiting.take(LEFTOVER) is entry


def test_a_pod_that_is_put_off_needs_no_change() -> None:
    waiting = Waiting()
    waiting.add(A, 0)
    entry = waiting.take(0)
    assert entry is not None
    waiting.put_off(entry, 0)
    assert (waiting.take(0.9), waiting.take(1)) == (None, entry)


def test_a_removed_pod_never_comes_out() -> None:
    waiting = Waiting()
    waiting.add(A, 0)
    waiting.remove(A)
    waiting.wake()
    assert (waiting.take(999), waiting.next_due(0), len(waiting)) == (None, None, 0)


STEPS = st.lists(st.tuples(st.sampled_from(["add", "remove", "take", "wake"]), st.sampled_from([A, B, C])), max_size=60)


@given(STEPS)
def test_every_known_pod_is_tried_sooner_or_later(steps: list[tuple[str, tuple[str, str]]]) -> None:
    waiting, known, now = Waiting(), set[tuple[str, str]](), 0.0
    for step, key in steps:
        now += 0.5
        if step == "add":
            waiting.add(key, 0)
            known.add(key)
        elif step == "remove":
            waiting.remove(key)
            known.discard(key)
        elif step == "wake":
            waiting.wake()
        elif (entry := waiting.take(now)) is not None:
            waiting.reject(entry, now)
    taken = set()
    while (left := waiting.take(now + 1000)) is not None:
        taken.add(left.key)
        waiting.remove(left.key)
    assert taken == known
