"""Three written quantities of a zone's resource, made into consistent integers.

`nrtzones` calls `read` for every resource of every zone. The result always keeps 0 <= available <= allocatable <=
capacity and fits int64, however strange the report; every repair is noted. Where a number cannot be trusted we believe
the one that promises less, so that a guess never puts a pod where it cannot run.
"""

import re
from functools import lru_cache
from typing import Final

from numalign.api import errors
from numalign.api.decode import quantity
from numalign.api.nrt.nodetopology import MILLI_RESOURCES, Amounts
from numalign.api.nrt.repairs import Guess, GuessCode
from numalign.api.nrt.wire import Resource, Written
from numalign.api.objects.resourcenames import CPU, MEMORY, is_hugepages

PLAIN: Final = re.compile(r"[0-9]{3,60}")
MILLI: Final = quantity.NANO // 1000
ALIKE: Final = 1 << 14
"""Resources that are remembered: nodes of one make have the same, and report them over and over."""


def read(resource: Resource, where: str, guesses: list[Guess]) -> Amounts:
    """The amounts in this resource's unit; `where` is its path in the report."""
    return _as_publishers_write(resource) or _repaired(resource, where, guesses)


def text(amount: int, name: str) -> str:
    """As publishers write amounts: plain digits, cpu in whole CPUs where it is whole."""
    if name not in MILLI_RESOURCES:
        return str(amount)
    return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"


@lru_cache(maxsize=ALIKE)
def _as_publishers_write(resource: Resource) -> Amounts | None:
    """Plain digits in a consistent order, which is nearly every resource of every report: nothing to repair."""
    first, second, third = resource.capacity, resource.allocatable, resource.available
    if not (isinstance(first, str) and isinstance(second, str) and isinstance(third, str)):
        return None
    if not (first and second and third and PLAIN.fullmatch(first + second + third) and _has_known_unit(resource.name)):
        return None
    factor = 1000 if resource.name in MILLI_RESOURCES else 1
    capacity, allocatable, available = int(first) * factor, int(second) * factor, int(third) * factor
    if quantity.INT64_MAX >= capacity >= allocatable >= available:
        return Amounts(capacity, allocatable, available)
    return None


def _has_known_unit(name: str) -> bool:
    return "/" in name or name in (CPU, MEMORY) or is_hugepages(name)


def _repaired(resource: Resource, where: str, guesses: list[Guess]) -> Amounts:
    if not _has_known_unit(resource.name):
        guesses.append(Guess(GuessCode.UNIT_ASSUMED, f"{where}.name", errors.echo(resource.name), "units"))
    unit = MILLI if resource.name in MILLI_RESOURCES else quantity.NANO
    capacity = _whole(resource.capacity, unit, f"{where}.capacity", guesses)
    allocatable = _whole(resource.allocatable, unit, f"{where}.allocatable", guesses)
    available = _whole(resource.available, unit, f"{where}.available", guesses)
    return _consistent(capacity, allocatable, available or 0, where, guesses)


def _consistent(
    capacity: int | None, allocatable: int | None, available: int, where: str, guesses: list[Guess]
) -> Amounts:
    # Some writers fill only capacity and available (scheduler plugin spec, appendix); 0 allocatable is then no fact.
    if allocatable is None or available > allocatable == 0:
        allocatable = max(capacity or 0, available)
        guesses.append(Guess(GuessCode.ALLOCATABLE_ASSUMED, f"{where}.allocatable", "", str(allocatable)))
    if available > allocatable:
        guesses.append(Guess(GuessCode.AVAILABLE_LOWERED, f"{where}.available", str(available), str(allocatable)))
        available = allocatable
    if capacity is None or capacity < allocatable:
        found = "" if capacity is None else str(capacity)
        guesses.append(Guess(GuessCode.CAPACITY_RAISED, f"{where}.capacity", found, str(allocatable)))
        capacity = allocatable
    return Amounts(capacity, allocatable, available)


def _whole(written: Written, unit: int, where: str, guesses: list[Guess]) -> int | None:
    """The quantity in units, rounded down; None if there is none that can be read."""
    nanos = _nanos(written, where, guesses)
    if nanos is None:
        return None
    amount, rest = divmod(max(nanos, 0), unit)
    if nanos < 0:
        guesses.append(Guess(GuessCode.QUANTITY_NEGATIVE, where, errors.echo(written), "0"))
    if rest:
        guesses.append(Guess(GuessCode.QUANTITY_ROUNDED, where, errors.echo(written), str(amount)))
    if amount > quantity.INT64_MAX:
        guesses.append(Guess(GuessCode.QUANTITY_CLAMPED, where, errors.echo(written), str(quantity.INT64_MAX)))
    return min(amount, quantity.INT64_MAX)


def _nanos(written: Written, where: str, guesses: list[Guess]) -> int | None:
    if written is None:
        guesses.append(Guess(GuessCode.QUANTITY_MISSING, where))
        return None
    if isinstance(written, float):
        guesses.append(Guess(GuessCode.QUANTITY_FLOAT, where, errors.echo(written)))
    try:
        return quantity.parse(written).nanos
    except quantity.QuantityError:
        guesses.append(Guess(GuessCode.QUANTITY_UNREADABLE, where, errors.echo(written)))
        return None
