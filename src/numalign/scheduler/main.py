"""Builds the scheduler and runs it.

    await Scheduler(Setup(config=config), client, election).run()

`numalign scheduler run` calls it in real time, scenarios in virtual time on the embedded cluster. Every replica
watches the cluster from the start, unless the configuration says otherwise; only the leader schedules, binds and
writes Events. When the lease is lost, `LeadershipLost` ends the process, which must be started again."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final, NamedTuple, TypedDict

from msgspec import Struct, field

from numalign.api.objects import stockonly
from numalign.api.objects.pod import Pod
from numalign.api.schedulerconfig import configuration, pluginargs
from numalign.api.schedulerconfig.configuration import Configuration
from numalign.kube.client import Client
from numalign.kube.clock import Clock
from numalign.kube.events.events import Reporter
from numalign.kube.leader import leading
from numalign.kube.leader.lease import Election
from numalign.kube.watch.store import Change
from numalign.placement.decisions import Randomness, Wake
from numalign.placement.engine import Engine
from numalign.placement.rules.clusterstate import ClusterState
from numalign.placement.rules.nodes.nodeaffinity import NodeAffinity
from numalign.placement.rules.nodes.topologyreports import AwaitedNodesFilter
from numalign.placement.rules.resources.resourcesfit import NodeResourcesFit
from numalign.process import tasks
from numalign.scheduler import settings
from numalign.scheduler.bind.binder import Binder, BindResults, VolumeBinder
from numalign.scheduler.choose.choose import AttemptContext
from numalign.scheduler.choose.cluster import Cluster
from numalign.scheduler.choose.decisionlog import DecisionLog
from numalign.scheduler.choose.plugins import DynamicResources, Plugins
from numalign.scheduler.choose.stormguard import StormGuard
from numalign.scheduler.cycle import Cycle
from numalign.scheduler.events.podhistory import PodHistories
from numalign.scheduler.events.podtraces import PodTraces, Tracing
from numalign.scheduler.events.publish import Publisher
from numalign.scheduler.extender.extender import Extender, ExtenderSettings
from numalign.scheduler.intake.intake import Intake
from numalign.scheduler.intake.watching import Informers
from numalign.scheduler.metrics import Metrics
from numalign.scheduler.preempt.preemption import Preemption
from numalign.scheduler.preempt.preemptor import Evictor, PreemptionGate, Preemptor
from numalign.scheduler.profiles import Profile
from numalign.scheduler.queue import wakeups
from numalign.scheduler.queue.clusterevents import Action, Resource
from numalign.scheduler.queue.nominations import Nominations
from numalign.scheduler.queue.queue import SchedulingQueue
from numalign.scheduler.queue.wakeups import Interest, Wakeups
from numalign.scheduler.record import taps
from numalign.scheduler.record.taps import (
    RecordedCluster,
    RecordedDecisions,
    RecordedNominations,
    RecordedStormGuard,
    Tape,
)
from numalign.scheduler.summary import PeriodicSummary

LOG: Final = logging.getLogger(__name__)
TICK: Final = 1.0
CLASS_CHANGED: Final = Interest(Resource.DEVICE_CLASS, Action.UPDATE | Action.DELETE)
NOTHING_SAID: Final = {"apiVersion": pluginargs.API_VERSION, "kind": configuration.KIND}


def defaults() -> Configuration:
    """The configuration that applies without a file."""
    return settings.read(NOTHING_SAID, "defaults")


class Setup(Struct, frozen=True, kw_only=True):
    config: Configuration = field(default_factory=defaults)
    instance: str = ""
    """The reporter of Events: the scheduler's name and the host name."""
    rng: Randomness | None = None
    """Breaks ties. None: seeded by the configuration, or at random."""
    tape: Tape | None = None
    """Takes down every change and every decision; None: nothing is recorded."""
    schedules: bool = True
    """False: another scheduler schedules the pods of all profiles; this one answers its questions."""
    extender: ExtenderSettings | None = None
    """Not None: questions of kube-scheduler are answered."""
    tracing: Tracing | None = None
    """Takes spans; None: nothing is traced."""


class _Parts(NamedTuple):
    """The parts that hold the scheduler's view of the cluster."""

    cluster: Cluster
    nominations: Nominations
    rejections: StormGuard
    decision_log: DecisionLog
    tap: Callable[[str, Change[Any], float], None]


def _parts(engine: Engine, world: ClusterState, tape: Tape | None) -> _Parts:
    if tape is None:
        return _Parts(Cluster(engine, world), Nominations(), StormGuard(), DecisionLog(), lambda *_: None)
    return _Parts(
        RecordedCluster(engine, world, tape),
        RecordedNominations(tape),
        RecordedStormGuard(tape, lambda: engine.known_shapes),
        RecordedDecisions(tape),
        partial(taps.changed, tape),
    )


class Shared(TypedDict):
    """Dependencies that most parts of the scheduler share."""

    publisher: Publisher
    counts: Metrics
    clock: Clock
    histories: PodHistories


class Scheduler:
    def __init__(self, setup: Setup, client: Client, election: Election | None = None) -> None:
        """Without an election the scheduler leads immediately."""
        config, clock = setup.config, client.sender.clock
        own = settings.ours(config)
        self._client, self.clock, self._election = client, clock, election
        self._parallel_binds, self._schedules = own.parallel_binds, setup.schedules
        self.while_leading: dict[str, Callable[[], tasks.Part]] = {}
        """Parts that run beside the scheduling cycle, by name, as long as this process leads; without a cycle of its
        own, always."""
        traces = PodTraces(setup.tracing, clock) if setup.tracing is not None else None
        self.histories = PodHistories(clock.now, observer=traces.noted if traces is not None else None)
        world, self.metrics = ClusterState(), Metrics()
        self.config = config
        parts = _parts(Engine(settings.engine(config)), world, setup.tape)
        self.cluster, self.rejections, self.decision_log = parts.cluster, parts.rejections, parts.decision_log
        self.stock = stock = Plugins(world)
        self.profiles = made = {each.scheduler_name: stock.profile(each) for each in config.profiles}
        gate = PreemptionGate()
        self.queue = SchedulingQueue(_wakeups(made, self.cluster), (gate,), settings.waiting(config), parts.nominations)
        self._reporter = Reporter(config.profiles[0].scheduler_name, setup.instance)
        self.publisher = Publisher(client, self._reporter, self.leads, self._free_calls)
        volumes = VolumeBinder(client, stock.volumes, world)
        shared: Shared = {
            "publisher": self.publisher,
            "counts": self.metrics,
            "clock": clock,
            "histories": self.histories,
        }
        results = BindResults(self.cluster, self.queue, volumes, **shared)
        self.binder = Binder(
            client,
            results,
            volumes,
            leads=self.leads,
            workers=own.parallel_binds,
            koordinator=own.koordinator_annotations,
        )
        self._rng = rng = random.Random(own.seed) if setup.rng is None else setup.rng
        self._preemption = Preemption(self.cluster, self.queue.nominations, stock.budgets)
        self.evictor = self._made_evictor(gate)
        self._preemptor = self._made_preemptor(rng)
        self.cycle = Cycle(
            self.cluster,
            self.queue,
            made,
            binder=self.binder,
            volumes=volumes,
            rejections=self.rejections,
            rng=rng,
            decision_log=self.decision_log,
            preemptor=self._preemptor,
            traces=traces,
            **shared,
        )
        self.intake = Intake(
            self.cluster,
            self.queue,
            made if setup.schedules else {},
            rejections=self.rejections,
            wake=self.cycle.wake,
            clears_rejected=own.delete_rejected_pods,
            improved=self._improved,
            answers=setup.extender is not None,
            tap=parts.tap,
            **shared,
        )
        self.extender = self._made_extender(setup.extender) if setup.extender is not None else None
        self.watched = Informers(
            client,
            self.intake,
            stock,
            zones=any(each.zones for each in made.values()),
            koordinator=own.koordinator_annotations,
        )
        self.metrics.watch(self.queue, self.cluster, client.sender.metrics, clock.now)
        self._summary = PeriodicSummary(made, self.cluster, self.queue, self.metrics)
        if election is not None:
            self.metrics.readings.leadership(election.place.name, self.leads)

    def _made_evictor(self, gate: PreemptionGate) -> Evictor:
        return Evictor(
            self._client,
            self.queue,
            gate=gate,
            publisher=self.publisher,
            leads=self.leads,
            is_there=self.cluster.world.pods.__contains__,
            histories=self.histories,
            wake=lambda: self.cycle.wake(),
        )

    def _made_preemptor(self, rng: Randomness) -> Preemptor:
        return Preemptor(
            self._preemption,
            self.queue,
            evictor=self.evictor,
            publisher=self.publisher,
            counts=self.metrics,
            rng=rng,
        )

    def _made_extender(self, settings: ExtenderSettings) -> Extender:
        return Extender(
            self.cluster,
            self.profiles,
            AttemptContext(self.cluster, self.queue.nominations, self.rejections),
            self._preemption,
            self._preemptor,
            self.publisher,
            self._client,
            rng=self._rng,
            leads=self.leads,
            own=self.profiles if self._schedules else (),
            woken=self.intake.woken,
            histories=self.histories,
            settings=settings,
        )

    def _improved(self, wakes: list[Wake]) -> None:
        if self.extender is not None:
            self.extender.improved(wakes)

    def leads(self) -> bool:
        """Whether this process holds the lease; checked right before every action that only the leader may take."""
        return self._election is None or self._election.leads(self.clock.now())

    def _free_calls(self) -> int:
        """The number of calls that bindings leave free, which Events may use."""
        return max(0, self._parallel_binds - self.queue.on_their_way)

    def now(self) -> float:
        return self.clock.now()

    def wall(self) -> datetime:
        return self.clock.wall()

    async def run(self, elector: Client | None = None) -> None:
        """Runs until cancelled. `elector`: a separate client for the lease."""
        beside = {} if self._is_late else self._watching()
        if self.extender is not None:
            # A standby is asked, too.
            beside |= self._writing()
        if not self._schedules:
            return await tasks.together(self._tick(), beside | self._further())
        await tasks.together(self._lead(elector or self._client), {**beside, "tick": self._tick()})

    def _writing(self) -> dict[str, Coroutine[Any, Any, None]]:
        return {"evicting": self.evictor.run(), "publishing": self.publisher.run()}

    @property
    def _is_late(self) -> bool:
        """Whether a standby does not follow the cluster. With an extender it does, because it is asked, too."""
        return self.config.delay_cache_until_active and self.extender is None

    def _watching(self) -> dict[str, Coroutine[Any, Any, None]]:
        return {f"watch-{name}": informer.run() for name, informer in self.watched.informers.items()}

    async def _lead(self, elector: Client) -> None:
        if self._election is None:
            await self._work()
        else:
            if not self._is_late:
                # To read a large cluster takes longer than the lease may go without renewal.
                await self.watched.synced()
            await leading.lead(elector, self._election, self._work, self._reporter)

    async def _work(self) -> None:
        late = self._watching() if self._is_late else {}
        await tasks.together(self._scheduling(), late)

    async def _scheduling(self) -> None:
        await self.watched.synced()
        beside = {} if self.extender is not None else self._writing()
        await tasks.together(self._deciding(), {"binding": self.binder.run(), **beside, **self._further()})

    def _further(self) -> dict[str, tasks.Part]:
        return {name: part() for name, part in self.while_leading.items()}

    async def _deciding(self) -> None:
        # The parts beside begin before the first decision: a recorder misses none.
        await asyncio.sleep(0)
        if self._election is not None and self._election.follows_another:
            await self.watched.caught_up()
        self._warn_of_stock_only()
        await self.cycle.run()

    def _warn_of_stock_only(self) -> None:
        waiting = [queued.pod for pool in self.queue.pending().values() for queued in pool]
        uses = Counter(filter(None, (stockonly.of(pod.spec) for pod in waiting)))
        for use, count in uses.items():
            LOG.warning("%d waiting pods use %s", count, use)

    async def _tick(self) -> None:
        while True:
            await self.clock.sleep(TICK)
            self.intake.tick()
            self._summary.tick(self.clock.now(), is_synced=self.watched.has_synced, leads=self.leads())
            for _ in self.extender.tick() if self.extender is not None else ():
                await asyncio.sleep(0)


def _wakeups(profiles: Mapping[str, Profile], cluster: Cluster) -> dict[str, Wakeups]:
    """The wake-up tables by profile, with the settings of the profile's own plugins."""
    found: dict[str, Wakeups] = {}
    for name, profile in profiles.items():
        rules = {rule.name: rule for rule in profile.filters}
        affinity, fit = rules.get(NodeAffinity.name), rules.get(NodeResourcesFit.name)
        table = wakeups.stock(
            affinity=affinity if isinstance(affinity, NodeAffinity) else None,
            fit=fit if isinstance(fit, NodeResourcesFit) else None,
            zones=ZoneCheck(cluster, [rule for rule in profile.filters if isinstance(rule, AwaitedNodesFilter)]),
        )
        found[name] = Wakeups({**table, DynamicResources.name: (CLASS_CHANGED,)})
    return found


class ZoneCheck:
    """Asks about the zones of one node, for queueing hints: the engine, and whether the zones are known at all."""

    def __init__(self, cluster: Cluster, reports: Sequence[AwaitedNodesFilter] = ()) -> None:
        self._cluster, self._reports = cluster, reports

    def refuses(self, pod: Pod, node: str) -> bool:
        engine, world = self._cluster.engine, self._cluster.world
        if engine.refuses(engine.shape(pod), node):
            return True
        row = world.rows.get(node)
        return row is not None and any(rule.holds(pod, row, world) for rule in self._reports)
