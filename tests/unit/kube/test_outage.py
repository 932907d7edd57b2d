"""A lasting failure is logged when it begins, ever more rarely, and when it ends."""

from collections.abc import Iterable

from numalign.kube.outage import FIRST_INTERVAL, HEALTHY_SECONDS, LONGEST_INTERVAL, Outage, SharedOutage


def told(outage: Outage, moments: Iterable[float]) -> list[float]:
    """When a line says that it failed, of all the moments in which it does."""
    return [now for now in moments if outage.failed(now) is not None]


def test_lines_come_at_growing_distances() -> None:
    assert told(Outage(), range(0, 4 * 3600, 5)) == [
        0,
        15,
        45,
        105,
        225,
        465,
        945,
        *range(1845, 4 * 3600, int(LONGEST_INTERVAL)),
    ]


def test_its_end_is_logged_once_with_its_duration() -> None:
    outage = Outage()
    told(outage, range(100, 160))
    assert (outage.worked(160), outage.worked(161)) == (60, None)


def test_success_without_an_outage_is_not_logged() -> None:
    assert Outage().worked(5) is None


def test_what_fails_again_at_once_goes_on_where_it_was() -> None:
    outage, lines = Outage(), []
    for now in range(0, 60, 2):
        lines += told(outage, [now])
        lines += [now + 1] if outage.worked(now + 1) is not None else []
    assert lines == [0, 1, 16, 17, 46, 47]


def test_after_a_healthy_period_the_next_failure_is_logged_at_once() -> None:
    outage = Outage()
    told(outage, range(10))
    outage.worked(10)
    again = 11 + HEALTHY_SECONDS
    assert told(outage, [again, again + 1, again + FIRST_INTERVAL]) == [again, again + FIRST_INTERVAL]


def test_an_outage_that_many_notice_is_logged_once_and_ends_with_the_last() -> None:
    outage, names = SharedOutage(), [f"resource {number}" for number in range(17)]
    assert [outage.failed(name, 0.0) for name in names] == [0.0] + [None] * 16
    assert [outage.failed(name, 15.0) for name in names] == [15.0] + [None] * 16
    assert [outage.worked(name, 20.0) for name in names] == [None] * 16 + [20.0]
