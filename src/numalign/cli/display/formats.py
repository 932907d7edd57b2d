"""Lays out text for a terminal or a pipe, and formats amounts, zones and requests.

Commands build rich renderables, add them to a `Page` and print the one string that it gives: with rules and colours in
a terminal (no colour with NO_COLOR), plain ASCII of a fixed width in files and pipes, where the same answer is always
the same text. The sentences of reasons are in `placement.explain.wording`, not here."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence

from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table

from numalign.api.decode import cpuset
from numalign.api.objects import resourcenames
from numalign.cli import output
from numalign.cli.display.values import Amount, KubeletSettings, Zones
from numalign.placement.explain import amounts

PLAIN_WIDTH = 100
NARROWEST = 30
UNBOUNDED = 10_000
INDENT = 2

RULE = box.Box("    \n    \n -- \n    \n    \n    \n    \n    \n", ascii=True)
"""A line of dashes under the head."""


class Page:
    """Where a command draws. `fancy`: a terminal that shows more than ASCII."""

    def __init__(self) -> None:
        screen = Console()
        self.fancy = screen.is_terminal and not screen.is_dumb_terminal and screen.encoding.startswith("utf")
        self.width = max(NARROWEST, screen.width if screen.is_terminal else PLAIN_WIDTH)
        self._drawn = io.StringIO()
        self._console = Console(
            file=self._drawn,
            width=self.width,
            force_terminal=self.fancy,
            no_color=screen.no_color,
            highlight=False,
            markup=False,
            emoji=False,
        )

    def add(self, renderable: RenderableType = "", *, indent: int = 0) -> None:
        if isinstance(renderable, str):
            renderable = output.printable(renderable)
        self._console.print(Padding(renderable, (0, 0, 0, indent)) if indent else renderable)

    def text(self) -> str:
        """Everything added so far, without the blanks that fill lines up to the width."""
        return "\n".join(line.rstrip() for line in self._drawn.getvalue().splitlines())

    def table(self, *heads: str) -> Table:
        """A table with a rule under its head."""
        rule = box.SIMPLE_HEAD if self.fancy else RULE
        table = Table(box=rule, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
        for head in heads:
            table.add_column(head, overflow="fold")
        return table

    def fits(self, table: Table) -> bool:
        """Whether the page is wide enough to draw the table without wrapping its cells."""
        unbounded = self._console.options.update(width=UNBOUNDED)
        return self._console.measure(table, options=unbounded).maximum <= self.width


def labelled() -> Table:
    """Lines of a label and a text, the text wrapped beside its label."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    return grid


MOST_LISTED = 3
FIRST = (resourcenames.CPU, resourcenames.MEMORY)


def amount(resource: str, value: Amount) -> str:
    """An amount with a binary unit for bytes, rounded down, so that what looks sufficient is."""
    if resourcenames.is_bytes(resource):
        return f"{'-' * (value < 0)}{amounts.bare(resource, abs(int(value)))}"
    return f"{value:g}" if isinstance(value, float) else f"{value}"


def free_of(resource: str, free: Amount, allocatable: Amount) -> str:
    """46 of 94 free, 508 of 1020Gi free: a unit that both share is written once."""
    part, whole = amount(resource, free), amount(resource, allocatable)
    unit = whole.lstrip("0123456789.")
    return f"{part.removesuffix(unit) if unit else part} of {whole} free"


def wants(requested: Mapping[str, Amount]) -> str:
    """A whole request in one line, always in the same order: 48 cpu, 512Gi memory, 4 nvidia.com/gpu."""
    order = sorted(requested, key=lambda name: (name not in FIRST, FIRST.index(name) if name in FIRST else 0, name))
    return ", ".join(f"{amount(name, requested[name])} {name}" for name in order) or "nothing"


def zones(ids: Iterable[int]) -> str:
    listed = tuple(ids)
    if not listed:
        return "no zone"
    return f"zone {listed[0]}" if len(listed) == 1 else f"zones {cpuset.text(cpuset.of(listed))}"


def node(machine: str, kubelet: KubeletSettings) -> str:
    topology = kubelet.topology_manager_policy
    topology += f" per {kubelet.topology_manager_scope}" if topology != "none" else ""
    policies = f"topology {topology}, cpu {kubelet.cpu_manager_policy}, memory {kubelet.memory_manager_policy}"
    return f"machine {machine}, kubelet {kubelet.version}; {policies}"


def summary(verdicts: Sequence[str]) -> str:
    counts = ", ".join(f"{verdicts.count(each)} {each}" for each in ("admitted", "rejected", "undecided"))
    return f"{len(verdicts)} pod{'s' * (len(verdicts) != 1)}: {counts}"


def pod(full_name: str) -> str:
    """A pod's name, with the namespace unless it is `default`."""
    return full_name.removeprefix("default/")


def choices(sets: Sequence[Zones]) -> str:
    """Sets of zones to choose from: "zone 0 or 2", "one of zones 0-7", "zones 0+1, 2+3 or 26 more"."""
    if all(len(each) == 1 for each in sets) and len(sets) > 2:
        return f"one of {zones(zone for each in sets for zone in each)}"
    shown = ["+".join(map(str, each)) for each in sets[:MOST_LISTED]]
    if len(sets) > MOST_LISTED:
        shown.append(f"{len(sets) - MOST_LISTED} more")
    return f"{'zones' if len(sets[0]) > 1 else 'zone'} {' or '.join(filter(None, (', '.join(shown[:-1]), shown[-1])))}"


def node_has_room(needed: Mapping[str, Amount], free: Mapping[str, Amount]) -> str:
    parts = (f"{amount(name, free[name])} {name} for {amount(name, needed[name])}" for name in free)
    return f"the node as a whole has enough: {', '.join(parts)}"


def slow(steps: int) -> str:
    return f"the kubelet itself needs about {steps:.2g} steps for this pod, which takes minutes or more"


def not_on_this_machine(resource: str) -> str:
    return f"the machine has no {resource}, which a kubelet ignores; a scheduler would not send the pod here"
