from hypothesis import given
from hypothesis import strategies as st

from numalign.simulator.nodes.environment import TimerQueue


@given(st.lists(st.integers(min_value=0, max_value=5)))
def test_actions_run_in_the_order_of_time_and_then_of_entering(moments: list[int]) -> None:
    agenda, done = TimerQueue(), list[tuple[int, int]]()
    for number, moment in enumerate(moments):
        agenda.at(moment, lambda moment=moment, number=number: done.append((moment, number)))  # type: ignore[misc]
    assert agenda.run(now=10) == len(moments)
    assert done == sorted(done)


def test_what_is_not_due_waits() -> None:
    agenda, done = TimerQueue(), list[str]()
    agenda.at(1.0, lambda: done.append("soon"))
    agenda.at(2.0, lambda: done.append("later"))
    agenda.run(now=1.5)
    assert (done, agenda.next()) == (["soon"], 2.0)


def test_what_was_cancelled_is_never_done_nor_waited_for() -> None:
    agenda, done = TimerQueue(), list[str]()
    agenda.at(1.0, lambda: done.append("cancelled")).cancel()
    assert (agenda.next(), agenda.run(now=2.0), done) == (None, 0, [])


def test_an_action_may_enter_another_one_for_the_same_moment() -> None:
    agenda, done = TimerQueue(), list[str]()

    def first() -> None:
        agenda.at(1.0, lambda: done.append("second"))

    agenda.at(1.0, first)
    assert (agenda.run(now=1.0), done) == (2, ["second"])


def test_a_long_agenda_is_done_in_parts() -> None:
    agenda = TimerQueue()
    for _ in range(5):
        agenda.at(0.0, lambda: None)
    assert [agenda.run(0.0, 2), agenda.run(0.0, 2), agenda.run(0.0, 2)] == [2, 2, 1]


def test_only_an_earlier_entry_disturbs_who_waits() -> None:
    agenda, woken = TimerQueue(), list[float]()
    agenda.earlier = lambda: woken.append(agenda.next() or 0.0)
    for moment in (5.0, 7.0, 3.0):
        agenda.at(moment, lambda: None)
    assert woken == [5.0, 3.0]
