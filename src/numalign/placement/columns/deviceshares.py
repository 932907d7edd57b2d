"""The devices of a machine in direct mode that are handed out in parts or together, and what is free of them.

`reports.direct` makes a `DeviceStock` of the report's table, and `direct.share` takes from it. Devices go by their
place in the stock, zones by position, virtual functions are sets as integers. `Shares` compares and hashes as a
value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final, NamedTuple

from msgspec import Struct

from numalign.api.attributes.devicetable import DeviceTable, Function, Kind, Partition

LOOSE: Final = -1
"""Position of a device whose zone is not known: it may be used with any zones, after all others."""
UNITS: Final = 100
"""Memory of a device that does not say how much it has."""


class Unit(Struct, frozen=True, kw_only=True):
    """One device."""

    kind: Kind
    minor: int
    id: str
    position: int
    """Of its zone."""
    root: int
    """Devices on one PCIe root have the same number; one with an unknown root has a number of its own."""
    knows_root: bool
    parts: int
    memory: int
    """Bytes, or hundredths where the bytes are not known."""
    knows_memory: bool
    labels: Mapping[str, str]
    functions: tuple[Function, ...]


class Shares(NamedTuple):
    """Amounts by device."""

    parts: tuple[int, ...] = ()
    memory: tuple[int, ...] = ()
    functions: tuple[int, ...] = ()
    """By device, places of its virtual functions as a mask."""


NO_SHARES: Final = Shares()


class DeviceStock(Struct, frozen=True, kw_only=True, dict=True, eq=False):
    units: tuple[Unit, ...] = ()
    partitions: tuple[Partition, ...] = ()
    only_partitions: bool = False

    @cached_property
    def of_kind(self) -> Mapping[Kind, tuple[int, ...]]:
        """By type, the places of its devices."""
        kinds = {unit.kind for unit in self.units}
        return {kind: tuple(at for at, unit in enumerate(self.units) if unit.kind == kind) for kind in kinds}

    @cached_property
    def place(self) -> Mapping[tuple[str, int], int]:
        """By type and minor number."""
        return {(unit.kind, unit.minor): at for at, unit in enumerate(self.units)}

    @cached_property
    def whole(self) -> Shares:
        """Everything that there is."""
        if not self.units:
            return NO_SHARES
        return Shares(
            tuple(unit.parts for unit in self.units),
            tuple(unit.memory for unit in self.units),
            tuple((1 << len(unit.functions)) - 1 if unit.parts else 0 for unit in self.units),
        )

    @cached_property
    def nothing(self) -> Shares:
        zeros = (0,) * len(self.units)
        return Shares(zeros, zeros, zeros) if self.units else NO_SHARES


NO_STOCK: Final = DeviceStock()


def stock(table: DeviceTable | None, zones: Sequence[int]) -> DeviceStock:
    if table is None or not table.devices:
        return NO_STOCK
    names = sorted({each.pcie for each in table.devices if each.pcie})
    roots = {name: number for number, name in enumerate(names)}
    positions = {zone: position for position, zone in enumerate(zones)}
    return DeviceStock(
        units=tuple(
            Unit(
                kind=each.type,
                minor=each.minor,
                id=each.id,
                position=positions.get(each.zone, LOOSE),
                root=roots.get(each.pcie, len(roots) + at),
                knows_root=bool(each.pcie),
                parts=each.parts,
                memory=(each.memory or UNITS) if each.parts else 0,
                knows_memory=bool(each.memory),
                labels=dict(each.labels),
                functions=each.functions,
            )
            for at, each in enumerate(table.devices)
        ),
        partitions=table.partitions,
        only_partitions=table.only_partitions,
    )
