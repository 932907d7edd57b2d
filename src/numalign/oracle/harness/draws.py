"""Random draws that all generators use."""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

Item = TypeVar("Item")


def chance(rng: Random, share: float) -> bool:
    return rng.random() < share


def some(rng: Random, items: Sequence[Item], share: float) -> list[Item]:
    """Each item with this probability, in order."""
    return [item for item in items if rng.random() < share]


def weighted(rng: Random, choices: dict[Item, float]) -> Item:
    return rng.choices(list(choices), list(choices.values()))[0]


def cut(rng: Random, total: int, parts: int) -> list[int]:
    """`total` split at random into so many parts, which may be empty."""
    marks = sorted(rng.randint(0, total) for _ in range(parts - 1))
    return [high - low for low, high in zip([0, *marks], [*marks, total], strict=True)]
