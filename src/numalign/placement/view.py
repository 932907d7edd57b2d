"""One node as plain data at one moment: what its zones and the node as a whole offer, and what is free.

`Engine.view` makes it for pages and commands, which must not hold on to live state; `Engine.taken` makes the same of
what one decision charges. Amounts are CPUs, bytes and devices
by zone, and thousandths of a CPU for the node as a whole; `free` has every known pod charged. `free_devices` is the
same of all nodes together, for metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from msgspec import Struct

from numalign.api.nrt.topologymanager import Policy, Scope
from numalign.kubelet.topologymanager import mask
from numalign.placement.columns.columns import Columns
from numalign.placement.columns.holdings import Entry
from numalign.placement.columns.noderules import NodeRules
from numalign.placement.columns.resources import CPU


class Share(Struct, frozen=True):
    """One resource of one zone."""

    allocatable: int
    free: int


class Total(Struct, frozen=True):
    """One resource of the node as a whole."""

    offered: int
    requested: int


class NodeView(Struct, frozen=True, kw_only=True):
    """One node. Policy and scope are empty if it has no report or the flavour reads none."""

    name: str
    policy: Policy | None = None
    scope: Scope | None = None
    zones: Mapping[int, Mapping[str, Share]]
    """Resources by zone id; the first eight zones of larger machines."""
    totals: Mapping[str, Total]
    pods: int
    uncertain: bool = False
    """Whether the zones of some charge are not known exactly."""


class Taken(Struct, frozen=True):
    """An amount of a resource that a pod takes in these zones together; in several, it may lie in any of them."""

    resource: str
    amount: int
    zones: tuple[int, ...]


class FreeDevices(Struct, frozen=True):
    """The devices of one extended resource in the NUMA zones of all nodes that report."""

    zones: Mapping[int, int]
    """The number of zones by their number of free devices."""
    stranded: int
    """Free devices in zones that have CPUs, none of them free: no container that asks for CPUs can have them there."""


def free_devices(columns: Columns) -> dict[str, FreeDevices]:
    """By extended resource that a zone of some node offers."""
    rows = [row for row in columns.rows.values() if columns.kind[row] >= 0]
    if not rows:
        return {}
    free, allocatable = columns.free[rows], columns.allocatable[columns.stock[rows]]
    without_cpus = (allocatable[:, :, CPU] > 0) & (free[:, :, CPU] <= 0)
    found: dict[str, FreeDevices] = {}
    for column, resource in enumerate(columns.resources.names):
        offers = allocatable[:, :, column] > 0
        if column == CPU or column in columns.resources.memory or not offers.any():
            continue
        left = np.maximum(free[:, :, column], 0)
        amounts, counts = np.unique(left[offers], return_counts=True)
        found[resource] = FreeDevices(
            zones=dict(zip(amounts.tolist(), counts.tolist(), strict=True)),
            stranded=int(left[offers & without_cpus].sum()),
        )
    return found


def taken(columns: Columns, node: str, entries: Iterable[Entry]) -> tuple[Taken, ...]:
    rules = columns.rules(columns.rows[node])
    zones, names = rules.zones if rules else (), columns.resources.names
    return tuple(
        Taken(names[each.column], each.amount, tuple(zones[place] for place in mask.members(each.zones)))
        for each in entries
    )


def of(columns: Columns, name: str) -> NodeView:
    """The node of this name, which has a row."""
    row = columns.rows[name]
    rules = columns.rules(row)
    return NodeView(
        name=name,
        policy=rules.policy if rules else None,
        scope=rules.scope if rules else None,
        zones=_zones(columns, row, rules) if rules else {},
        totals={
            resource: Total(int(columns.offered[row, column]), columns.requested(row, column))
            for column, resource in enumerate(columns.resources.names)
            if columns.offered[row, column] or columns.requested(row, column)
        },
        pods=int(columns.pods[row]),
        uncertain=bool(columns.loose[row]),
    )


def _zones(columns: Columns, row: int, rules: NodeRules) -> dict[int, dict[str, Share]]:
    stock = columns.stock[row]
    present = [column for column in range(len(columns.resources)) if columns.size[stock, :, column].any()]
    return {
        zone: {
            columns.resources.names[column]: Share(
                int(columns.allocatable[stock, position, column]), int(columns.free[row, position, column])
            )
            for column in present
        }
        for position, zone in enumerate(rules.zones[: columns.free.shape[1]])
    }
