"""Runs a campaign: starts a lab, performs the script, repairs kubelets, judges the history.

`numalign lab campaign` and tests call `run`. It ends by itself or when cancelled, and reports on the history so far
either way. A kubelet that is killed between two writes of its memory state refuses to start ("please drain node and
remove policy state file"). The campaign then drains the node and removes the file, as an operator would, and records
this as a fault. Kubelets' logs also say which devices a rejected pod lacked."""

import asyncio
import re
import shutil
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from numalign.lab import up
from numalign.lab.campaign import report, script
from numalign.lab.campaign.actions import Actions, RestChecks
from numalign.lab.campaign.history import History, HistoryLine
from numalign.lab.campaign.operations import Operations
from numalign.lab.campaign.report import CampaignReport, CampaignRun
from numalign.lab.campaign.script import Create, Delete, Fault, Rest, Step
from numalign.lab.campaign.watch import Observer
from numalign.lab.lab import Lab, Say
from numalign.lab.node import LabNode
from numalign.lab.spec import LabSpec
from numalign.process import tasks

LOOK: Final = 5.0
ASKS: Final = b"please drain node and remove policy state file"
MEMORY: Final = b"[memorymanager]"
BROKEN: Final = "break"


LACKS: Final = re.compile(
    rb'requested number of devices unavailable" resourceName="([^"]+)" pod="[^/"]+/([^"]+)"'
    rb".* request=(\d+) available=(\d+)"
)
"""A rejected pod's reason does not say that devices were missing; the kubelet's log does."""


class KubeletLogs:
    """Reads what kubelets log, and repairs those that ask for it. `drain` deletes the pods of a node."""

    def __init__(self, lab: Lab, history: History, drain: Callable[[str], Awaitable[None]]) -> None:
        self._lab, self._history, self._drain = lab, history, drain
        self._read: dict[str, int] = {}
        """How many bytes of a kubelet's log have been read, by node."""

    async def run(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            for node in self.read():
                await self._mend(node)

    def read(self) -> list[LabNode]:
        """Record what is new, and return the nodes that ask for help."""
        return [node for node in self._lab.nodes.values() if self._asks_for_help(node)]

    def _asks_for_help(self, node: LabNode) -> bool:
        with open(node.kubelet.program.log, "rb") as file:
            file.seek(self._read.get(node.name, 0))
            # The last line may be half-written.
            new = file.read().rpartition(b"\n")[0]
        self._read[node.name] = self._read.get(node.name, 0) + len(new)
        for resource, pod, wanted, available in LACKS.findall(new):
            words = f"requests {wanted.decode()} {resource.decode()}, {available.decode()} available"
            self._history.write("lacks", name=pod.decode(), node=node.name, words=words)
        return any(ASKS in line and MEMORY in line for line in new.splitlines())

    async def _mend(self, node: LabNode) -> None:
        title = node.kubelet.program.title
        words = f"{title} finds its memory state broken; node drained, file removed"
        self._history.write("down", name=title, why=BROKEN, words=words)
        await self._drain(node.name)
        await asyncio.to_thread(node.kubelet.stop)
        node.memory_state.unlink(missing_ok=True)
        # It may have logged the request again in the meantime.
        self._read[node.name] = node.kubelet.program.log.stat().st_size
        # On this thread: the program ends when this thread ends.
        node.kubelet.start()
        self._history.write("up", name=title)


SAY_EVERY: Final = 20.0


class CampaignOptions(Struct, frozen=True, kw_only=True):
    minutes: float
    seed: int
    name: str = "campaign"
    logs: Path | None = None
    """The folder to which the programs' logs are copied; without it they are removed with the lab."""


class Campaign:
    def __init__(self, lab: Lab, asked: CampaignOptions, say: Say) -> None:
        self.history = History()
        self._lab, self._asked, self._say = lab, asked, say

    async def play(self) -> None:
        async with self._lab.client() as client:
            watching = Observer(self._lab, client, self.history)
            acting = Actions(self._lab, client, watching)
            operating = Operations(self._lab, client, watching, acting)
            resting = RestChecks(self._lab.spec.nodes, client, watching)
            mending = KubeletLogs(self._lab, self.history, acting.drain)
            acting.start_second_scheduler()
            steps = script.drawn(self._asked.seed, self._asked.minutes * 60, script.nodes())
            await operating.create_priorities()
            await operating.leave(self._lab.nodes[script.JOINING])
            try:
                await tasks.together(
                    self._perform(steps, acting, operating, resting),
                    {"watching": watching.run(), "progress": self._print_progress(), "mending": mending.run()},
                )
            finally:
                acting.let_go()
                mending.read()

    async def _perform(
        self, steps: Sequence[Step], acting: Actions, operating: Operations, resting: RestChecks
    ) -> None:
        late = 0.0
        for step in steps:
            await asyncio.sleep(max(0.0, step.at + late - self.history.now))
            # Later steps are as late, so that faults keep their distances. They would else come all at once after a
            # rest, when no agent could have reported the first one before the next.
            late = max(late, self.history.now - step.at)
            if isinstance(step, Fault):
                self.say(step.words)
                acting.take_away(step)
            elif isinstance(step, Rest):
                await acting.all_back()
                await resting.rest()
            elif isinstance(step, Create | Delete):
                acting.begin_request(step)
            else:
                self.say(step.words)
                acting.begin(operating.perform(step))
        await resting.drain()

    async def _print_progress(self) -> None:
        while True:
            await asyncio.sleep(SAY_EVERY)
            report = self.report(interrupted=False)
            pods, findings = report.pods, (report.rejected, report.mispredicted, report.lost)
            rejected, mispredicted, lost = map(len, findings)
            counts = f"{pods.created} pods made, {pods.started} started"
            self.say(f"{counts}; {rejected} rejected, {mispredicted} mispredicted, {lost} lost")

    def say(self, words: str) -> None:
        self._say(f"{self.history.now:6.0f} s  {words}")

    def report(self, *, interrupted: bool) -> CampaignReport:
        run = CampaignRun(
            seed=self._asked.seed,
            minutes=self._asked.minutes,
            nodes=tuple(self._lab.nodes),
            interrupted=interrupted,
            ended_by_themselves=dict(self._ended_by_themselves()),
        )
        return report.of(run, self.history.lines)

    def _ended_by_themselves(self) -> Iterator[tuple[str, int]]:
        ours = Counter(line.name for line in self.history.lines if line.what == "down" and line.why != "hang")
        for part in self._lab.every_part():
            title = part.program.title
            if part.starts - 1 > ours[title]:
                yield title, part.starts - 1 - ours[title]


def keep_logs(lab: Lab, folder: Path) -> None:
    for part in lab.every_part():
        shutil.copy(part.program.log, folder / f"{part.program.title.replace('/', '-')}.log")


def lab(asked: CampaignOptions) -> LabSpec:
    return LabSpec(name=asked.name, nodes=(*script.nodes(), script.joining()), scheduler=True, agent=True)


async def run(asked: CampaignOptions, say: Say) -> tuple[CampaignReport, list[HistoryLine]]:
    """The report, and its history."""
    async with up.up(lab(asked), say) as started:
        campaign = Campaign(started, asked, say)
        interrupted = await play_to_end(campaign.play(), started, asked)
        return campaign.report(interrupted=interrupted), campaign.history.lines


async def play_to_end(playing: Coroutine[None, None, None], lab: Lab, asked: CampaignOptions) -> bool:
    """Whether a signal ended it before. Logs are kept in any case."""
    task = asyncio.create_task(playing)
    with tasks.ended_by_signals(asyncio.get_running_loop(), task):
        await asyncio.wait([task])
    if asked.logs is not None:
        keep_logs(lab, asked.logs)
    if not task.cancelled():
        task.result()
    return task.cancelled()
