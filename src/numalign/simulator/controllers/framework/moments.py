"""Points in time as API objects write them, and the whole seconds between them.

Objects carry seconds only; a controller that waits until one is over waits to the end of it."""

from datetime import datetime

from numalign.simulator import clock

written = clock.text
"""2026-11-16T05:00:00Z."""


def read(text: str | None) -> datetime | None:
    """None for what is absent or no time at all."""
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None


def since(text: str | None, now: datetime) -> float | None:
    """Seconds from then to now; None where nothing readable is written."""
    moment = read(text)
    return (now - moment).total_seconds() if moment is not None else None
