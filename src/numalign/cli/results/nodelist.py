"""Draws nodes as a table, a line per node: `numalign topology` and `numalign nodes`.

It draws from the output structs of `topology`. Columns that do not fit into the terminal are left out, the least useful
first; a pipe gets all of them. The last line sums up the free amounts, and the legend explains the forms of amounts
that the table really has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from numalign.api.errors import BadObject
from numalign.api.objects import resourcenames
from numalign.cli import output
from numalign.cli.display import formats
from numalign.cli.display.formats import Page
from numalign.cli.display.values import Amount, Resource
from numalign.cli.results.topology import NodeTopologyOutput
from numalign.placement.explain import amounts

MOST_APART: Final = 4
"""Zones whose amounts are listed one by one in a line."""
MOST_DEVICES: Final = 3
MOST_TAINTS: Final = 2
GAP: Final = "  "
NODE, STATUS, POLICY, SCOPE, ZONES, PODS = "NODE", "STATUS", "POLICY", "SCOPE", "ZONES", "PODS"
CPU, MEMORY, REPORT, ASSUMED, TAINTS = "CPU", "MEMORY", "REPORT", "ASSUMED", "TAINTS"
FREE_CPUS, AGE, PUBLISHER = "FREE CPUS", "AGE", "PUBLISHER"
EXPENDABLE: Final = (ASSUMED, SCOPE, MEMORY, PODS, REPORT, POLICY, TAINTS)
"""Columns that are left out on a narrow terminal, one after the other."""
TOTAL: Final = "total"
SORT_HELP: Final = "name, status, pods, report, cpu, memory, or a resource that the nodes have"

Cell = Callable[[NodeTopologyOutput], str]


class Lines(Struct, frozen=True):
    """The table as text: the heads, a line per node, and what comes below."""

    head: str
    rows: tuple[str, ...]
    foot: str

    @property
    def text(self) -> str:
        return "\n".join([self.head, *self.rows, *([self.foot] if self.foot else [])])


def topology(info: Sequence[NodeTopologyOutput], *, wide: bool = False) -> Lines:
    """What is free in the zones of each node. `wide`: all devices and taints."""
    devices = _devices(info, len(info) if wide else MOST_DEVICES, every=wide)
    cells: dict[str, Cell] = {
        NODE: _name,
        STATUS: lambda each: each.status or "-",
        POLICY: lambda each: each.policy or "-",
        SCOPE: lambda each: each.scope or "-",
        ZONES: _zones,
        CPU: lambda each: _free(_resource(each, resourcenames.CPU)),
        MEMORY: lambda each: _free(_resource(each, resourcenames.MEMORY)),
    }
    # Names from outside may be equal to one another in capitals, or to other heads.
    heads = {_head(name, cells): name for name in devices}
    cells |= {head: lambda each, name=name: _free(_resource(each, name)) for head, name in heads.items()}  # type: ignore[misc]
    cells |= {PODS: lambda each: str(each.pod_count), REPORT: _report}
    if any(each.assumptions for each in info):
        cells[ASSUMED] = lambda each: str(len(each.assumptions)) if each.assumptions else "-"
    if wide or any(each.taints for each in info):
        cells[TAINTS] = lambda each: _taints(each, len(each.taints) if wide else MOST_TAINTS)
    named = {CPU: resourcenames.CPU, MEMORY: resourcenames.MEMORY, **heads}
    total = {NODE: TOTAL, PODS: str(sum(each.pod_count for each in info))}
    total |= {head: _total(info, name) for head, name in named.items()}
    return _lines(info, cells, total if len(info) > 1 else None, _legend(info, list(named.values())))


def nodes(info: Sequence[NodeTopologyOutput], *, wide: bool = False) -> Lines:
    """How each node aligns pods, and who reports it."""
    cells: dict[str, Cell] = {
        "NAME": _name,
        STATUS: lambda each: each.status or "-",
        POLICY: lambda each: each.policy or "-",
        SCOPE: lambda each: each.scope or "-",
        ZONES: _zones,
        FREE_CPUS: lambda each: _free(_resource(each, resourcenames.CPU)),
        AGE: lambda each: amounts.duration(each.report.age) if each.report and each.report.age is not None else "-",
        PUBLISHER: lambda each: (each.report.publisher or "unknown") if each.report else "none",
    }
    if wide:
        cells[MEMORY] = lambda each: _free(_resource(each, resourcenames.MEMORY))
        cells[PODS] = lambda each: str(each.pod_count)
        cells[ASSUMED] = lambda each: str(len(each.assumptions))
        cells[TAINTS] = lambda each: _taints(each, len(each.taints))
    return _lines(info, cells, None, "")


def ordered(info: Iterable[NodeTopologyOutput], by: str) -> list[NodeTopologyOutput]:
    """By a column: names and words ascending, amounts with the most free first. BadObject for an unknown one."""
    found = list(info)
    words: Mapping[str, Callable[[NodeTopologyOutput], tuple[object, ...]]] = {
        "": lambda each: (),
        "name": lambda each: (),
        "status": lambda each: (each.status,),
        "pods": lambda each: (-each.pod_count,),
        "report": lambda each: (-(each.report.age or 0.0) if each.report else float("-inf"),),
    }
    if by.lower() in words:
        return sorted(found, key=lambda each: (*words[by.lower()](each), each.name))
    names = dict.fromkeys(resource.name for each in found for resource in each.resources)
    name = next((each for each in names if by in (each, each.rpartition("/")[2])), None)
    if name is None:
        raise BadObject("Option", "--sort-by", "", f'"{by}" is not a column; write {SORT_HELP}')
    return sorted(found, key=lambda each: (-_amount_free(each, name), each.name))


def _lines(
    info: Sequence[NodeTopologyOutput], cells: Mapping[str, Cell], total: Mapping[str, str] | None, legend: str
) -> Lines:
    page, heads = Page(), list(cells)
    rows = [heads, *([output.printable(cell(each)) for cell in cells.values()] for each in info)]
    sums = [total.get(head, "") for head in heads] if total is not None else None
    every = [*rows, *([sums] if sums else [])]
    widths = [max(len(row[place]) for row in every) for place in range(len(heads))]
    shown = _shown(heads, widths, page.width if page.fancy else formats.UNBOUNDED)
    head, *lines = [GAP.join(row[place].ljust(widths[place]) for place in shown).rstrip() for row in every]
    page.add(legend)
    body, last = (lines[:-1], [lines[-1]]) if sums else (lines, [])
    return Lines(head, tuple(body), "\n".join([*last, *(["", page.text()] if legend else [])]))


def _shown(heads: Sequence[str], widths: Sequence[int], width: int) -> list[int]:
    shown = list(range(len(heads)))
    for head in EXPENDABLE:
        if head in heads and sum(widths[place] + len(GAP) for place in shown) - len(GAP) > width:
            shown.remove(heads.index(head))
    return shown


def _name(each: NodeTopologyOutput) -> str:
    return each.name if each.exists else f"{each.name} (no Node)"


def _zones(each: NodeTopologyOutput) -> str:
    return str(len(each.zones)) if each.zones else "-"


def _head(name: str, taken: Mapping[str, object]) -> str:
    short = output.printable(name.rpartition("/")[2].upper())
    return output.printable(name) if short in taken else short


def _resource(each: NodeTopologyOutput, name: str) -> Resource | None:
    return next((resource for resource in each.resources if resource.name == name), None)


def _amount_free(each: NodeTopologyOutput, name: str) -> Amount:
    found = _resource(each, name)
    return found.free if found is not None else -1


def _total(info: Iterable[NodeTopologyOutput], name: str) -> str:
    found = [resource for each in info if (resource := _resource(each, name)) is not None]
    whole = sum(each.allocatable for each in found)
    return formats.free_of(name, sum(each.free for each in found), whole).removesuffix(" free")


def _report(each: NodeTopologyOutput) -> str:
    if each.report is None:
        return "none"
    age = f", {amounts.duration(each.report.age)}" if each.report.age is not None else ""
    return (each.report.publisher or "unknown") + age


def _taints(each: NodeTopologyOutput, most: int) -> str:
    more = len(each.taints) - most
    return ",".join(each.taints[:most]) + (f" and {more} more" if more > 0 else "") if each.taints else "-"


def _free(resource: Resource | None) -> str:
    """What is free zone by zone, or the sum and the most of one zone where there are many."""
    if resource is None:
        return "-"
    if not resource.zones:
        return f"({formats.amount(resource.name, resource.free)})"
    free = [zone.free for zone in resource.zones]
    if len(free) <= MOST_APART:
        return "+".join(formats.amount(resource.name, each) for each in free)
    return f"{formats.amount(resource.name, sum(free))} (<={formats.amount(resource.name, max(free))})"


def _devices(info: Sequence[NodeTopologyOutput], most: int, *, every: bool) -> list[str]:
    """The extended resources that most nodes have; `every`: all other resources."""
    count: dict[str, int] = {}
    for each in info:
        for resource in each.resources:
            is_shown = resource.name not in (resourcenames.CPU, resourcenames.MEMORY) and resource.zones
            if resourcenames.is_extended(resource.name) or (every and is_shown):
                count[resource.name] = count.get(resource.name, 0) + 1
    found = sorted(count, key=lambda name: (-count[name], name))
    return found if every else found[:most]


def _legend(info: Sequence[NodeTopologyOutput], names: Sequence[str]) -> str:
    """Only the forms that the table has are explained."""
    reported = sum(bool(each.zones) for each in info)
    nodes = f"{len(info):,} node{'s' * (len(info) != 1)}, {reported:,} with a usable report. Amounts are what is free"
    found = [resource for each in info for name in names if (resource := _resource(each, name)) is not None]
    forms = [
        (any(1 < len(each.zones) <= MOST_APART for each in found), "a+b: in each NUMA zone"),
        (any(len(each.zones) > MOST_APART for each in found), "a (<=b): on the node, at most b of it in one NUMA zone"),
        (any(not each.zones for each in found), "(a): on the node, not managed or not reported by NUMA zone"),
    ]
    used = [words for is_used, words in forms if is_used]
    assumed = " ASSUMED: settings that the report leaves out." if any(each.assumptions for each in info) else ""
    return f"{nodes}{': ' if used else ''}{'; '.join(used)}.{assumed}"
