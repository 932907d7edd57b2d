"""LEB89: integers as short printable text, without characters that JSON or HTML would escape.

`placementcodec` writes its vectors in it. One symbol holds 0 to 63, two reach 1,663; only the last symbol of a number
is a terminal, so no separator is needed (exporter spec 8.2). The reader refuses what the upstream decoder accepts by
mistake: foreign bytes, incomplete numbers and overlong spellings. Written by hand: no library implements it."""

from collections.abc import Iterable, Iterator
from typing import Final

from numalign.api import errors

ALPHABET: Final = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"&<>\\')
TERMINALS: Final = 64
BASE: Final = len(ALPHABET) - TERMINALS
MAX_VALUE: Final = 2**31 - 1
"""Upstream keeps values in signed 32-bit integers."""

DIGITS: Final = {symbol: digit for digit, symbol in enumerate(ALPHABET)}


class Leb89Error(ValueError):
    """The text is not a row of LEB89 numbers, or the number has no LEB89 text; the message says where and why."""


def encode(value: int) -> str:
    """The one text of this number."""
    if not 0 <= value <= MAX_VALUE:
        raise Leb89Error(f"{value} is not between 0 and {MAX_VALUE}")
    if value < TERMINALS:
        return ALPHABET[value]
    rest, last = divmod(value - TERMINALS, TERMINALS)
    text = ALPHABET[last]
    while True:
        rest, digit = divmod(rest, BASE)
        text = ALPHABET[TERMINALS + digit] + text
        if rest == 0:
            return text


def encode_all(values: Iterable[int]) -> str:
    return "".join(map(encode, values))


def decode(text: str) -> int:
    """The number that the whole text spells."""
    values = decode_all(text)
    if len(values) != 1:
        raise Leb89Error(f"{errors.echo(text)} holds {len(values)} numbers instead of one")
    return values[0]


def decode_all(text: str) -> list[int]:
    """Every number in the text, in order; an empty text holds none."""
    return list(_numbers(text))


def _numbers(text: str) -> Iterator[int]:
    carried: int | None = None
    for place, symbol in enumerate(text):
        digit = DIGITS.get(symbol)
        if digit is None:
            raise Leb89Error(
                f"{errors.echo(symbol)} at position {place} is not one of the {len(ALPHABET)} LEB89 symbols"
            )
        if digit >= TERMINALS:
            carried = _carry(carried, digit - TERMINALS, place)
        else:
            yield digit if carried is None else _within_limit(TERMINALS + TERMINALS * carried + digit, place)
            carried = None
    if carried is not None:
        raise Leb89Error(f"{errors.echo(text)} ends in the middle of a number")


def _carry(carried: int | None, digit: int, place: int) -> int:
    if carried == 0:
        raise Leb89Error(f"the number that ends after position {place} starts with a zero digit; it has a shorter text")
    return _within_limit((carried or 0) * BASE + digit, place)


def _within_limit(value: int, place: int) -> int:
    if value > MAX_VALUE:
        raise Leb89Error(f"the number at position {place} is larger than {MAX_VALUE}")
    return value
