"""Runs a campaign: starts a lab, performs the script, judges the history.

`numalign lab campaign` and tests call `run`. It ends by itself or when cancelled, and reports on the history so far
either way."""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from numalign.lab import up
from numalign.lab.campaign import fleet, report, script
from numalign.lab.campaign.acting import Acting
from numalign.lab.campaign.history import History, Line
from numalign.lab.campaign.mending import Mending
from numalign.lab.campaign.report import Report, Run
from numalign.lab.campaign.resting import Resting
from numalign.lab.campaign.script import Fault, Rest, Step
from numalign.lab.campaign.watching import Watching
from numalign.lab.labs import Lab, Say
from numalign.lab.spec import LabSpec
from numalign.process import tasks

SAY_EVERY: Final = 20.0


class Asked(Struct, frozen=True, kw_only=True):
    minutes: float
    seed: int
    name: str = "campaign"
    logs: Path | None = None
    """Where to copy the programs' logs; without it they are removed with the lab."""


class Campaign:
    def __init__(self, lab: Lab, asked: Asked, say: Say) -> None:
        self.history = History()
        self._lab, self._asked, self._say = lab, asked, say

    async def play(self) -> None:
        async with self._lab.client() as client:
            watching = Watching(self._lab, client, self.history)
            acting = Acting(self._lab, client, watching)
            resting = Resting(self._lab.spec.nodes, client, watching)
            mending = Mending(self._lab, self.history, acting.drain)
            acting.start_second_scheduler()
            steps = script.drawn(self._asked.seed, self._asked.minutes * 60, self._lab.spec.nodes)
            try:
                await tasks.together(
                    self._perform(steps, acting, resting),
                    {"watching": watching.run(), "telling": self._tell(), "mending": mending.run()},
                )
            finally:
                acting.let_go()

    async def _perform(self, steps: Sequence[Step], acting: Acting, resting: Resting) -> None:
        for step in steps:
            await asyncio.sleep(max(0.0, step.at - self.history.now))
            if isinstance(step, Fault):
                self.say(step.words)
                acting.take_away(step)
            elif isinstance(step, Rest):
                await acting.all_back()
                await resting.rest()
            else:
                await acting.perform(step)
        await resting.drain()

    async def _tell(self) -> None:
        while True:
            await asyncio.sleep(SAY_EVERY)
            told = self.report(interrupted=False)
            pods, findings = told.pods, (told.rejected, told.mispredicted, told.lost)
            rejected, mispredicted, lost = map(len, findings)
            counts = f"{pods.created} pods made, {pods.started} started"
            self.say(f"{counts}; {rejected} rejected, {mispredicted} mispredicted, {lost} lost")

    def say(self, words: str) -> None:
        self._say(f"{self.history.now:6.0f} s  {words}")

    def report(self, *, interrupted: bool) -> Report:
        run = Run(
            seed=self._asked.seed,
            minutes=self._asked.minutes,
            nodes=tuple(self._lab.nodes),
            interrupted=interrupted,
            ended_by_themselves=dict(self._ended_by_themselves()),
        )
        return report.of(run, self.history.lines)

    def _ended_by_themselves(self) -> Iterator[tuple[str, int]]:
        ours = Counter(line.name for line in self.history.lines if line.what == "away" and line.why != "hang")
        for part in self._lab.every_part():
            title = part.program.title
            if part.starts - 1 > ours[title]:
                yield title, part.starts - 1 - ours[title]


def keep_logs(lab: Lab, folder: Path) -> None:
    for part in lab.every_part():
        shutil.copy(part.program.log, folder / f"{part.program.title.replace('/', '-')}.log")


def lab(asked: Asked) -> LabSpec:
    return LabSpec(name=asked.name, nodes=fleet.nodes(), scheduler=True, agent=True)


async def run(asked: Asked, say: Say) -> tuple[Report, list[Line]]:
    """The report, and its history."""
    async with up.up(lab(asked), say) as started:
        campaign = Campaign(started, asked, say)
        playing = asyncio.ensure_future(campaign.play())
        with tasks.ended_by_signals(asyncio.get_running_loop(), playing):
            await asyncio.wait([playing])
        if asked.logs is not None:
            keep_logs(started, asked.logs)
        if not playing.cancelled():
            playing.result()
        return campaign.report(interrupted=playing.cancelled()), campaign.history.lines
