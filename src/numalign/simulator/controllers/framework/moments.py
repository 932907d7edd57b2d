"""Timestamps of API objects. They have whole seconds, so waiting for one may end up to a second late."""

from datetime import datetime

from numalign.simulator import clock

written = clock.text
"""For example 2026-11-16T05:00:00Z."""


def read(text: str | None) -> datetime | None:
    """None if the timestamp is absent or invalid."""
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None


def since(text: str | None, now: datetime) -> float | None:
    """Seconds from the timestamp to now; None if it is absent or invalid."""
    moment = read(text)
    return (now - moment).total_seconds() if moment is not None else None
