"""Which hardware threads form a core, and the zone, socket and L3 group of each core.

The agent publishes it so that a scheduler can run the CPU Manager's assignment on real CPU ids. The text has one group
of cores per zone, socket and L3, and inside a group runs of similar cores: `0.0.0:0+64*8` is eight cores in zone 0,
socket 0, L3 0, the first with the threads 0 and 64, the next with 1 and 65. Every machine has an exact text; a regular
one has a short text."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Final

from msgspec import Struct

from numalign.api import errors
from numalign.api.attributes import grammar
from numalign.api.decode import cpuset

NO_L3: Final = "-"
MAKES: Final = 256
"""Texts that are cached: nodes of one model have the same text in every report."""
GROUP: Final = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,9}|-):(.+)")
RUN: Final = re.compile(r"([0-9+]+)(?:\*([0-9]{1,5})(?:/([0-9]{1,5}))?)?")


class Core(Struct, frozen=True, order=True):
    """One physical core by its hardware threads, ascending. The kubelet identifies it by the lowest one."""

    cpus: tuple[int, ...]
    zone: int
    socket: int
    l3: int | None = None
    """None where the machine reports no L3 cache."""


class Run(Struct, frozen=True):
    """Similar cores at equal steps: the threads of core k are those of the first plus k times the step."""

    cpus: tuple[int, ...]
    count: int
    step: int = 1


Place = tuple[int, int, int | None]


def encode(cores: Iterable[Core]) -> str:
    """One group of cores per zone, socket and L3, ascending."""
    return _text(tuple(cores))


@lru_cache(maxsize=MAKES)
def _text(cores: tuple[Core, ...]) -> str:
    ordered = sorted(cores, key=lambda core: (_sort_key(_place(core)), core.cpus))
    return ";".join(_group(place, list(group)) for place, group in groupby(ordered, key=_place))


@lru_cache(maxsize=MAKES)
def decode(body: str) -> tuple[Core, ...]:
    """The cores, ordered by their lowest thread; one tuple for all nodes that have the same."""
    cores: list[Core] = []
    seen = 0
    for text in grammar.split(body, ";"):
        for core in _cores(text):
            mask = cpuset.of(core.cpus)
            if mask & seen or mask.bit_count() < len(core.cpus):
                raise grammar.AttributeTextError(f"CPU {cpuset.text(mask)} occurs twice")
            seen |= mask
            cores.append(core)
    return tuple(sorted(cores))


def _group(place: Place, cores: Sequence[Core]) -> str:
    zone, socket, l3 = place
    runs = ",".join(map(_run_text, _runs([core.cpus for core in cores])))
    return f"{zone}.{socket}.{NO_L3 if l3 is None else l3}:{runs}"


def _runs(cores: Sequence[tuple[int, ...]]) -> Iterator[Run]:
    """Groups the cores into runs, each as long as possible from its first core on."""
    start = 0
    while start < len(cores):
        first = cores[start]
        step = _shift(first, cores[start + 1]) if start + 1 < len(cores) else None
        count = 1
        while step and start + count < len(cores) and _shift(first, cores[start + count]) == step * count:
            count += 1
        yield Run(first, count, step or 1)
        start += count


def _shift(first: tuple[int, ...], other: tuple[int, ...]) -> int | None:
    """The difference between the threads of both cores; None if it is not the same for all threads."""
    shifts = {b - a for a, b in zip(first, other, strict=False)}
    return shifts.pop() if len(first) == len(other) and len(shifts) == 1 else None


def _run_text(run: Run) -> str:
    first = "+".join(map(str, run.cpus))
    if run.count == 1:
        return first
    return f"{first}*{run.count}" + (f"/{run.step}" if run.step != 1 else "")


def _cores(text: str) -> Iterator[Core]:
    match = GROUP.fullmatch(text)
    if match is None:
        raise grammar.AttributeTextError(f"{errors.echo(text)} is not zone.socket.L3:cores")
    l3 = None if match[3] == NO_L3 else int(match[3])
    for part in match[4].split(","):
        run = _run(part)
        for shift in range(0, run.count * run.step, run.step):
            cpus = tuple(sorted(cpu + shift for cpu in run.cpus))
            yield Core(cpus=cpus, zone=grammar.zone(match[1]), socket=int(match[2]), l3=l3)


def _run(text: str) -> Run:
    match = RUN.fullmatch(text)
    if match is None:
        raise grammar.AttributeTextError(f"{errors.echo(text)} is not a run of cores like 0+64*8 or 0+1*4/2")
    cpus = tuple(grammar.number(cpu) for cpu in match[1].split("+"))
    count, step = int(match[2] or 1), int(match[3] or 1)
    # This limit also keeps a short text from describing a machine that exhausts the memory.
    if count < 1 or step < 1 or max(cpus) + (count - 1) * step > cpuset.MAX_CPU:
        raise grammar.AttributeTextError(f"{errors.echo(text)} leaves the CPUs 0 to {cpuset.MAX_CPU}")
    return Run(cpus, count, step)


def _place(core: Core) -> Place:
    return core.zone, core.socket, core.l3


def _sort_key(place: Place) -> tuple[int, int, int]:
    zone, socket, l3 = place
    return zone, socket, -1 if l3 is None else l3
