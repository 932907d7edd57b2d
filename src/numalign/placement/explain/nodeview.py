"""One node of the ledger: what each zone has, what is free there, and which pods hold the rest.

`numalign topology` and `numalign explain` show it; suggestions read which pods hold what. It is a copy of one moment,
by real zone ids. Amounts are whole CPUs, bytes and devices; `free` has every known pod charged, as far as its zones are
known."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

from msgspec import Struct

from numalign.api.nrt.topologymanager import Policy, Scope
from numalign.placement.columns.holdings import Entry, Holding, Source
from numalign.placement.columns.nodefacts import Assumption
from numalign.placement.engine import Engine
from numalign.placement.exact import ExactFlavour
from numalign.placement.ledger.charges import PodLife
from numalign.placement.ledger.nodeledger import NodeLedger, Row
from numalign.placement.ledger.podrecord import PodRecord

Zones = tuple[int, ...]
"""Real ids; none: devices that belong to no zone."""


class ZoneCharge(Struct, frozen=True, kw_only=True):
    """An amount that a pod holds in these zones."""

    resource: str
    amount: int
    zones: Zones
    certain: bool = True
    """False: the pod may hold it or not."""


class Tenant(Struct, frozen=True, kw_only=True):
    """A pod on the node, or one that may still hold something there."""

    uid: str
    name: str
    """namespace/name"""
    source: Source
    """How its zones are known."""
    is_leaving: bool = False
    """The pod's object was deleted; its containers may still run."""
    is_pending: bool = False
    """The node is not known to have admitted it."""
    containers: Mapping[str, tuple[Zones, ...]]
    """By container the zones that it is aligned to, or all possible sets; without containers that are not aligned."""
    charges: tuple[ZoneCharge, ...] = ()

    @property
    def zones(self) -> Zones:
        """All zones in which the pod holds something or may hold something."""
        return tuple(sorted({zone for charge in self.charges for zone in charge.zones}))


class Cell(Struct, frozen=True):
    """One resource of one zone, of devices that touch several, or of those that touch none."""

    zones: Zones
    allocatable: int
    free: int


class Occupancy(Struct, frozen=True, kw_only=True):
    node: str
    policy: Policy
    scope: Scope
    zones: Zones
    resources: Mapping[str, tuple[Cell, ...]]
    tenants: tuple[Tenant, ...]
    assumptions: frozenset[Assumption] = frozenset()

    def holders(self, resource: str, zones: Iterable[int]) -> dict[str, int]:
        """By uid, how much of the resource pods certainly hold in these zones."""
        inside, found = set(zones), dict[str, int]()
        for tenant in self.tenants:
            held = sum(
                each.amount for each in tenant.charges if each.resource == resource and inside >= set(each.zones)
            )
            if held:
                found[tenant.uid] = held
        return found


def of(engine: Engine, node: str) -> Occupancy | None:
    """The node's occupancy; None: the node has no report, or the flavour has no ledger."""
    return engine.flavour.either(lambda exact: _of(exact, node), lambda _: None)


def _of(flavour: ExactFlavour, node: str) -> Occupancy | None:
    ledger = flavour.mirror.ledger
    row = ledger.row(node)
    if row is None:
        return None
    node_ledger = ledger.node(node)
    rules, names = row.facts.rules, flavour.columns.resources.names
    return Occupancy(
        node=node,
        policy=rules.policy,
        scope=rules.scope,
        zones=rules.zones,
        resources={name: cells for name in row.facts.supplies if (cells := _cells(row, names.index(name), name))},
        tenants=_tenants(node_ledger, names) if node_ledger is not None else (),
        assumptions=row.facts.assumptions,
    )


def _cells(row: Row, column: int, name: str) -> tuple[Cell, ...]:
    supply, zones = row.facts.supplies[name], row.facts.rules.zones
    free = row.free[column :: row.width]
    cells = [
        Cell((zone,), most, max(0, min(left, most)))
        for zone, most, left in zip(zones, supply.allocatable, free, strict=True)
        if most
    ]
    for each in row.facts.classes:
        if each.resource == name and each.zones:
            cells.append(Cell(row.facts.rules.real(each.zones), each.size, each.free))
    if supply.homeless_size:
        cells.append(Cell((), supply.homeless_size, max(0, row.homeless[column])))
    return tuple(cells)


def _tenants(node_ledger: NodeLedger, names: Sequence[str]) -> tuple[Tenant, ...]:
    records = sorted(node_ledger.records.values(), key=lambda record: record.order)
    return tuple(_tenant(record, node_ledger.zones, names) for record in records if record.life is not PodLife.ENDED)


def _tenant(record: PodRecord, zones: Zones, names: Sequence[str]) -> Tenant:
    holding = record.holding or Holding(uid=record.uid, name=record.name, source=Source.UNKNOWN)
    return Tenant(
        uid=record.uid,
        name=record.name,
        source=holding.source,
        is_leaving=record.life is PodLife.LINGERING,
        is_pending=record.is_pending,
        containers={
            each.container: tuple(_real(mask, zones) for mask in each.possible)
            for each in holding.containers
            if each.possible
        },
        charges=tuple(_charge(entry, zones, names) for entry in holding.entries if entry.amount),
    )


def _charge(entry: Entry, zones: Zones, names: Sequence[str]) -> ZoneCharge:
    return ZoneCharge(
        resource=names[entry.column], amount=entry.amount, zones=_real(entry.zones, zones), certain=entry.certain
    )


def _real(mask: int, zones: Zones) -> Zones:
    return tuple(zone for position, zone in enumerate(zones) if mask >> position & 1)


def hardware(engine: Engine, node: str) -> Hashable:
    """Equal for nodes that differ only in the pods on them."""
    columns, row = engine.columns, engine.columns.rows[node]
    arrays = (columns.offered, columns.allocatable, columns.size, columns.homeless_size)
    return int(columns.kind[row]), *(array[row].tobytes() for array in arrays)


def rules(engine: Engine, node: str) -> int:
    """Equal for nodes of one hardware type and configuration."""
    return int(engine.columns.kind[engine.columns.rows[node]])


def most_in_a_zone(engine: Engine, node: str, resource: str) -> int:
    """The most that a zone of the empty node has of the resource."""
    columns = engine.columns
    column = columns.resources.known(resource)
    return 0 if column is None else int(columns.allocatable[columns.rows[node], :, column].max())


def is_offered(engine: Engine, resource: str) -> bool:
    """Whether any node has some of the resource."""
    columns = engine.columns
    column = columns.resources.known(resource)
    return column is not None and bool(columns.offered[: columns.height, column].any())
