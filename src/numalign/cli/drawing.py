"""Text for people, as wide and as colourful as the place where it is read.

Commands build rich renderables, add them to a `Page` and print the one string that it gives: rules and colours in a
terminal (no colour with NO_COLOR), plain ASCII of a fixed width in files and pipes, so that there the same answer is
always the same text."""

from __future__ import annotations

import io

from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table

from numalign.cli import output

PLAIN_WIDTH = 100
NARROWEST = 30
UNBOUNDED = 10_000
INDENT = 2

RULE = box.Box("    \n    \n -- \n    \n    \n    \n    \n    \n", ascii=True)
"""A line of dashes under the head, and nothing else."""


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
