"""One node of the ledger: what each zone has, what is free there, and which pods hold the rest.

`numalign topology` and `numalign explain` show it; suggestions read which pods hold what. It is a copy of one moment,
by real zone ids. Amounts are whole CPUs, bytes and devices; `free` has every known pod charged, as far as its zones are
known."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from numalign.api.attributes import directresult
from numalign.api.attributes.devicetable import PARTS
from numalign.api.decode import cpuset
from numalign.api.errors import BadObject
from numalign.api.nrt.topologymanager import Policy, Scope
from numalign.api.objects import resourcenames
from numalign.api.objects.pod import Pod
from numalign.placement.columns.deviceshares import LOOSE
from numalign.placement.columns.directmachine import DirectMachine, FreeState
from numalign.placement.columns.holdings import Entry, Holding, Source
from numalign.placement.columns.nodefacts import Assumption, RowFacts
from numalign.placement.direct.ledger import PodHolding
from numalign.placement.direct.share import amounts as sharing
from numalign.placement.engine import Engine
from numalign.placement.exact import ExactFlavour
from numalign.placement.ledger.charges import PodLife
from numalign.placement.ledger.divergences import Divergence
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


class ContainerDecision(Struct, frozen=True, kw_only=True, rename="camel"):
    """What the scheduler decided for a container in direct mode, and what the agent did with it."""

    container: str
    cpus: str = ""
    """Of its own; empty: it runs in shared pools."""
    mems: str = ""
    """Zones to which its memory is limited; empty: it is not."""
    devices: tuple[str, ...] = ()
    """By resource or type, and minor number."""
    is_applied: bool | None = None
    """None: the agent has not acknowledged it."""
    cpus_in_effect: str = ""
    """As the kernel says."""
    failure: str = ""


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
    decisions: tuple[ContainerDecision, ...] = ()
    """On a node in direct mode."""

    @property
    def zones(self) -> Zones:
        """All zones in which the pod holds something or may hold something."""
        return tuple(sorted({zone for charge in self.charges for zone in charge.zones}))


class Cell(Struct, frozen=True):
    """One resource of one zone, of devices that touch several, or of those that touch none."""

    zones: Zones
    allocatable: int
    free: int
    size: int = 0
    """With what the kubelet reserves, as far as the report says."""


class Occupancy(Struct, frozen=True, kw_only=True):
    node: str
    policy: Policy
    scope: Scope
    zones: Zones
    resources: Mapping[str, tuple[Cell, ...]]
    tenants: tuple[Tenant, ...]
    assumptions: frozenset[Assumption] = frozenset()
    mode: Literal["predict", "direct"] = "predict"
    """Whether the node's kubelet decides about zones, or the scheduler."""

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


def of(engine: Engine, node: str, *, with_pods: bool = True) -> Occupancy | None:
    """The node's occupancy; None: the node has no report, or the flavour has no ledger."""
    return engine.flavour.either(lambda exact: _of(exact, node, with_pods), lambda _: None)


def divergences(engine: Engine) -> tuple[Divergence, ...]:
    """The latest contradictions between predictions and reports, the newest last."""
    return engine.flavour.either(lambda exact: tuple(exact.mirror.ledger.divergences.latest), lambda _: ())


def _of(flavour: ExactFlavour, node: str, with_pods: bool) -> Occupancy | None:
    ledger = flavour.mirror.ledger
    row = ledger.row(node)
    if row is None:
        return None
    node_ledger = ledger.node(node) if with_pods else None
    if row.facts.direct is not None:
        return _direct(flavour, row.facts, row.facts.direct, with_pods=with_pods)
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


def _direct(flavour: ExactFlavour, facts: RowFacts, machine: DirectMachine, *, with_pods: bool) -> Occupancy:
    """A node in direct mode, by the decisions on its pods. Policy and scope are the node's defaults."""
    ledger, defaults, node = flavour.direct.ledger, machine.terms.defaults, facts.node
    pods = ledger.pods(node) if with_pods else {}
    return Occupancy(
        node=node,
        policy=defaults.policy,
        scope="pod" if defaults.scope == "pod" else "container",
        zones=machine.zones,
        resources=dict(_direct_cells(machine, ledger.free(node, machine))),
        tenants=tuple(_direct_tenant(flavour, facts, uid, held, machine) for uid, held in pods.items()),
        assumptions=facts.assumptions,
        mode="direct",
    )


def _direct_cells(machine: DirectMachine, free: FreeState) -> Iterator[tuple[str, tuple[Cell, ...]]]:
    places = list(enumerate(machine.zones))
    yield (
        resourcenames.CPU,
        tuple(
            Cell((zone,), own.bit_count(), max(0, free.poolable(machine, place)), own.bit_count())
            for (place, zone), own in zip(places, machine.cpus, strict=True)
        ),
    )
    for (name, sizes), left in zip(machine.memory, free.memory, strict=True):
        yield (
            name,
            tuple(Cell((zone,), sizes[at], max(0, left[at]), sizes[at]) for at, zone in places if sizes[at]),
        )
    for (name, by_zone, loose), minors in zip(machine.devices, free.devices, strict=True):
        cells = [
            Cell((zone,), own.bit_count(), (own & minors).bit_count(), own.bit_count())
            for zone, own in zip(machine.zones, by_zone, strict=True)
            if own
        ]
        if loose:
            cells.append(Cell((), loose.bit_count(), (loose & minors).bit_count(), loose.bit_count()))
        yield name, tuple(cells)
    for kind, devices in machine.stock.of_kind.items():
        whole = _parts_by_zone(machine, devices, machine.stock.whole.parts)
        open_parts = _parts_by_zone(machine, devices, free.shares.parts)
        yield (
            PARTS[kind],
            tuple(Cell(zones, amount, max(0, open_parts[zones]), amount) for zones, amount in whole.items()),
        )


def _parts_by_zone(machine: DirectMachine, devices: Iterable[int], parts: Sequence[int]) -> dict[tuple[int, ...], int]:
    """Of shared devices; no zone: that is not known."""
    found: dict[tuple[int, ...], int] = {}
    for at in devices:
        position = machine.stock.units[at].position
        zones = (machine.zones[position],) if position != LOOSE else ()
        found[zones] = found.get(zones, 0) + parts[at]
    return dict(sorted(found.items(), key=lambda each: (not each[0], each[0])))


def _direct_tenant(
    flavour: ExactFlavour, facts: RowFacts, uid: str, held: PodHolding, machine: DirectMachine
) -> Tenant:
    node_ledger = flavour.mirror.ledger.node(facts.node)
    record = node_ledger.records.get(uid) if node_ledger is not None else None
    charges = [
        ZoneCharge(resource=resourcenames.CPU, amount=-(-milli // 1000), zones=(zone,))
        for zone, milli in held.milli.items()
    ]
    charges += [ZoneCharge(resource=name, amount=amount, zones=(zone,)) for (name, zone), amount in held.memory.items()]
    for name, by_zone, loose in machine.devices:
        minors = held.devices.get(name, 0)
        for zone, own in (*zip(((zone,) for zone in machine.zones), by_zone, strict=True), ((), loose)):
            if own & minors:
                charges.append(ZoneCharge(resource=name, amount=(own & minors).bit_count(), zones=zone))
    taken = sharing.taken(machine.stock, held.shares)
    for kind, devices in machine.stock.of_kind.items():
        for zones, amount in _parts_by_zone(machine, devices, taken.parts).items():
            if amount:
                charges.append(ZoneCharge(resource=PARTS[kind], amount=amount, zones=zones))
    decisions = tuple(_decisions(record.pod, facts)) if record is not None else ()
    is_applied = bool(decisions) and all(each.is_applied for each in decisions)
    return Tenant(
        uid=uid,
        name=record.name if record is not None else uid,
        source=Source.OBSERVED if is_applied else Source.PREDICTED,
        is_leaving=record is not None and record.life is PodLife.LINGERING,
        is_pending=record is None,
        containers=held.containers,
        charges=tuple(charges),
        decisions=decisions,
    )


def _decisions(pod: Pod, facts: RowFacts) -> Iterator[ContainerDecision]:
    """Those of containers that have CPUs or zones of their own."""
    try:
        result = directresult.of_pod(pod)
    except BadObject:
        return
    acknowledged = {each.container: each for each in facts.applied if each.uid == pod.metadata.uid}
    for each in result.containers if result is not None else ():
        if not (each.cpuset or each.zones or each.devices):
            continue
        found = acknowledged.get(each.name)
        yield ContainerDecision(
            container=each.name,
            cpus=each.cpuset,
            mems=each.mems,
            devices=tuple(f"{name} {grant.minor}" for name, grants in each.devices.items() for grant in grants),
            is_applied=None if found is None else not found.failure,
            cpus_in_effect=cpuset.text(found.cpus) if found is not None else "",
            failure=found.failure if found is not None else "",
        )


def _cells(row: Row, column: int, name: str) -> tuple[Cell, ...]:
    supply, zones = row.facts.supplies[name], row.facts.rules.zones
    free = row.free[column :: row.width]
    cells = [
        Cell((zone,), most, max(0, min(left, most)), size)
        for zone, most, left, size in zip(zones, supply.allocatable, free, supply.size, strict=True)
        if most
    ]
    for each in row.facts.classes:
        if each.resource == name and each.zones:
            cells.append(Cell(row.facts.rules.real(each.zones), each.size, each.free, each.size))
    if supply.homeless_size:
        cells.append(Cell((), supply.homeless_size, max(0, row.homeless[column]), supply.homeless_size))
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
    by_stock, stock = (columns.allocatable, columns.size, columns.homeless_size), columns.stock[row]
    amounts = columns.offered[row], *(array[stock] for array in by_stock)
    return int(columns.kind[row]), *(each.tobytes() for each in amounts)


def rules(engine: Engine, node: str) -> int:
    """Equal for nodes of one hardware type and configuration."""
    return int(engine.columns.kind[engine.columns.rows[node]])


def most_in_a_zone(engine: Engine, node: str, resource: str) -> int:
    """The most that a zone of the empty node has of the resource."""
    columns = engine.columns
    column = columns.resources.known(resource)
    stock = columns.stock[columns.rows[node]]
    return 0 if column is None else int(columns.allocatable[stock, :, column].max())


def is_offered(engine: Engine, resource: str) -> bool:
    """Whether any node has some of the resource."""
    columns = engine.columns
    column = columns.resources.known(resource)
    return column is not None and bool(columns.offered[: columns.height, column].any())
