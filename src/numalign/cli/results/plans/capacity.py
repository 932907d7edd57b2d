"""Draws a `CapacityPlan`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from numalign.cli.display.formats import INDENT, Page
from numalign.cli.results import capacity as drawn
from numalign.placement.explain import wording
from numalign.plan.questions.capacity import Binding, CapacityPlan, KindCapacity


def text(plan: CapacityPlan, *, wide: bool) -> str:
    page = Page()
    table = page.table("PODS", "COUNT", "NODES")
    for kind in plan.kinds:
        table.add_row(kind.name, f"{kind.count:,}{drawn.BOUNDS[kind.bound]}", f"{kind.roomy_nodes:,}")
    page.add(table)
    for kind in plan.kinds:
        _kind(page, kind, wide=wide)
    if plan.mix is not None:
        page.add()
        pods = ", ".join(f"{count:,} x {name}" for name, count in plan.mix.pods.items())
        page.add(f"the mix: {plan.mix.total:,} pods: {pods}")
        if plan.mix.stopped_by:
            page.add(f"then {plan.mix.stopped_by} finds no node: {plan.mix.why}", indent=INDENT)
    for name, short in plan.missing.items():
        page.add()
        page.add(f"{name}: {wording.counted(short, 'pod')} of the workload without a node")
    return page.text()


def _kind(page: Page, kind: KindCapacity, *, wide: bool) -> None:
    page.add()
    page.add(f"{kind.name}:")
    if wide:
        page.add(drawn.groups(page, list(kind.nodes)), indent=INDENT)
        page.add()
    table = page.table("THE NEXT ONE NEEDS MORE", "NODES", "EXAMPLES")
    for each in kind.binding:
        table.add_row(_binding(each), f"{each.nodes:,}", ", ".join(each.examples))
    page.add(table, indent=INDENT)
    if kind.gains:
        page.add()
        gains = page.table("WHAT IF", "COUNT", "MORE", "NODES")
        for gain in kind.gains:
            gains.add_row(gain.change, f"{gain.count:,}", f"{gain.gained:+,}", f"{gain.nodes:,}")
        page.add(gains, indent=INDENT)


def _binding(each: Binding) -> str:
    if not each.resource:
        return each.cause
    where = f"in {each.together_in} zone{'s' * (each.together_in != 1)}" if each.together_in else "of the node"
    return f"{each.resource} {where}"


def lines(plan: CapacityPlan) -> Iterator[Mapping[str, object]]:
    """A line for each kind on each group of nodes."""
    for kind in plan.kinds:
        for each in kind.nodes:
            for node in each.nodes:
                zones = {f"zone-{zone.zone}": zone.pods for zone in each.zones}
                known: dict[str, object] = {"kind": kind.name, "node": node, "count": each.count, "bound": each.bound}
                yield {**known, "reason": each.reason, "across-zones": each.across_zones, **zones}
