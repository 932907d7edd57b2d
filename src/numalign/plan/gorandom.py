"""The random numbers of Go's `math/rand`, by which published replays shuffle and draw their workloads.

`workload` uses it: with the same seed the same pods arrive in the same order. The generator adds two earlier numbers
to get the next one (lags 607 and 273, modulo 2^64). Go starts it from a state that is 7.8e12 steps away from a simple
one. This module computes that state: the steps are a power of x modulo the generator's polynomial."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

LENGTH: Final = 607
TAP: Final = 273
MODULUS: Final = (1 << 31) - 1
MULTIPLIER: Final = 48271
"""Of the generator that fills the state from a seed: MINSTD."""
INSTEAD_OF_ZERO: Final = 89482311
SKIPPED: Final = 20
STEPS_BEFORE: Final = 7_800_000_000_000
WORD: Final = (1 << 64) - 1

Words = NDArray[np.uint64]


class GoRandom:
    """A source as `rand.Seed` leaves it."""

    def __init__(self, seed: int) -> None:
        filled = _filled(seed, (40, 20, 0))
        self._state = [own ^ before for own, before in zip(filled, _before(), strict=True)]
        self._tap, self._feed = 0, LENGTH - TAP

    def _next(self) -> int:
        self._tap, self._feed = (self._tap - 1) % LENGTH, (self._feed - 1) % LENGTH
        found = self._state[self._feed] = (self._state[self._feed] + self._state[self._tap]) & WORD
        return found

    def int63(self) -> int:
        return self._next() & (WORD >> 1)

    def below(self, most: int) -> int:
        """`Intn` of a number below 2^31."""
        if most & (most - 1) == 0:
            return (self.int63() >> 32) & (most - 1)
        last = MODULUS - (1 << 31) % most
        found = self.int63() >> 32
        while found > last:
            found = self.int63() >> 32
        return found % most

    def shuffle(self, length: int, swap: Callable[[int, int], None]) -> None:
        """`Shuffle` of fewer than 2^31 elements."""
        for index in range(length - 1, 0, -1):
            swap(index, self._within(index + 1))

    def permutation(self, length: int) -> list[int]:
        """`Perm`."""
        found: list[int] = []
        for index in range(length):
            place = self.below(index + 1)
            found.append(index)
            found[index], found[place] = found[place], index
        return found

    def _within(self, most: int) -> int:
        """A number below `most`, by multiplication instead of division."""
        product = self._uint32() * most
        if product & 0xFFFFFFFF < most:
            threshold = (1 << 32) % most
            while product & 0xFFFFFFFF < threshold:
                product = self._uint32() * most
        return product >> 32

    def _uint32(self) -> int:
        return self.int63() >> 31


def _filled(seed: int, shifts: tuple[int, int, int]) -> list[int]:
    """A state of numbers that are made of three others each."""
    number, found = seed % MODULUS or INSTEAD_OF_ZERO, []
    for _ in range(SKIPPED):
        number = number * MULTIPLIER % MODULUS
    for _ in range(LENGTH):
        word = 0
        for shift in shifts:
            number = number * MULTIPLIER % MODULUS
            word ^= number << shift
        found.append(word & WORD)
    return found


@lru_cache(maxsize=1)
def _before() -> tuple[int, ...]:
    """The state after `STEPS_BEFORE` steps from that of seed 1."""
    first = _filled(1, (20, 10, 0))
    # By age: the generator walks backwards through its state, so that the oldest number is the one at `feed` - 1.
    places = [(LENGTH - TAP - 1 - age) % LENGTH for age in range(LENGTH)]
    history = np.array([first[place] for place in places], np.uint64)
    for _ in range(2):
        history = np.concatenate((history, _following(history[-LENGTH:])))
    power, found = _power(STEPS_BEFORE), [0] * LENGTH
    shift = STEPS_BEFORE % LENGTH
    for age in range(LENGTH):
        # The number at this age is the sum of the first ones by the coefficients of the power.
        found[(places[age] - shift) % LENGTH] = int((power * history[age : age + LENGTH]).sum(dtype=np.uint64))
    return tuple(found)


def _following(history: Words) -> Words:
    """As many numbers more."""
    numbers = history.tolist()
    for _ in range(LENGTH):
        numbers.append((numbers[-LENGTH] + numbers[-TAP]) & WORD)
    return np.array(numbers[LENGTH:], np.uint64)


def _power(exponent: int) -> Words:
    """x to this power, modulo x^607 - x^(607-273) - 1."""
    found, base = np.zeros(LENGTH, np.uint64), np.zeros(LENGTH, np.uint64)
    found[0], base[1] = 1, 1
    while exponent:
        if exponent & 1:
            found = _product(found, base)
        base = _product(base, base)
        exponent >>= 1
    return found


def _product(one: Words, other: Words) -> Words:
    long = np.zeros(2 * LENGTH, np.uint64)
    for degree in range(LENGTH):
        long[degree : degree + LENGTH] += one[degree] * other
    end = 2 * LENGTH
    while end > LENGTH:
        # So many degrees at once do not meet those that they are moved to.
        start = max(LENGTH, end - TAP)
        long[start - LENGTH : end - LENGTH] += long[start:end]
        long[start - TAP : end - TAP] += long[start:end]
        end = start
    return long[:LENGTH]
