"""Runs a fuzzing campaign: generated cases, answered by the real component and by numalign.

`numalign oracle fuzz` and `record` call it. Worker processes take chunks of cases, each with its own oracle program. A
disagreement is shrunk and saved as a recording of the real answer, which tests replay. A case depends only on the seed
and its number, so a campaign can be repeated and split."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, field

from numalign.oracle.harness import ask
from numalign.oracle.harness.ask import OFTEN, ONCE, SURELY, JudgedCase, OracleProgram
from numalign.oracle.harness.divergence import Case
from numalign.oracle.harness.shrink import shrunk
from numalign.oracle.sources import Source

MOST_FOUND: Final = 20
"""The most disagreements that are shrunk and saved. A broken model yields no more insight from more."""

COMPARED: Final = ("agreed", "deliberate", "differs")

Counts = Counter[tuple[str, str]]
"""The number of cases by family and finding."""
Chunk = tuple[Counts, int, list[JudgedCase]]
"""The result of a chunk: counts, questions that could be compared, disagreements."""


class FuzzPlan(Struct, frozen=True, kw_only=True):
    """What to ask, which program, and when to stop: after the cases or the minutes."""

    program: Path
    source: Source
    seed: int
    cases: int
    minutes: float | None = None
    workers: int = 2

    def draw(self, start: int, stop: int) -> list[tuple[str, Case]]:
        return [self.source.draw(self.seed, number) for number in range(start, stop)]


class FuzzSummary(Struct):
    """The result so far."""

    counts: Counts = field(default_factory=Counter)
    asked: int = 0
    """Questions in all cases that could be compared."""
    found: list[JudgedCase] = field(default_factory=list)

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


def campaign(plan: FuzzPlan, progress: Callable[[FuzzSummary], None]) -> FuzzSummary:
    """Run the plan. `progress` is called after every chunk."""
    summary = FuzzSummary()
    until = None if plan.minutes is None else time.monotonic() + 60 * plan.minutes
    with ProcessPoolExecutor(plan.workers, initializer=_begin, initargs=(plan,)) as pool:
        for counts, asked, found in _chunks(plan, pool, until):
            summary.counts.update(counts)
            summary.asked += asked
            summary.found.extend(found[: MOST_FOUND - len(summary.found)])
            progress(summary)
    return summary


def recorded(plan: FuzzPlan) -> Iterator[Case]:
    """The real answers to the plan's cases, without those that are not stable."""
    with OracleProgram(plan.program, OFTEN) as program:
        for start in range(0, plan.cases, plan.source.chunk):
            answers = program.ask(plan.draw(start, min(start + plan.source.chunk, plan.cases)))
            yield from (answer for answer in answers if ask.is_answered(answer))


def reduced(plan: FuzzPlan, judged: JudgedCase) -> JudgedCase:
    """The disagreement, shrunk as far as possible."""
    with OracleProgram(plan.program, OFTEN) as program:

        def judged_again(case: Case) -> JudgedCase:
            return ask.ask(program, [(judged.family, case)], plan.source.judge)[0]

        return judged_again(shrunk(judged.case, lambda case: ask.differs(judged_again(case)), plan.source.smaller))


def save(judged: JudgedCase, folder: Path, source: Source) -> Path:
    """Save the real answer as a recording."""
    path = folder / source.version / f"{judged.answer.get('id', 'case')}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(judged.answer), indent=1) + b"\n")
    return path


def _chunks(plan: FuzzPlan, pool: ProcessPoolExecutor, until: float | None) -> Iterator[Chunk]:
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
    """State that a worker process keeps between chunks."""

    plan: FuzzPlan
    pair: ask.ProgramPair


def _begin(plan: FuzzPlan) -> None:
    once, sure = (OracleProgram(plan.program, ("-workers", "1", *often)) for often in (ONCE, SURELY))
    _Worker.plan, _Worker.pair = plan, ask.ProgramPair(once, sure, plan.source.judge)


def _chunk(start: int, count: int) -> Chunk:
    judged = _Worker.pair.ask(_Worker.plan.draw(start, start + count))
    judged = _Worker.pair.ask_again(judged, list(map(ask.differs, judged)))
    counts: Counts = Counter((each.family, each.finding) for each in judged)
    asked = sum(each.asked for each in judged if each.finding in COMPARED)
    return counts, asked, [each for each in judged if ask.differs(each)][:MOST_FOUND]
