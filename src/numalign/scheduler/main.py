"""The scheduling process, built and run.

    await Scheduler(Setup(config=config), client, election).run()

`numalign scheduler run` calls it in real time, scenarios in virtual time on the embedded cluster. Everything is watched
from the start; only the leader decides, binds and tells. Where the lease is lost, `LeadershipLost` ends the process,
which has to start again as a candidate."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final, TypedDict

from msgspec import Struct, field

from numalign.api.errors import BadObject
from numalign.api.pod import Pod
from numalign.api.schedulerconfig import configuration, pluginargs
from numalign.api.schedulerconfig.configuration import Configuration
from numalign.kube import leading
from numalign.kube.client import Client
from numalign.kube.clock import Clock
from numalign.kube.events import Reporter
from numalign.kube.lease import Election
from numalign.placement.decisions import Randomness
from numalign.placement.engine import Engine
from numalign.placement.rules.nodeaffinity import NodeAffinity
from numalign.placement.rules.resourcesfit import NodeResourcesFit
from numalign.placement.rules.world import World
from numalign.process import tasks
from numalign.scheduler import interests, settings
from numalign.scheduler.binding import Binder
from numalign.scheduler.claims import DynamicResources
from numalign.scheduler.cluster import Cluster
from numalign.scheduler.cycle import Cycle
from numalign.scheduler.intake import Intake
from numalign.scheduler.metrics import Metrics
from numalign.scheduler.outcomes import Outcomes
from numalign.scheduler.profiles import Profile
from numalign.scheduler.publish import Publisher
from numalign.scheduler.queue import Queue
from numalign.scheduler.rejections import Rejections
from numalign.scheduler.stock import Stock
from numalign.scheduler.volumes import Volumes
from numalign.scheduler.wakeups import Wakeups
from numalign.scheduler.watching import Watched

TICK: Final = 1.0
NOTHING_SAID: Final = {"apiVersion": pluginargs.API_VERSION, "kind": configuration.KIND}


def defaults() -> Configuration:
    """What counts where there is no file."""
    return settings.read(NOTHING_SAID, "defaults")


class Setup(Struct, frozen=True, kw_only=True):
    config: Configuration = field(default_factory=defaults)
    instance: str = ""
    """Who reports events: the scheduler's name and the host's."""
    rng: Randomness | None = None
    """Breaks ties; None: by the configuration's seed, or by chance."""


class Shared(TypedDict):
    """What most parts are given."""

    publisher: Publisher
    counts: Metrics
    clock: Clock


class Scheduler:
    def __init__(self, setup: Setup, client: Client, election: Election | None = None) -> None:
        """Without an election it leads at once, alone."""
        config, clock = setup.config, client.sender.clock
        own = settings.ours(config)
        if own.flavour != "exact":
            why = f'"{own.flavour}" picks nodes by itself and cannot be one rule among others; write exact'
            raise BadObject(configuration.KIND, "", "flavour", why)
        self._client, self._clock, self._election = client, clock, election
        world, self.metrics, rejections = World(), Metrics(), Rejections()
        self.cluster = Cluster(Engine(settings.engine(config)), world)
        stock = Stock(world)
        made = {each.scheduler_name: stock.profile(each) for each in config.profiles}
        self.queue = Queue(_wakeups(made, self.cluster), settings=settings.waiting(config))
        self.publisher = Publisher(client, Reporter(config.profiles[0].scheduler_name, setup.instance), self.leads)
        volumes = Volumes(client, stock.volumes, world)
        shared: Shared = {
            "publisher": self.publisher,
            "counts": self.metrics,
            "clock": clock,
        }
        books = Outcomes(self.cluster, self.queue, volumes, **shared)
        self.binder = Binder(client, books, volumes, leads=self.leads, workers=own.parallel_binds)
        self.cycle = Cycle(
            self.cluster,
            self.queue,
            made,
            binder=self.binder,
            volumes=volumes,
            rejections=rejections,
            rng=random.Random(own.seed) if setup.rng is None else setup.rng,
            **shared,
        )
        self.intake = Intake(
            self.cluster,
            self.queue,
            made,
            rejections=rejections,
            wake=self.cycle.wake,
            clears_rejected=own.delete_rejected_pods,
            **shared,
        )
        self.watched = Watched(client, self.intake, stock)
        self.metrics.watch(self.queue, self.cluster, client.sender.metrics)

    def leads(self) -> bool:
        """Asked right before everything that only a leader may do."""
        return self._election is None or self._election.leads(self._clock.now())

    def now(self) -> float:
        return self._clock.now()

    async def run(self, elector: Client | None = None) -> None:
        """Until cancelled. `elector`: a client of its own for the lease."""
        beside = {f"watch-{name}": informer.run() for name, informer in self.watched.informers.items()}
        await tasks.together(self._lead(elector or self._client), {**beside, "tick": self._tick()})

    async def _lead(self, elector: Client) -> None:
        if self._election is None:
            await self._work()
        else:
            await leading.lead(elector, self._election, self._work)

    async def _work(self) -> None:
        await self.watched.synced()
        await tasks.together(self.cycle.run(), {"binding": self.binder.run(), "publishing": self.publisher.run()})

    async def _tick(self) -> None:
        while True:
            await self._clock.sleep(TICK)
            self.intake.tick()


def _wakeups(profiles: Mapping[str, Profile], cluster: Cluster) -> dict[str, Wakeups]:
    """What may help pods of each profile, with the profile's own rules; nothing helps those that are left alone."""
    found: dict[str, Wakeups] = {}
    for name, profile in profiles.items():
        rules = {rule.name: rule for rule in profile.filters}
        affinity, fit = rules.get(NodeAffinity.name), rules.get(NodeResourcesFit.name)
        table = interests.stock(
            affinity=affinity if isinstance(affinity, NodeAffinity) else None,
            fit=fit if isinstance(fit, NodeResourcesFit) else None,
            zones=Zones(cluster),
        )
        found[name] = Wakeups({**table, DynamicResources.name: ()})
    return found


class Zones:
    """What the engine says about one node now, for whoever wonders whether to wake a pod."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def refuses(self, pod: Pod, node: str) -> bool:
        engine = self._cluster.engine
        row = engine.columns.rows.get(node)
        return row is None or bool(engine.survey(engine.shape(pod))[row] < 0)
