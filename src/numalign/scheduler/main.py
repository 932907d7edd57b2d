"""Builds the scheduler and runs it.

    await Scheduler(Setup(config=config), client, election).run()

`numalign scheduler run` calls it in real time, scenarios in virtual time on the embedded cluster. Every replica
watches the cluster from the start, unless the configuration says otherwise; only the leader schedules, binds and
writes Events. When the lease is lost, `LeadershipLost` ends the process, which must be started again."""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypedDict

from msgspec import Struct, field

from numalign.api.objects.pod import Pod
from numalign.api.schedulerconfig import configuration, pluginargs
from numalign.api.schedulerconfig.configuration import Configuration
from numalign.kube.client import Client
from numalign.kube.clock import Clock
from numalign.kube.events.events import Reporter
from numalign.kube.leader import leading
from numalign.kube.leader.lease import Election
from numalign.placement.decisions import Randomness
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
from numalign.scheduler.events.publish import Publisher
from numalign.scheduler.extender import extender
from numalign.scheduler.extender.extender import Extender
from numalign.scheduler.intake.intake import Intake
from numalign.scheduler.intake.watching import Informers
from numalign.scheduler.metrics import Metrics
from numalign.scheduler.preempt.preemption import Preemption
from numalign.scheduler.preempt.preemptor import Evictor, PreemptionGate, Preemptor
from numalign.scheduler.profiles import Profile
from numalign.scheduler.queue import wakeups
from numalign.scheduler.queue.clusterevents import Action, Resource
from numalign.scheduler.queue.queue import SchedulingQueue
from numalign.scheduler.queue.wakeups import Interest, Wakeups

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
    schedules: bool = True
    """False: another scheduler schedules the pods of all profiles; this one answers its questions (`extender`)."""


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
        self._client, self._clock, self._election = client, clock, election
        self._parallel_binds = own.parallel_binds
        world, self.metrics, self.rejections = ClusterState(), Metrics(), StormGuard()
        self.histories, self.decision_log = PodHistories(clock.now), DecisionLog()
        self.config = config
        self.cluster = Cluster(Engine(settings.engine(config)), world)
        self.stock = stock = Plugins(world)
        self.profiles = made = {each.scheduler_name: stock.profile(each) for each in config.profiles}
        gate = PreemptionGate()
        self.queue = SchedulingQueue(_wakeups(made, self.cluster), (gate,), settings.waiting(config))
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
        self.binder = Binder(client, results, volumes, leads=self.leads, workers=own.parallel_binds)
        self._rng = rng = random.Random(own.seed) if setup.rng is None else setup.rng
        self.evictor = self._made_evictor(gate)
        self.cycle = Cycle(
            self.cluster,
            self.queue,
            made,
            binder=self.binder,
            volumes=volumes,
            rejections=self.rejections,
            rng=rng,
            decision_log=self.decision_log,
            preemptor=self._made_preemptor(rng),
            **shared,
        )
        self.intake = Intake(
            self.cluster,
            self.queue,
            made if setup.schedules else {},
            rejections=self.rejections,
            wake=self.cycle.wake,
            clears_rejected=own.delete_rejected_pods,
            **shared,
        )
        self.watched = Informers(client, self.intake, stock, zones=any(each.zones for each in made.values()))
        self.metrics.watch(self.queue, self.cluster, client.sender.metrics)
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
            Preemption(self.cluster, self.queue.nominations, self.stock.budgets),
            self.queue,
            evictor=self.evictor,
            publisher=self.publisher,
            counts=self.metrics,
            rng=rng,
        )

    def extender(self, hold: float = extender.HOLD) -> Extender:
        """Answers about pods that another scheduler schedules; `follow` keeps it up to date."""
        context = AttemptContext(self.cluster, self.queue.nominations, self.rejections)
        return Extender(self.cluster, self.profiles, context, self._client, rng=self._rng, hold=hold)

    def leads(self) -> bool:
        """Whether this process holds the lease; checked right before every action that only the leader may take."""
        return self._election is None or self._election.leads(self._clock.now())

    def _free_calls(self) -> int:
        """The number of calls that bindings leave free, which Events may use."""
        return max(0, self._parallel_binds - self.queue.on_their_way)

    def now(self) -> float:
        return self._clock.now()

    def wall(self) -> datetime:
        return self._clock.wall()

    async def run(self, elector: Client | None = None) -> None:
        """Runs until cancelled. `elector`: a separate client for the lease."""
        watching = {} if self.config.delay_cache_until_active else self._watching()
        await tasks.together(self._lead(elector or self._client), {**watching, "tick": self._tick()})

    async def follow(self, extender: Extender) -> None:
        """Runs until cancelled: follows the cluster and schedules nothing."""
        await tasks.together(self._tick(extender.tick), self._watching())

    def _watching(self) -> dict[str, Coroutine[Any, Any, None]]:
        return {f"watch-{name}": informer.run() for name, informer in self.watched.informers.items()}

    async def _lead(self, elector: Client) -> None:
        if self._election is None:
            await self._work()
        else:
            if not self.config.delay_cache_until_active:
                # To read a large cluster takes longer than the lease may go without renewal.
                await self.watched.synced()
            await leading.lead(elector, self._election, self._work, self._reporter)

    async def _work(self) -> None:
        late = self._watching() if self.config.delay_cache_until_active else {}
        await tasks.together(self._scheduling(), late)

    async def _scheduling(self) -> None:
        await self.watched.synced()
        beside = {"binding": self.binder.run(), "evicting": self.evictor.run(), "publishing": self.publisher.run()}
        await tasks.together(self._deciding(), beside)

    async def _deciding(self) -> None:
        if self._election is not None and self._election.follows_another:
            await self.watched.caught_up()
        await self.cycle.run()

    async def _tick(self, beside: Callable[[], None] = lambda: None) -> None:
        while True:
            await self._clock.sleep(TICK)
            self.intake.tick()
            beside()


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
