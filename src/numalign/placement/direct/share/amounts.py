"""Amounts of shared devices: added, taken away, used again after init containers, and in the form of a decision.

`taking` and `ledger` count with these; `decider` writes `grants`. The rules are those of `taking.charged` for memory
and for whole devices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from numalign.api.attributes import devicetable
from numalign.api.attributes.devicetable import PARTS, WHOLE
from numalign.api.attributes.directresult import DeviceGrant, Extension, FunctionGrant
from numalign.api.decode import quantity
from numalign.api.decode.quantity import Format
from numalign.placement.columns.deviceshares import DeviceStock, Shares, Unit


def beyond(taken: Shares, left: Shares) -> Shares:
    """What has to come from elsewhere than from what is left."""
    return Shares(
        _positive(taken.parts, left.parts),
        _positive(taken.memory, left.memory),
        _without(taken.functions, left.functions),
    )


def floored(left: Shares, taken: Shares) -> Shares:
    """What is still left."""
    return beyond(left, taken)


def less(free: Shares, taken: Shares) -> Shares:
    """May go below zero, where decisions overlap."""
    return Shares(
        tuple([own - each for own, each in zip(free.parts, taken.parts, strict=True)]),
        tuple([own - each for own, each in zip(free.memory, taken.memory, strict=True)]),
        _without(free.functions, taken.functions),
    )


def exceeds(taken: Shares, free: Shares, stock: DeviceStock) -> bool:
    """Whether it takes what others hold. A device that is not healthy now holds what it held before."""
    return any(
        unit.parts and (parts > open_parts or memory > open_memory or functions & ~open_functions)
        for unit, parts, memory, functions, open_parts, open_memory, open_functions in zip(
            stock.units, *taken, *free, strict=True
        )
    )


def added(one: Shares, other: Shares) -> Shares:
    return Shares(
        tuple([own + each for own, each in zip(one.parts, other.parts, strict=True)]),
        tuple([own + each for own, each in zip(one.memory, other.memory, strict=True)]),
        tuple([own | each for own, each in zip(one.functions, other.functions, strict=True)]),
    )


def _positive(amounts: Sequence[int], less: Sequence[int]) -> tuple[int, ...]:
    return tuple([max(0, own - each) for own, each in zip(amounts, less, strict=True)])


def _without(sets: Sequence[int], taken: Sequence[int]) -> tuple[int, ...]:
    return tuple([own & ~each for own, each in zip(sets, taken, strict=True)])


# The form of a decision


def grants(stock: DeviceStock, taken: Shares) -> dict[str, tuple[DeviceGrant, ...]]:
    """By type, what is taken of each device."""
    found: dict[str, list[DeviceGrant]] = {}
    for unit, parts, memory, functions in zip(stock.units, *taken, strict=True):
        if parts or memory or functions:
            found.setdefault(unit.kind, []).append(
                DeviceGrant(
                    unit.minor,
                    id=unit.id,
                    resources=_resources(unit, parts, memory),
                    extension=_extension(unit, functions),
                )
            )
    return {kind: tuple(each) for kind, each in found.items()}


def _resources(unit: Unit, parts: int, memory: int) -> dict[str, str]:
    found = {PARTS[unit.kind]: str(parts)} if parts else {}
    if unit.kind == "gpu" and memory:
        found[devicetable.RATIO] = str(memory * WHOLE // max(1, unit.memory))
        if unit.knows_memory:
            found[devicetable.MEMORY] = str(quantity.of(memory, Format.BINARY_SI))
    return found


def _extension(unit: Unit, functions: int) -> Extension:
    return Extension(tuple(FunctionGrant(each.bus) for at, each in enumerate(unit.functions) if functions >> at & 1))


Held = Mapping[tuple[str, int], tuple[DeviceGrant, ...]]
"""By type and minor, what a pod holds of a device; independent of the node's report, which may come later."""


def held(granted: Mapping[str, Iterable[DeviceGrant]]) -> Held:
    """QuantityError if an amount makes no sense."""
    found: dict[tuple[str, int], tuple[DeviceGrant, ...]] = {}
    for kind, each in granted.items():
        for grant in each:
            for text in grant.resources.values():
                quantity.parse(text)
            found[kind, grant.minor] = (*found.get((kind, grant.minor), ()), grant)
    return found


def taken(stock: DeviceStock, holding: Held) -> Shares:
    """What it is on this machine; devices that the machine does not have are left out."""
    parts, memory, functions = ([0] * len(stock.units) for _ in range(3))
    for key, each in holding.items():
        at = stock.place.get(key)
        if at is None:
            continue
        unit = stock.units[at]
        for grant in each:
            parts[at] += _amount(grant, PARTS[unit.kind])
            memory[at] += _memory(unit, grant)
            buses = {function.bus for function in grant.extension.vfs}
            functions[at] |= sum(1 << place for place, own in enumerate(unit.functions) if own.bus in buses)
    return Shares(tuple(parts), tuple(memory), tuple(functions))


def _memory(unit: Unit, grant: DeviceGrant) -> int:
    if unit.knows_memory and devicetable.MEMORY in grant.resources:
        return _amount(grant, devicetable.MEMORY)
    return -(-unit.memory * _amount(grant, devicetable.RATIO) // WHOLE)


def _amount(grant: DeviceGrant, name: str) -> int:
    return quantity.parse(grant.resources.get(name, "0")).value
