from hypothesis import given
from hypothesis import strategies as st

from numalign.simulator.controllers.framework.runner import RETRY, WorkQueue

ADDED = st.lists(st.tuples(st.sampled_from("abcde"), st.integers(0, 20)), max_size=40)


def drained(queue: WorkQueue[str], now: float) -> list[str]:
    taken = []
    while (key := queue.take(now)) is not None:
        taken.append(key)
    return taken


@given(ADDED)
def test_every_key_comes_out_once_by_its_earliest_time(added: list[tuple[str, int]]) -> None:
    queue: WorkQueue[str] = WorkQueue()
    for key, due in added:
        queue.add(key, due)
    earliest = {key: min(due for other, due in added if other == key) for key, _ in added}
    taken = drained(queue, 100)
    assert sorted(taken) == sorted(earliest)
    assert [earliest[key] for key in taken] == sorted(earliest.values())


def test_nothing_comes_out_before_its_time() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("later", 5)
    assert (queue.take(4.9), queue.next_due(), queue.take(5)) == (None, 5, "later")


def test_equal_times_keep_their_order() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for key in "cab":
        queue.add(key, 1)
    assert drained(queue, 1) == ["c", "a", "b"]


def test_failures_wait_longer_each_time_until_one_works() -> None:
    queue: WorkQueue[str] = WorkQueue()
    waits = []
    for _ in range(4):
        queue.retry("a", 0)
        waits.append(queue.next_due())
        queue.take(1000)
    queue.forget("a")
    queue.retry("a", 0)
    assert [*waits, queue.next_due()] == [0.005, 0.01, 0.02, 0.04, 0.005]


def test_no_failure_waits_for_ever() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for _ in range(5000):
        queue.retry("a", 0)
        queue.take(RETRY.longest)
    queue.retry("a", 0)
    assert queue.next_due() == RETRY.longest
