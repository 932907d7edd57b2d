"""Conditions in the status of custom resources: what holds, since when, and for which generation.

The operator and the scheduler's answers to ProvisioningRequests write them. A transition time changes only when the
status of the condition flips."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final, Literal

from numalign.api.decode.structs import Int64, Wire

LONGEST: Final = 4096
"""Characters of a message that is written; the API allows 32,768."""


class Condition(Wire, frozen=True, omit_defaults=False):
    type: str = ""
    status: Literal["True", "False", "Unknown"] = "Unknown"
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""
    observed_generation: Int64 = 0


def following(before: Condition | None, wanted: Condition, now: str) -> Condition:
    """The wanted condition with the time of its last transition; `before`: the one of its type, if there is any."""
    since = before.last_transition_time if before is not None and before.status == wanted.status else ""
    return Condition(
        wanted.type, wanted.status, wanted.reason, wanted.message[:LONGEST], since or now, wanted.observed_generation
    )


def holds(conditions: Iterable[Condition], kind: str) -> bool:
    return any(each.type == kind and each.status == "True" for each in conditions)


def since(conditions: Iterable[Condition], kind: str) -> str:
    """When the condition became True; empty: it is not."""
    return next((each.last_transition_time for each in conditions if each.type == kind and each.status == "True"), "")


def stamp(now: datetime) -> str:
    """As transition times are written."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment(stamp: str, default: datetime) -> datetime:
    """The time that a transition time names; `default` where it names none."""
    try:
        found = datetime.fromisoformat(stamp)
    except ValueError:
        return default
    return found if found.tzinfo else found.replace(tzinfo=UTC)
