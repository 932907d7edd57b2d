"""Runs a campaign on nodes in direct mode, with real containers: pods, faults, and looks at what containerd has.

`numalign lab campaign --direct-mode` calls `run`. During the whole campaign it reads over CRI what every container of
every node has: no CPU may belong to containers of two pods. At a rest all programs run and no pod arrives: every pod
has to run with what its decision says, acknowledged by the agent, or wait with a reason."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from numalign.agent.enforce import polling
from numalign.agent.enforce.messages import RuntimeContainer, Sandbox
from numalign.agent.enforce.pools import NodeCPUs, of_machine
from numalign.api.attributes import directresult
from numalign.api.attributes.directmode import AppliedContainer
from numalign.api.attributes.directresult import DirectResult
from numalign.api.decode import cpuset
from numalign.api.errors import BadObject
from numalign.api.nrt import normalise, wire
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import Pod, PodSpec
from numalign.kube.client import Client
from numalign.kube.resources import PODS, TOPOLOGIES
from numalign.kube.watch.informer import Informer
from numalign.kube.watch.store import Change
from numalign.lab import up
from numalign.lab.campaign import directscript
from numalign.lab.campaign.actions import Actions
from numalign.lab.campaign.history import History, HistoryLine
from numalign.lab.campaign.judge import Finding
from numalign.lab.campaign.run import CampaignOptions, play_to_end
from numalign.lab.campaign.script import Create, Delete, Fault, Rest
from numalign.lab.campaign.watch import NAMESPACE, waits
from numalign.lab.containers import images
from numalign.lab.lab import Lab, Say
from numalign.lab.node import LabNode
from numalign.lab.spec import LabSpec
from numalign.process import rpc, tasks
from numalign.process.rpc import CallFailed

LOOKING: Final = 2.0
"""Seconds between two looks at what containerd has."""
CALM: Final = 3
PATIENCE: Final = 120.0
"""Seconds after which a pod at a rest counts as stuck: a kubelet tries again after up to a minute."""
AT_A_TIME: Final = 6
SAY_EVERY: Final = 20.0

Held = tuple[str, str, str]
"""Pod's uid, its name, and the container."""


class DirectCampaignReport(Struct, frozen=True, kw_only=True):
    seed: int
    minutes: float
    seconds: float
    nodes: tuple[str, ...]
    interrupted: bool
    created: int
    started: int
    deleted: int
    faults: Mapping[str, int]
    """By program."""
    looks: int
    """Reads of all containers of a node."""
    compared: int
    """Containers that were compared with their decisions at rests."""
    double_booked: tuple[Finding, ...]
    stuck: tuple[Finding, ...]
    lost: tuple[Finding, ...]
    good: bool


class Watching:
    """The pods and reports of the lab, as its API server has them."""

    def __init__(self, client: Client, history: History) -> None:
        self.history = history
        self.pods: dict[str, Pod] = {}
        """By uid."""
        self.applied: dict[str, tuple[AppliedContainer, ...]] = {}
        """By node."""
        self._pods = Informer(client, PODS.within(NAMESPACE), self._pod)
        self._reports = Informer(client, TOPOLOGIES.everywhere(), self._report)

    async def run(self) -> None:
        await tasks.together(self._pods.run(), {"reports": self._reports.run()})

    async def relisted(self) -> None:
        await asyncio.gather(self._pods.relisted(), self._reports.relisted())

    def _pod(self, change: Change[Pod]) -> None:
        pod = change.new
        if pod is None:
            if change.old is not None and self.pods.pop(change.old.metadata.uid, None) is not None:
                self.history.write("gone", name=change.old.metadata.name, uid=change.old.metadata.uid)
            return
        known, uid = self.pods.get(pod.metadata.uid), pod.metadata.uid
        self.pods[uid] = pod
        if known is None:
            self.history.write("created", name=pod.metadata.name, uid=uid)
        if pod.spec.node_name and (known is None or not known.spec.node_name):
            self.history.write("bound", name=pod.metadata.name, uid=uid, node=pod.spec.node_name)
        if pod.has_started and (known is None or not known.has_started):
            self.history.write("started", name=pod.metadata.name, uid=uid, node=pod.spec.node_name)

    def _report(self, change: Change[wire.NodeResourceTopology]) -> None:
        if change.new is not None:
            found = normalise.normalise(change.new)
            self.applied[found.node] = tuple(found.facts.applied or ())


class Containers:
    """What containerd of one node has, read over CRI."""

    def __init__(self, node: LabNode) -> None:
        self.node = node
        self.cpus: NodeCPUs = of_machine(node.spec.machine, node.spec.settings.reserved_cpus or 0)
        self.pods: dict[str, Sandbox] = {}
        """By the id of the sandbox."""
        self.running: list[RuntimeContainer] = []
        self._link: rpc.Link | None = None
        self._at: Path | None = None

    async def look(self) -> None:
        """CallFailed while containerd does not answer."""
        assert self.node.home is not None
        # Where the node's namespace is now.
        place = Path("/proc", str(self.node.home.pid), "root", images.SOCKET.lstrip("/"))
        if self._link is None or place != self._at:
            await self.close()
            self._link, self._at = rpc.Link(place), place
        pods, running = await polling.containers(self._link.call)
        self.pods, self.running = {each.id: each for each in pods}, list(running)

    async def close(self) -> None:
        if self._link is not None:
            await self._link.close()
            self._link = None

    def decision(self, made: RuntimeContainer) -> DirectResult | None:
        pod = self.pods.get(made.sandbox)
        if pod is None:
            return None
        meta = ObjectMeta(name=pod.name, namespace=pod.namespace, uid=pod.uid, annotations=dict(pod.annotations))
        try:
            return directresult.of_pod(Pod(metadata=meta, spec=PodSpec(node_name=self.node.name)))
        except BadObject:
            return None

    def held(self) -> Iterator[tuple[Held, int]]:
        """The containers that have CPUs of their own, with these."""
        for made in self.running:
            decision = self.decision(made)
            own = next((each for each in decision.containers if each.name == made.name), None) if decision else None
            if own is not None and own.cpuset and cpuset.parse(made.cpus) == own.cpus:
                pod = self.pods[made.sandbox]
                yield (pod.uid, pod.name, made.name), own.cpus

    def overlaps(self) -> list[str]:
        """CPUs that containers of two pods have for themselves, in words."""
        found, seen = [], list[tuple[Held, int]]()
        for (uid, name, container), cpus in self.held():
            for (other, other_name, other_container), others in seen:
                if uid != other and cpus & others:
                    both = f"{name}/{container} and {other_name}/{other_container}"
                    found.append(f"{both} have CPUs {cpuset.text(cpus & others)}")
            seen.append(((uid, name, container), cpus))
        return found


class DirectCampaign:
    def __init__(self, lab: Lab, asked: CampaignOptions, say: Say) -> None:
        self.history = History()
        self._lab, self._asked, self._say = lab, asked, say
        self._containers = [Containers(node) for node in lab.nodes.values()]
        self._faults = Counter[str]()
        self._looks = self._compared = 0
        self._booked: list[Finding] = []
        self._stuck: list[Finding] = []

    async def play(self) -> None:
        async with self._lab.client() as client:
            watching = Watching(client, self.history)
            acting = Actions(self._lab, client, watching)
            try:
                await tasks.together(
                    self._perform(acting, watching),
                    {"watching": watching.run(), "looking": self._look(), "progress": self._print_progress()},
                )
            finally:
                acting.let_go()
                for each in self._containers:
                    await each.close()

    async def _perform(self, acting: Actions, watching: Watching) -> None:
        late = 0.0
        for step in directscript.drawn(self._asked.seed, self._asked.minutes * 60, directscript.nodes()):
            await asyncio.sleep(max(0.0, step.at + late - self.history.now))
            # Later steps are as late, so that faults keep their distances.
            late = max(late, self.history.now - step.at)
            match step:
                case Fault():
                    self.say(step.words)
                    self._faults[step.part.rpartition("/")[2]] += 1
                    acting.take_away(step)
                case Rest():
                    await acting.all_back()
                    await self._rest(watching)
                case Create() | Delete():
                    acting.begin_request(step)
        await self._drain(acting, watching)

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOKING)
            for each in self._containers:
                try:
                    await each.look()
                    # Containers are read one after the other, and may have changed meanwhile.
                    if first := each.overlaps():
                        await each.look()
                        both = [words for words in each.overlaps() if words in first]
                        self._booked += [Finding("", each.node.name, self.history.now, words) for words in both]
                    self._looks += 1
                except CallFailed:
                    continue

    async def _rest(self, watching: Watching) -> None:
        """Waits until every pod is as it has to be, or the time is over."""
        await watching.relisted()
        until, calm = self.history.now + PATIENCE, 0
        while calm < CALM and self.history.now < until:
            await asyncio.sleep(LOOKING)
            calm = 0 if self.wrong(watching) else calm + 1
        if calm < CALM:
            for pod, why in self.wrong(watching):
                self._stuck.append(Finding(pod.metadata.name, pod.spec.node_name, self.history.now, why))
                self.say(f"stuck: {pod.metadata.name} {why}")
        self._compared += sum(len(each.running) for each in self._containers)
        self.say(f"rest: {len(watching.pods)} pods, {len(self._stuck)} findings")

    async def _drain(self, acting: Actions, watching: Watching) -> None:
        """Deletes running pods, a few at a time, until every waiting pod has run."""
        while any(not pod.spec.node_name for pod in watching.pods.values()):
            running = [pod for pod in watching.pods.values() if pod.spec.node_name]
            for pod in sorted(running, key=lambda each: each.metadata.creation_timestamp or "")[:AT_A_TIME]:
                await acting.perform(Delete(self.history.now, pod.metadata.name, forced=False))
            await self._rest(watching)
            if not running:
                break

    def wrong(self, watching: Watching) -> list[tuple[Pod, str]]:
        """The pods that are not as they have to be, and why."""
        taken = {each.node.name: self._taken(each) for each in self._containers}
        by_node = {each.node.name: each for each in self._containers}
        found = []
        for pod in watching.pods.values():
            node = by_node.get(pod.spec.node_name)
            if pod.metadata.deletion_timestamp:
                found.append((pod, "is to go, and stays"))
            elif node is None:
                found += [(pod, "pending without a reason")] if not waits(pod) else []
            elif why := self._differs(pod, node, taken[node.node.name], watching.applied.get(node.node.name, ())):
                found.append((pod, why))
        return found

    def _taken(self, node: Containers) -> int:
        found = 0
        for made in node.running:
            decision = node.decision(made)
            found |= decision.cpus if decision is not None else 0
        return found

    def _differs(self, pod: Pod, node: Containers, taken: int, applied: Sequence[AppliedContainer]) -> str:
        """How its containers differ from the decision; empty: they do not."""
        decision = directresult.of_pod(pod)
        if decision is None:
            return "has no decision"
        made = {each.name: each for each in node.running if _uid(node, each) == pod.metadata.uid}
        said = {each.container: each for each in applied if each.uid == pod.metadata.uid}
        for own in decision.containers:
            if own.name not in made:
                return f"{own.name} does not run"
            wanted = own.cpus or node.cpus.pool(own.zones, taken)
            has = made[own.name]
            if cpuset.parse(has.cpus) != wanted:
                return f"{own.name} has CPUs {has.cpus or 'of the whole node'} instead of {cpuset.text(wanted)}"
            if own.mems and has.mems != own.mems:
                return f"{own.name} has memory of zones {has.mems or 'of the whole node'} instead of {own.mems}"
            if own.name not in said:
                return f"{own.name} is not acknowledged"
            if said[own.name].failure or said[own.name].cpus != wanted:
                return f"{own.name} is acknowledged with {said[own.name].failure or cpuset.text(said[own.name].cpus)}"
        return ""

    async def _print_progress(self) -> None:
        while True:
            await asyncio.sleep(SAY_EVERY)
            found = self.report(interrupted=False)
            self.say(f"{found.created} pods made, {found.started} started; {len(found.double_booked)} double-booked")

    def say(self, words: str) -> None:
        self._say(f"{self.history.now:6.0f} s  {words}")

    def report(self, *, interrupted: bool) -> DirectCampaignReport:
        lost = tuple(_lost(self.history.lines))
        counts = Counter(line.what for line in self.history.lines)
        started = {line.uid for line in self.history.lines if line.what == "started"}
        return DirectCampaignReport(
            seed=self._asked.seed,
            minutes=self._asked.minutes,
            seconds=self.history.now,
            nodes=tuple(self._lab.nodes),
            interrupted=interrupted,
            created=len({line.uid for line in self.history.lines if line.what == "created"}),
            started=len(started),
            deleted=counts["deletion-requested"],
            faults=dict(sorted(self._faults.items())),
            looks=self._looks,
            compared=self._compared,
            double_booked=tuple(self._booked),
            stuck=tuple(self._stuck),
            lost=lost,
            good=not (self._booked or self._stuck or lost),
        )


def _uid(node: Containers, made: RuntimeContainer) -> str:
    pod = node.pods.get(made.sandbox)
    return pod.uid if pod is not None else ""


def _lost(lines: Sequence[HistoryLine]) -> Iterator[Finding]:
    """Pods that are gone although nothing asked for it."""
    asked = {line.name for line in lines if line.what == "deletion-requested"}
    for line in lines:
        if line.what == "gone" and line.name not in asked:
            yield Finding(line.name, "", line.at, "disappeared without a request")


def text(report: DirectCampaignReport) -> str:
    ended = f"interrupted after {report.seconds:.0f} s" if report.interrupted else f"{report.seconds:.0f} s"
    faults = ", ".join(f"{name} {count}" for name, count in report.faults.items()) or "none"
    rows = [
        ("seed", f"{report.seed}, {report.minutes:g} minutes; {ended} on {', '.join(report.nodes)}, in direct mode"),
        ("pods", f"{report.created} created, {report.started} started, {report.deleted} deleted by request"),
        ("faults", f"{sum(report.faults.values())}: {faults}"),
        ("looks", f"{report.looks} at all containers of a node; {report.compared} containers compared at rests"),
        ("double-booked", str(len(report.double_booked))),
        ("stuck", str(len(report.stuck))),
        ("lost", f"{len(report.lost)} of {report.created} pods"),
    ]
    shown = [f"{name:<14} {words}" for name, words in rows]
    for title in ("double_booked", "stuck", "lost"):
        for each in getattr(report, title):
            where = f" on {each.node}" if each.node else ""
            subject = f"{each.pod}: " if each.pod else ""
            shown.append(f"{title.upper().replace('_', '-')}: {each.at:.1f} s{where}: {subject}{each.why}")
    return "\n".join(shown)


def lab(asked: CampaignOptions) -> LabSpec:
    nodes = directscript.nodes()
    return LabSpec(name=asked.name, nodes=nodes, runtime="containerd", scheduler=True, agent=True)


async def run(asked: CampaignOptions, say: Say) -> tuple[DirectCampaignReport, list[HistoryLine]]:
    """The report, and its history."""
    async with up.up(lab(asked), say) as started:
        campaign = DirectCampaign(started, asked, say)
        interrupted = await play_to_end(campaign.play(), started, asked)
        return campaign.report(interrupted=interrupted), campaign.history.lines
