from hypothesis import given
from hypothesis import strategies as st

from numalign.simulator.nodes.environment import TimerQueue


@given(st.lists(st.integers(min_value=0, max_value=5)))
def test_actions_run_in_the_order_of_time_and_then_of_entering(moments: list[int]) -> None:
    timers, done = TimerQueue(), list[tuple[int, int]]()
    for number, moment in enumerate(moments):
        timers.at(moment, lambda moment=moment, number=number: done.append((moment, number)))  # type: ignore[misc]
    assert timers.run(now=10) == len(moments)
    assert done == sorted(done)


def test_what_is_not_due_waits() -> None:
    timers, done = TimerQueue(), list[str]()
    timers.at(1.0, lambda: done.append("soon"))
    timers.at(2.0, lambda: done.append("later"))
    timers.run(now=1.5)
    assert (done, timers.next()) == (["soon"], 2.0)


def test_what_was_cancelled_is_never_done_nor_waited_for() -> None:
    timers, done = TimerQueue(), list[str]()
    timers.at(1.0, lambda: done.append("cancelled")).cancel()
    assert (timers.next(), timers.run(now=2.0), done) == (None, 0, [])


def test_an_action_may_enter_another_one_for_the_same_moment() -> None:
    timers, done = TimerQueue(), list[str]()

    def first() -> None:
        timers.at(1.0, lambda: done.append("second"))

    timers.at(1.0, first)
    assert (timers.run(now=1.0), done) == (2, ["second"])


def test_a_long_agenda_is_done_in_parts() -> None:
    timers = TimerQueue()
    for _ in range(5):
        timers.at(0.0, lambda: None)
    assert [timers.run(0.0, 2), timers.run(0.0, 2), timers.run(0.0, 2)] == [2, 2, 1]


def test_only_an_earlier_entry_disturbs_who_waits() -> None:
    timers, woken = TimerQueue(), list[float]()
    timers.earlier = lambda: woken.append(timers.next() or 0.0)
    for moment in (5.0, 7.0, 3.0):
        timers.at(moment, lambda: None)
    assert woken == [5.0, 3.0]
