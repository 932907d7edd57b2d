"""Nodes for people: one in full, zone by zone with the pods in them, or all of them, a line each.

Drawn from the values of `topologyreport` alone. Thousands of nodes are lines of text, because tables of that length
take longer to lay out than to compute."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.text import Text

from numalign.api.objects import resourcenames
from numalign.cli import drawing, output
from numalign.cli.admit import matrix, wording
from numalign.cli.admit.report import Resource
from numalign.cli.drawing import INDENT, Page
from numalign.cli.topology.answer import NodeTopologyOutput, TenantOutput

MOST_APART: Final = 4
"""Zones whose amounts are told one by one in a line."""
MOST_DEVICES: Final = 3
MOST_LINES: Final = 50
"""Assumptions and pods that are told one by one."""
MOST_DOUBTS: Final = 4
GAP: Final = "  "
ALWAYS: Final = (resourcenames.CPU, resourcenames.MEMORY)
"""Drawn even where no zone has a part of them."""
EXPENDABLE: Final = ("supposed", "scope", "report", "policy")
"""Columns that a narrow terminal goes without, one after the other."""


def node(told: NodeTopologyOutput) -> str:
    page = Page()
    page.add(Text(output.printable(told.name), "bold"))
    lines = drawing.labelled()
    for label, text in _facts(told):
        lines.add_row(label, output.printable(text))
    page.add(lines, indent=INDENT)
    page.add()
    if not told.zones:
        page.add("without a usable report nothing is known of its zones; as a whole it has")
        whole = drawing.labelled()
        for each in told.resources:
            whole.add_row(output.printable(each.name), wording.free_of(each.name, each.free, each.allocatable))
        page.add(whole, indent=INDENT)
        return page.text()
    drawn = [each for each in told.resources if each.zones or each.name in ALWAYS]
    matrix.draw_zones(page, drawn, [each.name for each in told.pods] + [matrix.UNKNOWN])
    for label, pods in _loosely(told):
        page.add()
        page.add(label)
        for pod in pods[:MOST_LINES]:
            page.add(pod, indent=INDENT)
    return page.text()


def cluster(told: Sequence[NodeTopologyOutput]) -> str:
    """A line per node; what does not fit into a terminal is left out, the least telling first."""
    if not told:
        return "there are no nodes"
    page, devices = Page(), _devices(told)
    names = [each.rpartition("/")[2] for each in devices]
    heads = ["node", "policy", "scope", "zones", resourcenames.CPU, *names, "pods", "report", "supposed"]
    rows = [heads, *([output.printable(cell) for cell in _row(each, devices)] for each in told)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(heads))]
    shown = _shown(heads, widths, page.width if page.fancy else drawing.UNBOUNDED)
    lines = [GAP.join(row[place].ljust(widths[place]) for place in shown).rstrip() for row in rows]
    page.add(_legend(told))
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:], "", page.text()])


def _shown(heads: Sequence[str], widths: Sequence[int], room: int) -> list[int]:
    shown = list(range(len(heads)))
    for head in EXPENDABLE:
        if sum(widths[place] + len(GAP) for place in shown) - len(GAP) > room:
            shown.remove(heads.index(head))
    return shown


def _facts(told: NodeTopologyOutput) -> Iterator[tuple[str, str]]:
    if not told.exists:
        yield "node", "there is a report, and no Node of that name: no pod goes there"
    if told.policy:
        yield "topology", f"policy {told.policy}, scope {told.scope}, {wording.zones(told.zones)}"
    if told.report is None:
        yield "report", "none"
    else:
        yield "report", _report(told)
    yield "pods", str(told.pod_count)
    for each in told.assumptions[:MOST_LINES]:
        yield "supposed", each
    doubts = told.report.doubts if told.report is not None else ()
    for each in doubts[:MOST_DOUBTS]:
        yield "odd", each
    if len(doubts) > MOST_DOUBTS:
        yield "odd", f"{len(doubts) - MOST_DOUBTS} things more; -o json has them all"


def _report(told: NodeTopologyOutput) -> str:
    assert told.report is not None
    by = f"by {told.report.publisher}" if told.report.publisher else "by an unknown publisher"
    age = f", {duration(told.report.age)} ago" if told.report.age is not None else ""
    return by + age


def _loosely(told: NodeTopologyOutput) -> Iterator[tuple[str, list[str]]]:
    """Pods of which more is to be said than a picture shows."""
    unsure = [f"{wording.pod(pod.name)}  {_where(pod)}" for pod in told.pods if _is_unsure(pod)]
    if unsure:
        yield "not settled:", unsure
    shared = sorted(wording.pod(pod.name) for pod in told.pods if not pod.holds)
    if shared:
        names = ", ".join(shared[:MOST_LINES]) + (f" and {len(shared) - MOST_LINES} more" * (len(shared) > MOST_LINES))
        yield "in no zone of their own:", [names]


def _is_unsure(pod: TenantOutput) -> bool:
    vague = any(len(each.zones) > 1 or not each.certain for each in pod.holds)
    return bool(pod.holds) and (vague or pod.leaving or not pod.arrived or pod.source != "observed")


def _where(pod: TenantOutput) -> str:
    held = "; ".join(
        f"{wording.amount(each.resource, each.amount)} {each.resource} in {wording.zones(each.zones)}"
        f"{'' if each.certain else ', perhaps'}"
        for each in sorted(pod.holds, key=lambda each: (each.zones, each.resource))
    )
    state = "leaving" if pod.leaving else pod.source if pod.arrived else f"{pod.source}, not arrived yet"
    return f"{held} ({state})"


def _row(told: NodeTopologyOutput, devices: Sequence[str]) -> tuple[str, ...]:
    by_name = {each.name: each for each in told.resources}
    report = "-"
    if told.report is not None:
        report = told.report.publisher or "unknown"
        report += f", {duration(told.report.age)}" if told.report.age is not None else ""
    return (
        told.name if told.exists else f"{told.name} (no Node)",
        told.policy or "-",
        told.scope or "-",
        str(len(told.zones)) if told.zones else "-",
        *(_free(by_name.get(each)) for each in (resourcenames.CPU, *devices)),
        str(told.pod_count),
        report,
        str(len(told.assumptions)) if told.assumptions else "-",
    )


def _free(resource: Resource | None) -> str:
    """What is free zone by zone, or what zones have at most where there are many."""
    if resource is None:
        return "-"
    if not resource.zones:
        return f"({wording.amount(resource.name, resource.free)})"
    free = [zone.free for zone in resource.zones]
    if len(free) <= MOST_APART:
        return "+".join(wording.amount(resource.name, each) for each in free)
    return f"{wording.amount(resource.name, sum(free))} (<={wording.amount(resource.name, max(free))})"


def _devices(told: Sequence[NodeTopologyOutput]) -> list[str]:
    """The extended resources that most nodes have."""
    count: dict[str, int] = {}
    for each in told:
        for resource in each.resources:
            if resourcenames.is_extended(resource.name):
                count[resource.name] = count.get(resource.name, 0) + 1
    return sorted(count, key=lambda name: (-count[name], name))[:MOST_DEVICES]


def _legend(told: Sequence[NodeTopologyOutput]) -> str:
    reported = sum(bool(each.zones) for each in told)
    nodes = f"{len(told):,} node{'s' * (len(told) != 1)}, {reported:,} with a usable report"
    return f"{nodes}; amounts are what is free, zone by zone, in parentheses of the node as a whole"


def duration(seconds: float) -> str:
    """12s, 5m, 3h, 2d."""
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds)}s"
