"""Draws the CPUs of one zone: L3 groups, in them cores, in them threads, each marked with the pod that holds it.

The page of a node calls `cpus` for each zone of a node whose report names its cores. What the report does not say is
not drawn: without cores there is no picture, and a machine without L3 caches has no L3 groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final

from numalign.api.decode import cpuset
from numalign.dashboard.details import Core, Cpu, CpuUse
from numalign.dashboard.drawing import boxes
from numalign.dashboard.drawing.boxes import Box, Drawing, Marks

SIDE: Final = 17.0
"""Of a thread."""
GAP: Final = 2.0
AROUND: Final = 3.0
"""Between a group and the cores in it."""
HEAD: Final = 13.0
"""The height of a group's caption."""
WIDTH: Final = 344.0
"""Of the drawing, so that it fits on a phone."""
WORDS: Final = {
    CpuUse.FREE: "free for exclusive use, shared until then",
    CpuUse.SHARED: "shared by all containers",
    CpuUse.RESERVED: "reserved for the system",
    CpuUse.TAKEN: "not free; the report does not say which pod has it",
    CpuUse.UNKNOWN: "the report does not say whether it is free",
}


def cpus(zone: int, cores: Sequence[Core], used: Mapping[int, Cpu], marks: Marks) -> Drawing:
    """`cores`: those of the zone, at least one. `used`: by id, every CPU of these cores."""
    tall = max(len(core.cpus) for core in cores)
    ordered = sorted(cores, key=lambda core: (-1 if core.l3 is None else core.l3, core.cpus))
    groups = [(l3, list(each)) for l3, each in groupby(ordered, key=lambda core: core.l3)]
    found: list[Box] = []
    x = y = bottom = 0.0
    for l3, inside in groups:
        across = min(len(inside), _most_across(grouped=l3 is not None))
        width, height = _size(len(inside), across, tall, grouped=l3 is not None)
        if x and x + width > WIDTH:
            x, y = 0.0, bottom + GAP
        found += _group(l3, inside, (x, y, width, height), across, used, marks)
        bottom = max(bottom, y + height)
        x += width + GAP
    widest = max(box.right for box in found)
    return Drawing(_label(zone, cores, used), widest, bottom, tuple(found))


def _most_across(*, grouped: bool) -> int:
    inner = WIDTH - (2 * AROUND if grouped else 0)
    return int((inner + GAP) // (SIDE + GAP))


def _size(count: int, across: int, tall: int, *, grouped: bool) -> tuple[float, float]:
    lines = -(-count // across)
    width, height = across * (SIDE + GAP) - GAP, lines * (tall * SIDE + GAP) - GAP
    return (width + 2 * AROUND, height + HEAD + AROUND) if grouped else (width, height)


def _group(
    l3: int | None,
    cores: Sequence[Core],
    place: tuple[float, float, float, float],
    across: int,
    used: Mapping[int, Cpu],
    marks: Marks,
) -> list[Box]:
    left, top, width, height = place
    found = []
    if l3 is not None:
        title = f"L3 cache {l3}, shared by {len(cores)} core{'s' * (len(cores) != 1)}"
        found.append(Box(x=left, y=top, width=width, height=height, kind="l3", title=title))
        text = f"L3 {l3}"
        caption = Box(x=left, y=top, width=min(width, 12 + 7 * len(text)), height=HEAD, kind="caption", text=text)
        found.append(caption)
        left, top = left + AROUND, top + HEAD
    tall = max(len(core.cpus) for core in cores)
    for line, places in enumerate(boxes.rows(len(cores), across)):
        for column, place_of in enumerate(places):
            core = cores[place_of]
            x, y = left + column * (SIDE + GAP), top + line * (tall * SIDE + GAP)
            found.append(Box(x=x, y=y, width=SIDE, height=len(core.cpus) * SIDE, kind="core"))
            found += [_cpu(used[cpu], x, y + thread * SIDE, marks) for thread, cpu in enumerate(core.cpus)]
    return found


def _cpu(cpu: Cpu, x: float, y: float, marks: Marks) -> Box:
    if cpu.use is CpuUse.HELD:
        who = f"pod {cpu.pod}" + (f", container {cpu.container}" if cpu.container else "")
        kind, text = f"{marks.kind(cpu.pod)} cpu", marks.letters(cpu.pod)
    else:
        who, kind, text = WORDS[cpu.use], f"{cpu.use} cpu", SIGNS.get(cpu.use, "")
    return Box(
        x=x,
        y=y,
        width=SIDE,
        height=SIDE,
        kind=kind,
        text=text,
        title=f"CPU {cpu.id}: {who}",
        hatched=cpu.use is CpuUse.RESERVED,
    )


SIGNS: Final = {CpuUse.TAKEN: "?", CpuUse.UNKNOWN: "·"}


def _label(zone: int, cores: Sequence[Core], used: Mapping[int, Cpu]) -> str:
    """In words, for those who cannot see the drawing."""
    ids = [cpu for core in cores for cpu in core.cpus]
    parts = []
    for use in CpuUse:
        if some := [each for each in ids if used[each].use is use]:
            parts.append(f"{len(some)} {use} ({cpuset.text(cpuset.of(some))})")
    return f"CPUs of zone {zone}: {len(ids)} on {len(cores)} cores; {', '.join(parts)}"
