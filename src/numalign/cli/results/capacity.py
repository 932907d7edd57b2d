"""Draws the answer of a capacity request as tables; `capacity` calls it."""

from __future__ import annotations

import heapq

from rich.table import Table

from numalign.cli.display.formats import INDENT, Page
from numalign.scheduler.capacity.messages import CapacityResponse, NodeCapacity, ShapeCapacity

BOUNDS = {"exact": "", "at-least": " or more", "at-most": " or fewer", "unknown": ", roughly"}
MOST_NAMES = 3
MOST_GROUPS = 8
"""Of nodes that are listed unasked."""


def text(answer: CapacityResponse, *, wide: bool) -> str:
    page = Page()
    table = page.table("PODS", "COUNT", "NODES")
    for shape in answer.shapes:
        table.add_row(shape.name, f"{shape.count:,}{BOUNDS[shape.bound]}", f"{shape.roomy_nodes:,}")
    page.add(table)
    for shape in answer.shapes:
        listed = [*(shape.nodes if wide else _largest(shape)), *shape.templates]
        if listed:
            page.add()
            page.add(f"{shape.name}:")
            page.add(groups(page, listed), indent=INDENT)
        if not wide and not shape.count and len(shape.nodes) > MOST_GROUPS:
            page.add(f"and {len(shape.nodes) - MOST_GROUPS:,} more kinds of nodes; -o wide lists them", indent=INDENT)
    together = answer.all_or_nothing
    if together is not None:
        page.add()
        page.add(f"all or nothing: {together.fits}" + (f", {together.message}" if together.message else ""))
        for name, pods in together.missing.items():
            page.add(f"{name}: {pods:,} without a place", indent=INDENT)
        if wide:
            for each in together.placed:
                page.add(f"{each.node}: {each.pods:,} x {each.shape}", indent=INDENT)
    return page.text()


def _largest(shape: ShapeCapacity) -> list[NodeCapacity]:
    """Why no node admits a single pod; nothing if one does."""
    return [] if shape.count else heapq.nlargest(MOST_GROUPS, shape.nodes, key=lambda each: len(each.nodes))


def groups(page: Page, listed: list[NodeCapacity]) -> Table:
    """Nodes with the same answer, line by line."""
    table = page.table("NODES", "COUNT", "ZONES", "THE NEXT ONE")
    for each in listed:
        names = ", ".join(each.nodes[:MOST_NAMES])
        more = len(each.nodes) - MOST_NAMES
        zones = [f"{zone.zone}: {zone.pods:,}" for zone in each.zones]
        zones += [f"others: {each.across_zones:,}"] if each.across_zones else []
        count = f"{each.count:,}{BOUNDS[each.bound]}"
        table.add_row(names + (f" and {more:,} more" if more > 0 else ""), count, ", ".join(zones) or "-", each.reason)
    return table
