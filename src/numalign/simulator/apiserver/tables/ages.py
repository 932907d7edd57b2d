"""How long ago something was, in the few characters that kubectl has room for.

The tables and the printer columns of custom resources ask here. `now` always comes from the caller, so a table of the
same objects at the same time is the same table.
"""

from datetime import UTC, datetime
from typing import Final

UNKNOWN: Final = "<unknown>"
INVALID: Final = "<invalid>"

MINUTE: Final = 60
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR
YEAR: Final = 365 * DAY


def since(stamp: str | None, now: datetime) -> str:
    """The age of an RFC 3339 time stamp; what was never stamped has none."""
    if not stamp:
        return UNKNOWN
    then = moment(stamp)
    return INVALID if then is None else human((now - then).total_seconds())


def between(start: str, end: str) -> str:
    first, last = moment(start), moment(end)
    return INVALID if first is None or last is None else human((last - first).total_seconds())


def moment(stamp: str) -> datetime | None:
    """The time that is meant, or None if this is no time stamp."""
    try:
        then = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return then if then.tzinfo else then.replace(tzinfo=UTC)


def human(duration: float) -> str:
    """Two or three significant figures: the finer unit is named only while the coarser one is small."""
    # Clocks of two machines differ a little, so up to two seconds of future count as now.
    if duration <= -2:
        return INVALID
    whole = max(int(duration), 0)
    if whole < 2 * MINUTE:
        return f"{whole}s"
    if whole < 3 * HOUR:
        return _in_two(whole, (MINUTE, "m"), (1, "s"), fine_below=10)
    if whole < 2 * DAY:
        return _in_two(whole, (HOUR, "h"), (MINUTE, "m"), fine_below=8)
    if whole < 2 * YEAR:
        return _in_two(whole, (DAY, "d"), (HOUR, "h"), fine_below=8)
    return _in_two(whole, (YEAR, "y"), (DAY, "d"), fine_below=8)


def _in_two(whole: int, coarse: tuple[int, str], fine: tuple[int, str], *, fine_below: int) -> str:
    count, rest = divmod(whole, coarse[0])
    remainder = rest // fine[0]
    return f"{count}{coarse[1]}{remainder}{fine[1]}" if count < fine_below and remainder else f"{count}{coarse[1]}"
