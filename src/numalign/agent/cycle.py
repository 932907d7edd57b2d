"""The agent's main loop: waits for a trigger, reads the node, publishes the report; and the agent's metrics.

`main` builds and runs it; tests run it in virtual time. It does one thing at a time, so that a report is never older
than the last snapshot: after a failed write, the next attempt takes a new snapshot. An uncertain snapshot is not
published; the cluster keeps the previous report, and its heartbeat shows its age. While the kubelet is away, the
previous report is published with that statement: a kubelet that starts rejects pods that a running one would admit."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from msgspec import Struct, structs

from numalign.agent.enforce.enforcer import Enforcer
from numalign.agent.enforce.messages import Sandbox
from numalign.agent.inventory.inventory import Inventory
from numalign.agent.inventory.snapshot import Snapshot
from numalign.agent.publish import startuptaint
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
            "numalign_agent_looks_total", "Number of snapshots taken of the node, by trigger.", ("reason",)
        )
        self.seconds = made.histogram("numalign_agent_look_seconds", "Duration of snapshots in seconds.", SECONDS)
        self.reports = made.counter(
            "numalign_agent_reports_total",
            "Number of reports by outcome: written, heartbeat, equal, stood back, failed.",
            ("result",),
        )
        self.failures = made.counter(
            "numalign_agent_write_failures_total",
            "Number of reports that the API server refused, by status code.",
            ("code",),
        )
        self.podresources = made.counter(
            "numalign_agent_podresources_errors_total",
            "Number of failed calls to the kubelet's podresources API.",
            ("kind",),
        )
        self.inconsistencies = made.counter(
            "numalign_agent_inconsistencies_total",
            "Number of snapshots in which the kubelet's answers contradicted its checkpoints or configuration.",
        )
        self.withheld = made.counter(
            "numalign_agent_withheld_total", "Number of snapshots that were too incomplete to publish."
        )
        self.problems = made.gauge("numalign_agent_problems", "Number of problems in the last snapshot.")
        self.stands_back = made.gauge(
            "numalign_agent_stands_back", "1 while another publisher owns the node's NodeResourceTopology, otherwise 0."
        )
        self.enforces = made.gauge(
            "numalign_agent_enforces", "1 while the agent enforces decisions of direct mode, otherwise 0."
        )
        self.pruned = made.gauge("numalign_agent_pruned_attributes", "Number of attributes that the API server prunes.")

    def watch(self, age: Callable[[], float | None], client: ClientMetrics) -> None:
        """Registers values that other components count."""
        known = Read(
            "gauge",
            "numalign_agent_report_age_seconds",
            "Seconds since the published report was last known to be correct.",
            (),
        )
        self.registry.read(known, lambda: [] if (seconds := age()) is None else [((), seconds)])
        requests = Read(
            "counter",
            "rest_client_requests_total",
            "Number of calls to the API server, by verb and code.",
            ("verb", "code"),
        )
        self.registry.read(requests, lambda: [(labels, float(count)) for labels, count in client.requests.items()])


LOG: Final = logging.getLogger(__name__)
CONTROLLER: Final = "numalign-agent"
AFTER_ENDING: Final = (2.0, 11.0)
"""Seconds after which to read again when a pod is gone: the kubelet frees its resources later (exporter spec 13.16)."""
FEW: Final = 5
"""Problems that one log line lists."""
SOON: Final = 5.0
"""Seconds until the next attempt where a source is missing that usually appears soon."""


class SnapshotSource(Protocol):
    """What the cycle needs of `snapshot.SnapshotReader`."""

    async def look(self, *, fresh: bool = ...) -> Snapshot: ...

    def set_kubelet_version(self, kubelet: str) -> None: ...


class Waiting(Protocol):
    """What the cycle needs of `triggers.Triggers`."""

    async def wait(self) -> frozenset[str]: ...

    def ask_again(self, after: float, reason: str = ...) -> None: ...


class Standing(Struct):
    """The state that /readyz reports."""

    confirmed_at: float | None = None
    """When the published report was last known to be correct; None: never."""
    withheld: tuple[str, ...] = ()
    """Why the last snapshot was not published."""
    failure: str = ""
    """The error of the last attempt to publish."""


class Agent:
    def __init__(self, node: str, client: Client, manner: Manner, looks: SnapshotSource, triggers: Waiting) -> None:
        self._name, self._client, self._clock = node, client, client.sender.clock
        self._period = manner.period
        self._looks, self._triggers = looks, triggers
        self._publisher = Publisher(client, node, manner)
        self._manner = manner
        self._node: Node | None = None
        self._checked: float | None = None
        """When hardware and configuration were last read."""
        self._backoff = BackoffManager()
        self._pods: frozenset[tuple[str, str]] = frozenset()
        self._published: Settings | None = None
        """The configuration that was published before the kubelet's file changed."""
        self._last: NodeTopology | None = None
        """The last report that was to be published."""
        self._logged: dict[str, object] = {}
        self.enforcer: Enforcer | None = None
        """Of direct mode; None: this agent enforces nothing."""
        self.recorder = Recorder(client, Reporter(CONTROLLER, manner.instance))
        self.metrics = Metrics()
        self.metrics.watch(self.age, client.sender.metrics)
        self.standing = Standing()

    def age(self) -> float | None:
        """Seconds since the published report was known to be correct."""
        return None if self.standing.confirmed_at is None else self._clock.now() - self.standing.confirmed_at

    @property
    def is_paused(self) -> bool:
        return self._manner.paused

    @property
    def other(self) -> str:
        """The other publisher of this node's report; empty: none."""
        return self._publisher.guard.other

    async def run(self) -> None:
        """Runs until cancelled."""
        while True:
            await self.round(await self._triggers.wait())

    async def round(self, reasons: frozenset[str]) -> None:
        for reason in reasons:
            self.metrics.looks.add(reason)
        started = self._clock.now()
        # On a busy node other triggers come before the period ends.
        over = self._checked is None or started - self._checked >= self._period or PERIOD in reasons
        check = over or self._node is None or bool(self.standing.failure)
        if check:
            self._checked = started
            await self._refresh_node()
        look = await self._settled(await self._looks.look(fresh=over or SOCKET in reasons))
        self.metrics.seconds.observe(number=self._clock.now() - started)
        self._note(look)
        if look.inventory is not None and not look.unknown:
            await self._configure_enforcer(look.inventory)
            self._last = self._report(look.inventory)
        elif look.readings.podresources_error == "unavailable" and self._manner.mode == "own":
            # Other formats have no word for it.
            self._last = await self._without_kubelet()
        else:
            return
        if self._last is not None and not self._manner.paused:
            await self._publish(self._last, started, check=check, periodic=reasons == {PERIOD})

    async def _without_kubelet(self) -> NodeTopology | None:
        """The last report of this process or of an earlier one, with the statement that the kubelet does not answer."""
        try:
            last = self._last or await self._publisher.earlier()
        except errors.KubeError:
            return None
        return structs.replace(last, facts=structs.replace(last.facts, kubelet_away=True)) if last else None

    async def _configure_enforcer(self, inventory: Inventory) -> None:
        if self.enforcer is not None:
            kubelet, held = inventory.kubelet, inventory.state.cpu
            given = held.assignments if held is not None else {}
            pinned = {(uid, name): cpus for uid, each in given.items() for name, cpus in each.items()}
            self.enforcer.configure(kubelet.machine, kubelet.settings, pinned)
            await self.enforcer.tried()
            self.metrics.enforces.set(to=float(self.enforcer.can_enforce))

    def report_failure(self, pod: Sandbox, container: str, why: str) -> None:
        """A decision about this pod is not applied."""
        regarding = ObjectReference(kind="Pod", api_version="v1", name=pod.name, namespace=pod.namespace, uid=pod.uid)
        subject = f"the decision for container {container}" if container else "the decision"
        note = f"{CONTROLLER} does not apply {subject}: {why}"
        what = Occurrence(
            regarding=regarding, reason="DecisionNotApplied", action="Enforcing", note=note, type="Warning"
        )
        LOG.warning("A decision is not applied: %s", why, extra=about(pod=f"{pod.namespace}/{pod.name}"))
        self.recorder.record(what)

    def _report(self, inventory: Inventory) -> NodeTopology:
        report = inventory.report(self._name, self._manner.mode, self._manner.left_out)
        if self.enforcer is not None:
            report = self.enforcer.advertised(report, inventory.kubelet.machine, inventory.kubelet.settings)
        return report if self._manner.fingerprint else structs.replace(report, fingerprint=None)

    async def _settled(self, look: Snapshot) -> Snapshot:
        """Drops a doubt about the kubelet's configuration if the same was already published."""
        settings = look.readings.settings
        if not look.doubt or look.inventory is None:
            return look
        if self._published != settings:
            try:
                known = await self._publisher.was_so_configured(self._report(look.inventory))
            except errors.KubeError:
                known = False
            self._published = settings if known else None
        return look if self._published == settings else structs.replace(look, unknown=(*look.unknown, look.doubt))

    async def _refresh_node(self) -> None:
        """Reads the Node again: its uid changes when it is created again (exporter spec, D-33), and its kubelet may be
        upgraded."""
        try:
            self._node = await self._client.get(NODES.at(self._name))
            self._looks.set_kubelet_version(self._node.status.node_info.kubelet_version)
        except errors.NotFound:
            self._node = None
            self._triggers.ask_again(SOON)
        except errors.KubeError as problem:
            self._log_change("node", "Failed to read the Node; keeping its last state", problem)

    def _note(self, look: Snapshot) -> None:
        """Counts and logs the outcome of a snapshot."""
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
        self._log_change("problems", "Problems in the snapshot", *read.problems, *look.contradictions)
        self._log_change("unknown", "Not publishing", *look.unknown)
        self._follow(frozenset((pod.namespace, pod.name) for pod in read.pods or ()))

    def _follow(self, pods: frozenset[tuple[str, str]]) -> None:
        if self._pods - pods:
            for seconds in AFTER_ENDING:
                self._triggers.ask_again(seconds)
        self._pods = pods

    async def _publish(self, topology: NodeTopology, taken_at: float, *, check: bool, periodic: bool) -> None:
        owner = {"name": self._name, "uid": self._node.metadata.uid} if self._node is not None else None
        try:
            outcome = await self._publisher.publish(topology, owner, check=check, periodic=periodic)
        except errors.KubeError as problem:
            return self._failed(problem)
        self.standing.failure = ""
        self._log_change("failure", "Failed to publish NodeResourceTopology")
        self.metrics.reports.add(outcome)
        if outcome != "stood back":
            self.standing.confirmed_at = taken_at
        if outcome == "written":
            LOG.info("Published NodeResourceTopology", extra=about(node=self._name))
        self._note_others(outcome)
        await self._offer()
        await self._untaint()

    async def _offer(self) -> None:
        """The Node offers the devices that the report has: the kubelet does not know of them."""
        wanted = self.enforcer.offers if self.enforcer is not None else {}
        node = self._node
        if node is None or all(
            name in node.status.capacity and node.status.capacity[name].value == amount
            for name, amount in wanted.items()
        ):
            return
        changes = {"status": {"capacity": {name: str(amount) for name, amount in wanted.items()}}}
        try:
            self._node = await self._client.patch(NODES.at(self._name).sub("status"), "merge", changes)
        except errors.KubeError as problem:
            self._log_change("offers", "Failed to write the capacity of devices into the Node", problem)
            self._triggers.ask_again(SOON)
        else:
            self._log_change("offers", "Failed to write the capacity of devices into the Node")

    async def _untaint(self) -> None:
        """The node has a report, ours or that of another publisher: schedulers may use it."""
        patch = startuptaint.removal(self._node) if self._manner.untaint and self._node is not None else None
        if patch is None:
            return
        try:
            self._node = await self._client.patch(NODES.at(self._name), "merge", patch)
        except errors.KubeError as problem:
            # Another component may have changed the Node meanwhile: the next attempt reads it again.
            self._node = None
            self._log_change("taint", f"Failed to remove taint {startuptaint.KEY} from the Node", problem)
            self._triggers.ask_again(SOON)
        else:
            self._log_change("taint", f"Failed to remove taint {startuptaint.KEY} from the Node")
            LOG.info("Removed taint %s", startuptaint.KEY, extra=about(node=self._name))

    def _failed(self, problem: errors.KubeError) -> None:
        code = str(problem.code) if isinstance(problem, errors.Refusal) else "<error>"
        self.metrics.reports.add("failed")
        self.metrics.failures.add(code)
        self.standing.failure = _in_words(problem)
        self._log_change("failure", "Failed to publish NodeResourceTopology", self.standing.failure)
        # Never longer than a period, so that the report is correct a period after the server recovers.
        pause = self._backoff.failed(self._clock.now(), self._clock.chance())
        self._triggers.ask_again(min(pause, self._period / 2))

    def _note_others(self, outcome: Outcome) -> None:
        other, pruned = self.other, self._publisher.pruned
        self.metrics.stands_back.set(to=float(outcome == "stood back"))
        self.metrics.pruned.set(to=len(pruned))
        if self._log_change(
            "other", "Another publisher owns this node's NodeResourceTopology; not publishing", *filter(None, [other])
        ):
            self._report_other(other)
        self._log_change("pruned", "The API server prunes attributes; its CustomResourceDefinition is older", *pruned)

    def _report_other(self, other: str) -> None:
        uid = self._node.metadata.uid if self._node is not None else ""
        regarding = ObjectReference(kind="Node", api_version="v1", name=self._name, uid=uid)
        note = f"{other} also writes this node's NodeResourceTopology; {CONTROLLER} stops publishing and retries later"
        what = Occurrence(
            regarding=regarding, reason="SecondTopologyPublisher", action="Publishing", note=note, type="Warning"
        )
        self.recorder.record(what)

    def _log_change(self, topic: str, what: str, *details: object) -> bool:
        """Logs the topic if its details changed; no details mean that it is resolved. Returns whether it logged a
        problem."""
        found = tuple(map(str, details))
        if self._logged.get(topic, ()) == found:
            return False
        self._logged[topic] = found
        if found:
            LOG.warning("%s: %s", what, _listed(found), extra=about(node=self._name))
        else:
            LOG.info("Resolved: %s", what, extra=about(node=self._name))
        return bool(found)


def _listed(details: Iterable[str]) -> str:
    every = tuple(details)
    more = f"; and {len(every) - FEW} more" if len(every) > FEW else ""
    return "; ".join(every[:FEW]) + more


def _in_words(problem: errors.KubeError) -> str:
    if isinstance(problem, errors.NotFound) and problem.verb == "apply":
        return f"{problem}; is the CustomResourceDefinition of NodeResourceTopology installed?"
    return str(problem)
