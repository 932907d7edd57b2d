"""What becomes of a ProvisioningRequest: its state by its conditions and age, and the conditions of an answer. Pure.

`provisioner` calls it with the time of day, because a request outlives the process. A request waits until there is
room for all of its pods. Then its pods are booked for a while, so that no other request is promised the same room."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import Enum, auto
from typing import Final

from msgspec import Struct, structs

from numalign.api.errors import BadObject, echo
from numalign.api.objects import statusconditions
from numalign.api.objects.statusconditions import Condition
from numalign.scheduler.provisioning import kinds
from numalign.scheduler.provisioning.kinds import ProvisioningRequest

FOUND: Final = "CapacityIsFound"
NOT_FOUND: Final = "CapacityIsNotFound"
DAY: Final = 86400.0


class Terms(Struct, frozen=True, kw_only=True):
    """Which requests are answered, and the times that apply to them, in seconds."""

    class_name: str
    booking: float = 600.0
    """How long the room of a request is promised to no other one."""
    validity: float = 7 * DAY
    """How long a request may wait, unless it says so itself."""
    doubt: float = 60.0
    """How long promised room has to be gone before the promise is taken back."""


class State(Enum):
    WAITING = auto()
    OVERDUE = auto()
    """It waited for as long as it may."""
    BOOKED = auto()
    LAPSED = auto()
    """The time of its booking is over, and its conditions do not say so yet."""
    DONE = auto()
    """Nothing more will be said about it."""


def state(request: ProvisioningRequest, terms: Terms, now: datetime) -> State:
    """BadObject if a parameter makes no sense."""
    known = request.status.conditions
    ends = (kinds.FAILED, kinds.BOOKING_EXPIRED, kinds.CAPACITY_REVOKED)
    if any(statusconditions.holds(known, each) for each in ends):
        return State.DONE
    since = statusconditions.since(known, kinds.PROVISIONED)
    if since:
        return State.BOOKED if _age(since, now) < terms.booking else State.LAPSED
    waited = _age(request.metadata.creation_timestamp or "", now)
    return State.WAITING if waited < _validity(request, terms) else State.OVERDUE


def _age(stamp: str, now: datetime) -> float:
    return (now - statusconditions.moment(stamp, now)).total_seconds()


def _validity(request: ProvisioningRequest, terms: Terms) -> float:
    written = request.spec.parameters.get(kinds.VALID_SECONDS)
    if written is None:
        return terms.validity
    if not (written.isascii() and written.isdecimal()):
        raise _bad(request, kinds.VALID_SECONDS, f"{echo(written)} is not a number of seconds")
    return float(written)


def retries(request: ProvisioningRequest) -> bool:
    """Whether it waits for room, or wants to know about this moment only."""
    written = request.spec.parameters.get(kinds.NO_RETRY, "false")
    if written not in ("true", "false"):
        raise _bad(request, kinds.NO_RETRY, f"{echo(written)} is neither true nor false")
    return written == "false"


def _bad(request: ProvisioningRequest, parameter: str, why: str) -> BadObject:
    return BadObject("ProvisioningRequest", request.metadata.full_name, f"spec.parameters[{parameter}]", why)


def found(message: str) -> list[Condition]:
    return [_accepted(), Condition(kinds.PROVISIONED, "True", FOUND, message)]


def not_found(message: str, *, retries: bool) -> list[Condition]:
    if not retries:
        return [_accepted(), *failed(NOT_FOUND, message)]
    return [_accepted(), Condition(kinds.PROVISIONED, "False", NOT_FOUND, message)]


def undecided(reason: str, message: str) -> list[Condition]:
    """Something is missing that may come."""
    return [_accepted(), Condition(kinds.PROVISIONED, "False", reason, message)]


def failed(reason: str, message: str) -> list[Condition]:
    return [Condition(kinds.FAILED, "True", reason, message)]


def overdue() -> list[Condition]:
    return failed("Expired", "the nodes did not have room for all pods at the same time while the request was valid")


def lapsed() -> list[Condition]:
    message = "the room is not booked for these pods any more; pods that exist keep their places"
    return [Condition(kinds.BOOKING_EXPIRED, "True", kinds.BOOKING_EXPIRED, message)]


def revoked(message: str) -> list[Condition]:
    return [Condition(kinds.CAPACITY_REVOKED, "True", "CapacityIsGone", message)]


def _accepted() -> Condition:
    message = "numalign counts whether the kubelets admit all pods of the request"
    return Condition(kinds.ACCEPTED, "True", kinds.ACCEPTED, message)


def written(request: ProvisioningRequest, wanted: Iterable[Condition], now: str) -> tuple[Condition, ...]:
    """All conditions of the request after an answer. Conditions of other types stay as they are."""
    new = {each.type: each for each in wanted}
    old = {each.type: each for each in request.status.conditions}
    generation = request.metadata.generation
    made = {
        kind: statusconditions.following(old.get(kind), structs.replace(each, observed_generation=generation), now)
        for kind, each in new.items()
    }
    return (*(made.pop(kind, each) for kind, each in old.items()), *made.values())
