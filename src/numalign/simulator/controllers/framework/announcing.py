"""Which events are written and which are counted, as the controllers' recorder in client-go does it.

`recording` asks for each event. Equal ones raise a count; from the tenth of a kind on that differs only in its text,
within ten minutes, all become one combined event; and after 25 about one object only one more is let through every five
minutes. So a storm of rejected pods leaves a few events behind, here as there. Pure: time is an argument."""

from typing import Final, TypeVar

from msgspec import Struct

V = TypeVar("V")

COMBINED: Final = "(combined from similar events): "
MOST_ALIKE: Final = 10
ALIKE_WITHIN: Final = 600.0
BURST: Final = 25
REFILL: Final = 300.0
MOST_REMEMBERED: Final = 4096


class Told(Struct, frozen=True):
    """One event, without the object's version, which differs every time. `about` is its uid, or its name."""

    component: str
    about: str
    gravity: str
    reason: str
    message: str


class Write(Struct, frozen=True):
    """`serial` 0 is a new event; else the one that was written with it happened `count` times now."""

    serial: int
    count: int
    message: str


class _Similar(Struct):
    messages: dict[str, None]
    last: float


class _Written(Struct):
    serial: int
    count: int


class _Bucket(Struct):
    tokens: float
    last: float


class Announcer:
    def __init__(self) -> None:
        self._similar: dict[tuple[str, ...], _Similar] = {}
        self._written: dict[tuple[str, ...], _Written] = {}
        self._buckets: dict[tuple[str, ...], _Bucket] = {}

    def heard(self, told: Told, now: float) -> Write | None:
        """What is to be written for it, if anything; `wrote` tells under which number it was."""
        key, message = self._combined(told, now)
        if not self._allowed((told.component, told.about, told.gravity), now):
            return None
        known = self._written.get(key)
        if known is None:
            return Write(0, 1, message)
        known.count += 1
        return Write(known.serial, known.count, message)

    def wrote(self, told: Told, message: str, serial: int) -> None:
        """A new event was written under this number."""
        self._written[self._key(told, message)] = _Written(serial, 1)
        _cut(self._written)

    def _combined(self, told: Told, now: float) -> tuple[tuple[str, ...], str]:
        group = (told.component, told.about, told.gravity, told.reason)
        similar = self._similar.get(group)
        if similar is None or now - similar.last > ALIKE_WITHIN:
            similar = self._similar[group] = _Similar({}, now)
            _cut(self._similar)
        similar.last = now
        similar.messages[told.message] = None
        if len(similar.messages) < MOST_ALIKE:
            return self._key(told, told.message), told.message
        similar.messages.pop(next(iter(similar.messages)))
        message = COMBINED + told.message
        return self._key(told, message), message

    def _key(self, told: Told, message: str) -> tuple[str, ...]:
        # All combined ones are one event, whose text follows the latest.
        text = COMBINED if message.startswith(COMBINED) else message
        return told.component, told.about, told.gravity, told.reason, text

    def _allowed(self, source: tuple[str, ...], now: float) -> bool:
        bucket = self._buckets.get(source)
        if bucket is None:
            bucket = self._buckets[source] = _Bucket(BURST, now)
            _cut(self._buckets)
        bucket.tokens = min(BURST, bucket.tokens + (now - bucket.last) / REFILL)
        bucket.last = now
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True


def _cut(remembered: dict[tuple[str, ...], V]) -> None:
    if len(remembered) > MOST_REMEMBERED:
        del remembered[next(iter(remembered))]
