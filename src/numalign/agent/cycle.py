"""The agent's main loop: waits for a trigger, reads the node, publishes the report; and the agent's metrics.

`main` builds and runs it; tests run it in virtual time. It does one thing at a time, so that a report is never older
than the last snapshot: after a failed write, the next attempt takes a new snapshot. An uncertain snapshot is not
published; the cluster keeps the previous report, and its heartbeat shows its age."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from msgspec import Struct, structs

from numalign.agent.inventory.inventory import Inventory
from numalign.agent.inventory.snapshot import Snapshot
from numalign.agent.publish.publish import Manner, Outcome, Publisher
from numalign.agent.triggers.schedule import PERIOD
from numalign.agent.triggers.triggers import SOCKET
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.api.objects.node import Node
from numalign.kube import errors
from numalign.kube.backoff import BackoffManager
from numalign.kube.client import Client
from numalign.kube.events.events import Occurrence, Reporter
from numalign.kube.events.recorder import Recorder
from numalign.kube.resources import NODES, ObjectReference
from numalign.kube.transport.transport import Metrics as ClientMetrics
from numalign.kubelet.settings import Settings
from numalign.process import metrics
from numalign.process.log import about
from numalign.process.metrics import Read, Registry

SECONDS: Final = metrics.exponential(0.001, 2, 14)


class Metrics:
    def __init__(self) -> None:
        self.registry = made = Registry()
        metrics.register_process_metrics(made)
        self.looks = made.counter(
            "numalign_agent_looks_total", "Looks at the node, by what asked for them.", ("reason",)
        )
        self.seconds = made.histogram("numalign_agent_look_seconds", "How long looks took.", SECONDS)
        self.reports = made.counter(
            "numalign_agent_reports_total", "Reports made: written, heartbeat, equal, stood back, failed.", ("result",)
        )
        self.failures = made.counter(
            "numalign_agent_write_failures_total",
            "Reports that the API server did not take, by status code.",
            ("code",),
        )
        self.podresources = made.counter(
            "numalign_agent_podresources_errors_total", "Questions that the kubelet did not answer.", ("kind",)
        )
        self.inconsistencies = made.counter(
            "numalign_agent_inconsistencies_total",
            "Looks after which the kubelet's answers still contradicted its checkpoints or its configuration.",
        )
        self.withheld = made.counter("numalign_agent_withheld_total", "Looks that found too little to report anything.")
        self.problems = made.gauge("numalign_agent_problems", "Things that were odd in the last look.")
        self.stands_back = made.gauge("numalign_agent_stands_back", "1 while another publisher writes the report.")
        self.pruned = made.gauge("numalign_agent_pruned_attributes", "Attributes that the API server does not keep.")

    def watch(self, age: Callable[[], float | None], client: ClientMetrics) -> None:
        """What is counted elsewhere."""
        known = Read("gauge", "numalign_agent_report_age_seconds", "Since the report was last known to be right.", ())
        self.registry.read(known, lambda: [] if (seconds := age()) is None else [((), seconds)])
        requests = Read("counter", "rest_client_requests_total", "Calls of the API server.", ("verb", "code"))
        self.registry.read(requests, lambda: [(labels, float(count)) for labels, count in client.requests.items()])


LOG: Final = logging.getLogger(__name__)
CONTROLLER: Final = "numalign-agent"
AFTER_ENDING: Final = (2.0, 11.0)
"""Seconds after which to look again when a pod is gone: the kubelet frees what it held later (exporter spec 13.16)."""
FEW: Final = 5
"""Problems that are told in a log."""
SOON: Final = 5.0
"""Seconds until the next try where something is missing that usually comes soon."""


class SnapshotSource(Protocol):
    """What is needed of `looks.Looker`."""

    async def look(self, *, fresh: bool = ...) -> Snapshot: ...

    def tell_version(self, kubelet: str) -> None: ...


class Waiting(Protocol):
    """What is needed of `triggers.Triggers`."""

    async def wait(self) -> frozenset[str]: ...

    def ask_again(self, after: float, reason: str = ...) -> None: ...


class Standing(Struct):
    """What `serving` tells of."""

    told_at: float | None = None
    """When the cluster was last known to know the node as it is; None: never."""
    withheld: tuple[str, ...] = ()
    """Why nothing was told after the last look."""
    failure: str = ""
    """What became of the last try to tell."""


class Agent:
    def __init__(self, node: str, client: Client, manner: Manner, looks: SnapshotSource, triggers: Waiting) -> None:
        self._name, self._client, self._clock = node, client, client.sender.clock
        self._period = manner.period
        self._looks, self._triggers = looks, triggers
        self._publisher = Publisher(client, node, manner)
        self._manner = manner
        self._node: Node | None = None
        self._checked: float | None = None
        """When everything was last looked at that seldom changes."""
        self._backoff = BackoffManager()
        self._pods: frozenset[tuple[str, str]] = frozenset()
        self._vouched: Settings | None = None
        """What the cluster was told of the kubelet's configuration before its file was written anew."""
        self._said: dict[str, object] = {}
        self.recorder = Recorder(client, Reporter(CONTROLLER, manner.instance))
        self.metrics = Metrics()
        self.metrics.watch(self.age, client.sender.metrics)
        self.standing = Standing()

    def age(self) -> float | None:
        """Seconds since the cluster was known to know the node as it is."""
        return None if self.standing.told_at is None else self._clock.now() - self.standing.told_at

    @property
    def other(self) -> str:
        """Who else writes this node's report; empty: nobody."""
        return self._publisher.guard.other

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self.round(await self._triggers.wait())

    async def round(self, reasons: frozenset[str]) -> None:
        for reason in reasons:
            self.metrics.looks.add(reason)
        started = self._clock.now()
        # Where something happens all the time nobody asks for the period.
        over = self._checked is None or started - self._checked >= self._period or PERIOD in reasons
        check = over or self._node is None or bool(self.standing.failure)
        if check:
            self._checked = started
            await self._ask_for_node()
        look = await self._settled(await self._looks.look(fresh=over or SOCKET in reasons))
        self.metrics.seconds.observe(number=self._clock.now() - started)
        self._note(look)
        if look.inventory is not None and not look.unknown:
            report = self._report(look.inventory)
            await self._tell(report, started, check=check, periodic=reasons == {PERIOD})

    def _report(self, inventory: Inventory) -> NodeTopology:
        return inventory.report(self._name, self._manner.mode, self._manner.left_out)

    async def _settled(self, look: Snapshot) -> Snapshot:
        """A doubt about the kubelet's configuration is none if the cluster has been told the same of it before."""
        settings = look.readings.settings
        if not look.doubt or look.inventory is None:
            return look
        if self._vouched != settings:
            try:
                known = await self._publisher.was_so_configured(self._report(look.inventory))
            except errors.KubeError:
                known = False
            self._vouched = settings if known else None
        return look if self._vouched == settings else structs.replace(look, unknown=(*look.unknown, look.doubt))

    async def _ask_for_node(self) -> None:
        """Its uid changes when it is made anew (exporter spec, D-33), and its kubelet may be another one."""
        try:
            self._node = await self._client.get(NODES.at(self._name))
            self._looks.tell_version(self._node.status.node_info.kubelet_version)
        except errors.NotFound:
            self._node = None
            self._triggers.ask_again(SOON)
        except errors.KubeError as problem:
            self._say("node", "what is known of the node stays", problem)

    def _note(self, look: Snapshot) -> None:
        """Everything about a look that somebody may want to know."""
        read, counts = look.readings, self.metrics
        self.standing.withheld = look.unknown
        counts.problems.set(to=len(read.problems))
        if read.podresources_error:
            counts.podresources.add(read.podresources_error)
        if look.contradictions:
            counts.inconsistencies.add()
            self._triggers.ask_again(SOON)
        if look.unknown:
            counts.withheld.add()
            self._triggers.ask_again(SOON)
        self._say("problems", "odd", *read.problems, *look.contradictions)
        self._say("unknown", "nothing is told", *look.unknown)
        self._follow(frozenset((pod.namespace, pod.name) for pod in read.pods or ()))

    def _follow(self, pods: frozenset[tuple[str, str]]) -> None:
        if self._pods - pods:
            for seconds in AFTER_ENDING:
                self._triggers.ask_again(seconds)
        self._pods = pods

    async def _tell(self, topology: NodeTopology, looked_at: float, *, check: bool, periodic: bool) -> None:
        owner = {"name": self._name, "uid": self._node.metadata.uid} if self._node is not None else None
        try:
            outcome = await self._publisher.publish(topology, owner, check=check, periodic=periodic)
        except errors.KubeError as problem:
            return self._failed(problem)
        self.standing.failure = ""
        self._say("failure", "not told")
        self.metrics.reports.add(outcome)
        if outcome != "stood back":
            self.standing.told_at = looked_at
        if outcome == "written":
            LOG.info("told", extra=about(node=self._name))
        self._note_others(outcome)

    def _failed(self, problem: errors.KubeError) -> None:
        code = str(problem.code) if isinstance(problem, errors.Refusal) else "<error>"
        self.metrics.reports.add("failed")
        self.metrics.failures.add(code)
        self.standing.failure = _in_words(problem)
        self._say("failure", "not told", self.standing.failure)
        # Never longer than a period, so that the report is right a period after the server is back.
        pause = self._backoff.failed(self._clock.now(), self._clock.chance())
        self._triggers.ask_again(min(pause, self._period / 2))

    def _note_others(self, outcome: Outcome) -> None:
        other, pruned = self.other, self._publisher.pruned
        self.metrics.stands_back.set(to=float(outcome == "stood back"))
        self.metrics.pruned.set(to=len(pruned))
        if self._say("other", "another publisher writes this node's report, ours stands back", *filter(None, [other])):
            self._accuse(other)
        self._say("pruned", "the API server does not keep attributes; its definition of the kind is older", *pruned)

    def _accuse(self, other: str) -> None:
        uid = self._node.metadata.uid if self._node is not None else ""
        regarding = ObjectReference(kind="Node", api_version="v1", name=self._name, uid=uid)
        note = (
            f"{other} writes the NodeResourceTopology of this node too; {CONTROLLER} stands back, and tries again later"
        )
        what = Occurrence(
            regarding=regarding, reason="SecondTopologyPublisher", action="Publishing", note=note, type="Warning"
        )
        self.recorder.record(what)

    def _say(self, topic: str, what: str, *details: object) -> bool:
        """Once, until there is something else to say of it: whether it is new, and bad."""
        told = tuple(map(str, details))
        if self._said.get(topic, ()) == told:
            return False
        self._said[topic] = told
        if told:
            LOG.warning("%s: %s", what, _listed(told), extra=about(node=self._name))
        else:
            LOG.info("over: %s", what, extra=about(node=self._name))
        return bool(told)


def _listed(details: Iterable[str]) -> str:
    every = tuple(details)
    more = f"; and {len(every) - FEW} more" if len(every) > FEW else ""
    return "; ".join(every[:FEW]) + more


def _in_words(problem: errors.KubeError) -> str:
    if isinstance(problem, errors.NotFound) and problem.verb == "apply":
        return f"{problem}; is the definition of NodeResourceTopology installed?"
    return str(problem)
