"""The conditions of the two kinds: which one holds, since when, and for which generation. Pure.

Exactly one of Available, Progressing and Degraded is True, and Upgradeable mirrors Available (deploy spec 10). The
others have their own type as the reason. All carry the generation that was looked at. A transition time changes only
when the status of the condition flips."""

from collections.abc import Iterable, Sequence
from typing import Final, Literal

import msgspec
from msgspec import Struct

from numalign.api.objects import statusconditions
from numalign.api.objects.statusconditions import Condition

AVAILABLE: Final = "Available"
PROGRESSING: Final = "Progressing"
DEGRADED: Final = "Degraded"
UPGRADEABLE: Final = "Upgradeable"
PAUSED: Final = "Paused"

AS_EXPECTED: Final = "AsExpected"
INTERNAL_ERROR: Final = "InternalError"

State = Literal["Available", "Progressing", "Degraded"]


class Outcome(Struct, frozen=True):
    """The state of a custom resource, in one word, a reason and a sentence."""

    state: State
    reason: str = AS_EXPECTED
    message: str = ""


class Extra(Struct, frozen=True):
    """A further condition: type, whether it holds, reason, message."""

    type: str
    holds: bool
    reason: str
    message: str = ""


def written(
    old: Sequence[Condition], outcome: Outcome, extras: Iterable[Extra], generation: int, now: str
) -> tuple[Condition, ...]:
    """All conditions in a fixed order; conditions of types that are not known here stay."""
    wanted = {each: Extra(each, False, each) for each in (AVAILABLE, UPGRADEABLE, PROGRESSING, DEGRADED)}
    wanted[outcome.state] = Extra(outcome.state, True, outcome.reason, outcome.message)
    if outcome.state == AVAILABLE:
        wanted[UPGRADEABLE] = Extra(UPGRADEABLE, True, outcome.reason, outcome.message)
    wanted |= {each.type: each for each in extras}
    before = {each.type: each for each in old}
    new = [_condition(each, before.get(each.type), generation, now) for each in wanted.values()]
    return (*new, *(each for each in old if each.type not in wanted))


def extra_only(old: Sequence[Condition], extras: Iterable[Extra], generation: int, now: str) -> tuple[Condition, ...]:
    """The conditions of a resource of which nothing new is known: only the further ones change."""
    wanted = {each.type: each for each in extras}
    before = {each.type: each for each in old}
    kept = [each for each in old if each.type not in wanted]
    return (*kept, *(_condition(each, before.get(each.type), generation, now) for each in wanted.values()))


def _condition(wanted: Extra, before: Condition | None, generation: int, now: str) -> Condition:
    status: Literal["True", "False"] = "True" if wanted.holds else "False"
    new = Condition(wanted.type, status, wanted.reason, wanted.message, observed_generation=generation)
    return statusconditions.following(before, new, now)


def current(conditions: Iterable[Condition]) -> Outcome | None:
    """The outcome that the conditions show."""
    for each in conditions:
        if each.type in (AVAILABLE, PROGRESSING, DEGRADED) and each.status == "True":
            return Outcome(each.type, each.reason, each.message)  # type: ignore[arg-type]
    return None


def trees(conditions: Iterable[Condition]) -> list[dict[str, object]]:
    """As they are written."""
    return [msgspec.to_builtins(each) for each in conditions]
