"""One form for every measurement: ours beside a peer or a limit, and whether the goal was met.

Questions build a `Row` for each thing they measure; `__main__` prints them with `text` or `json`. Nothing here
measures."""

import math
from collections.abc import Iterable, Sequence

import msgspec

HEADERS = ("name", "ours", "peer", "ratio", "goal", "met")


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """`goal` is the least ratio: 2.0 asks for twice as good as the peer. A limit stands as the peer, with goal 1.0."""

    name: str
    ours: float
    peer: float
    unit: str
    goal: float = 1.0
    higher_is_better: bool = False

    @property
    def ratio(self) -> float:
        """How many times better than the peer: above 1 is better, whichever direction better is."""
        better, worse = (self.ours, self.peer) if self.higher_is_better else (self.peer, self.ours)
        if worse == 0:
            return 1.0 if better == 0 else math.inf
        return better / worse

    @property
    def met(self) -> bool:
        return self.ratio >= self.goal


def json(rows: Iterable[Row]) -> str:
    """A list of objects, with `ratio` and `met` worked out; an endless ratio is null."""
    records = [msgspec.structs.asdict(row) | {"ratio": row.ratio, "met": row.met} for row in rows]
    return msgspec.json.format(msgspec.json.encode(records)).decode()


def text(rows: Iterable[Row]) -> str:
    """Aligned columns under `HEADERS`: names to the left, numbers to the right."""
    lines = [HEADERS, *map(cells, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(aligned(line, widths) for line in lines)


def cells(row: Row) -> tuple[str, ...]:
    measured = [f"{number:,.4g} {row.unit}" for number in (row.ours, row.peer)]
    return (row.name, *measured, f"{row.ratio:.2f}", f"{row.goal:.2f}", "yes" if row.met else "NO")


def aligned(line: Sequence[str], widths: Sequence[int]) -> str:
    name, *numbers = (
        cell.rjust(width) if index else cell.ljust(width)
        for index, (cell, width) in enumerate(zip(line, widths, strict=True))
    )
    return "  ".join([name, *numbers])
