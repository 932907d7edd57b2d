"""The points of a sweep: every combination of what is varied.

The command line calls `dimensions` and `points`; `runner` makes the change of a point. Values are the texts of the
options of `plan what-if`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import product
from typing import Final

from msgspec import Struct, structs

from numalign.api.errors import BadObject, echo
from numalign.plan.questions import changes
from numalign.plan.questions.changes import Change

MOST_RUNS: Final = 100_000

Point = dict[str, str]
"""By option, its value."""


class Dimension(Struct, frozen=True):
    option: str
    values: tuple[str, ...]


def dimensions(written: Sequence[str]) -> tuple[Dimension, ...]:
    """Each as OPTION=VALUE,VALUE; values that have commas are separated by semicolons."""
    found: dict[str, Dimension] = {}
    for text in written:
        option, equals, values = text.partition("=")
        listed = [value.strip() for value in values.split(";" if ";" in values else ",")]
        if not equals or not all(listed):
            why = "is not OPTION=VALUE,VALUE; write one like topology-policy=restricted,best-effort"
            raise BadObject("Option", "--vary", "", f"{echo(text)} {why}")
        if option not in changes.OPTIONS:
            known = ", ".join(changes.OPTIONS)
            raise BadObject("Option", "--vary", "", f"{echo(option)} cannot be varied; what can is {known}")
        if option in found:
            raise BadObject("Option", "--vary", "", f"{option} is given twice; list all values in one")
        found[option] = Dimension(option, tuple(dict.fromkeys(listed)))
    return tuple(found.values())


def points(varied: Sequence[Dimension], seeds: int) -> list[Point]:
    """All combinations, the last dimension the fastest. BadObject if there are too many runs."""
    number = seeds
    for each in varied:
        number *= len(each.values)
    if number > MOST_RUNS:
        raise BadObject("plan sweep", "", "--vary", f"{number:,} runs are more than {MOST_RUNS:,}; vary less")
    names = [each.option for each in varied]
    return [dict(zip(names, values, strict=True)) for values in product(*(each.values for each in varied))]


def change(point: Mapping[str, str], names: Collection[str], seed: int, *, from_empty: bool) -> Change:
    return structs.replace(changes.read(point, names, seed), from_empty=from_empty)


def label(point: Mapping[str, str]) -> str:
    return ", ".join(f"{option} {value}" for option, value in point.items()) or "as it is"
