import asyncio
import random
from datetime import UTC, datetime, timedelta, timezone

import pytest

from numalign.kube import clock as kube_clock
from numalign.simulator import clock

BEGAN = datetime(2026, 11, 16, 5, 0, 0, 700_000, tzinfo=UTC)


class Hands:
    """Seconds that a test turns."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self) -> float:
        return self.seconds


def standing(hands: Hands, began: datetime = BEGAN) -> clock.Clock:
    return clock.Clock(hands, began, random.Random(1))


def test_it_serves_as_the_clock_of_our_client() -> None:
    used: kube_clock.Clock = standing(Hands(0.0))
    assert used.now() == 0.0


@pytest.mark.parametrize(
    "later, written",
    [
        pytest.param(0.0, "2026-11-16T05:00:00Z", id="as it begins, cut to whole seconds"),
        pytest.param(0.2, "2026-11-16T05:00:00Z", id="before the next second of the day"),
        pytest.param(0.5, "2026-11-16T05:00:01Z", id="after it"),
        pytest.param(86_400.0, "2026-11-17T05:00:00Z", id="a day later"),
    ],
)
def test_objects_carry_the_time_of_day_in_whole_seconds(later: float, written: str) -> None:
    hands = Hands(1234.5)
    standing_still = standing(hands)
    hands.seconds += later
    assert standing_still.rfc3339() == written == clock.text(standing_still.wall())


def test_a_time_of_day_elsewhere_is_told_in_utc() -> None:
    elsewhere = BEGAN.astimezone(timezone(timedelta(hours=9)))
    assert standing(Hands(0.0), elsewhere).rfc3339() == "2026-11-16T05:00:00Z"


def test_a_moment_that_has_passed_can_be_written_too() -> None:
    hands = Hands(0.3)
    used = standing(hands)
    hands.seconds = 3600.0
    assert [used.rfc3339(0.3), used.rfc3339()] == ["2026-11-16T05:00:00Z", "2026-11-16T06:00:00Z"]


def test_chances_come_from_the_seed() -> None:
    one, other = standing(Hands(0.0)), standing(Hands(0.0))
    assert [one.chance() for _ in range(3)] == [other.chance() for _ in range(3)]


def test_real_time_goes_on_by_itself() -> None:
    used = clock.real(random.Random(1))
    before = used.now()
    asyncio.run(used.sleep(0))
    assert used.now() >= before
    assert abs(datetime.now(UTC) - used.wall()) < timedelta(seconds=60)


def test_a_block_that_takes_too_long_is_ended() -> None:
    async def wait() -> None:
        used = clock.real(random.Random(1))
        async with used.timeout(0.0):
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        asyncio.run(wait())
