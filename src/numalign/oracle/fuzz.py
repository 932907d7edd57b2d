"""The campaign: made-up cases by the million, put to the real code and to ours.

Chunks of cases go to worker processes, each with an oracle program of its own. A disagreement is made small and saved
as a recording of the real answer, where tests replay it for ever. Seed and number make a case again, so a campaign can
be repeated and split."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, field

from numalign.oracle import ask as asking
from numalign.oracle.ask import OFTEN, ONCE, SURELY, Case, Judged
from numalign.oracle.programs import Program
from numalign.oracle.shrinking.shrink import shrunk
from numalign.oracle.sources import Source

MOST_FOUND: Final = 20
"""Disagreements that are made small and saved; a broken model would yield no more insight from more."""

COMPARED: Final = ("agreed", "deliberate", "differs")

Counts = Counter[tuple[str, str]]
"""(family, finding) to number of cases."""
Chunk = tuple[Counts, int, list[Judged]]
"""Of some cases: the findings, the questions that could be compared, and disagreements."""


class Plan(Struct, frozen=True, kw_only=True):
    """What to ask, of which program, and for how long: until the cases or the minutes are used up."""

    program: Path
    source: Source
    seed: int
    cases: int
    minutes: float | None = None
    workers: int = 2

    def draw(self, start: int, stop: int) -> list[tuple[str, Case]]:
        return [self.source.draw(self.seed, number) for number in range(start, stop)]


class Summary(Struct):
    """What came of it so far."""

    counts: Counts = field(default_factory=Counter)
    asked: int = 0
    """Questions of all cases that could be compared."""
    found: list[Judged] = field(default_factory=list)

    def of(self, *findings: str) -> int:
        return sum(number for (_, finding), number in self.counts.items() if finding in findings)

    @property
    def drawn(self) -> int:
        return self.counts.total()

    @property
    def compared(self) -> int:
        return self.of(*COMPARED)

    @property
    def disagreements(self) -> int:
        return self.of("differs")


def campaign(plan: Plan, progress: Callable[[Summary], None]) -> Summary:
    """Run the plan; `progress` hears of every chunk."""
    summary = Summary()
    until = None if plan.minutes is None else time.monotonic() + 60 * plan.minutes
    with ProcessPoolExecutor(plan.workers, initializer=_begin, initargs=(plan,)) as pool:
        for counts, asked, found in _chunks(plan, pool, until):
            summary.counts.update(counts)
            summary.asked += asked
            summary.found.extend(found[: MOST_FOUND - len(summary.found)])
            progress(summary)
    return summary


def recorded(plan: Plan) -> Iterator[Case]:
    """The real answers to the plan's cases, without judging them; cases without one answer are left out."""
    with Program(plan.program, OFTEN) as program:
        for start in range(0, plan.cases, plan.source.chunk):
            answers = program.ask(plan.draw(start, min(start + plan.source.chunk, plan.cases)))
            yield from (answer for answer in answers if asking.is_answered(answer))


def reduced(plan: Plan, judged: Judged) -> Judged:
    """A disagreement as small as it can be made."""
    with Program(plan.program, OFTEN) as program:

        def ask(case: Case) -> Judged:
            return asking.ask(program, [(judged.family, case)], plan.source.judge)[0]

        return ask(shrunk(judged.case, lambda case: asking.differs(ask(case)), plan.source.smaller))


def save(judged: Judged, folder: Path, source: Source) -> Path:
    """Write the real answer down as a recording of what was asked."""
    path = folder / source.version / f"{judged.answer.get('id', 'case')}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(judged.answer), indent=1) + b"\n")
    return path


def _chunks(plan: Plan, pool: ProcessPoolExecutor, until: float | None) -> Iterator[Chunk]:
    starts = iter(range(0, plan.cases, plan.source.chunk))
    running: set[Future[Chunk]] = set()
    while True:
        while len(running) < 2 * plan.workers and (until is None or time.monotonic() < until):
            start = next(starts, None)
            if start is None:
                break
            running.add(pool.submit(_chunk, start, min(plan.source.chunk, plan.cases - start)))
        if not running:
            return
        done, running = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            yield future.result()


class _Worker:
    """What a worker process keeps between chunks."""

    plan: Plan
    pair: asking.Pair


def _begin(plan: Plan) -> None:
    once, sure = (Program(plan.program, ("-workers", "1", *often)) for often in (ONCE, SURELY))
    _Worker.plan, _Worker.pair = plan, asking.Pair(once, sure, plan.source.judge)


def _chunk(start: int, count: int) -> Chunk:
    judged = _Worker.pair.ask(_Worker.plan.draw(start, start + count))
    judged = _Worker.pair.ask_again(judged, list(map(asking.differs, judged)))
    counts: Counts = Counter((each.family, each.finding) for each in judged)
    asked = sum(each.asked for each in judged if each.finding in COMPARED)
    return counts, asked, [each for each in judged if asking.differs(each)][:MOST_FOUND]
