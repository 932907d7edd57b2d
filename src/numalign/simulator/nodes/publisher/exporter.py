"""The publisher of a node's topology report: when it reads the node, when it writes, and which faults occur.

`loop` notifies it of changes on the node, and timers advance time. The publisher reads the node, writes the report one
lag later, and reads again only after that. Each publisher behaves as the real one (exporter spec 4.8, 4.9, 5.3): what
it reacts to, whether it publishes at start, and how it combines changes."""

from collections.abc import Callable, Mapping
from typing import Final, Literal

from msgspec import Struct

from numalign.api.nrt import publishers
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.nodes.environment import NodeChange, NodeEnvironment, TimerEntry
from numalign.simulator.nodes.nodestate import NodeState
from numalign.simulator.nodes.publisher import reports
from numalign.simulator.nodes.publisher.reports import ReportWriter
from numalign.simulator.nodes.specs import PublisherKind
from numalign.simulator.trees import Tree

Trigger = Literal["periodic", "reactive"]

RESTART_SECONDS: Final = 10.0
"""Seconds until a crashed publisher runs again."""


class PublisherBehaviour(Struct, frozen=True, kw_only=True):
    """The behaviour of a publisher, unless the node's `Publishing` overrides it."""

    reacts_to: frozenset[NodeChange]
    window: float
    waits: bool
    """True: reads the node once, a window after the first change. False: reads it at once, but at most once
    per window."""
    most_queued: int
    first: bool
    """Whether it publishes at start."""
    skips_equal: bool = False


BEHAVIOURS: Final[Mapping[PublisherKind, PublisherBehaviour]] = {
    "agent": PublisherBehaviour(
        reacts_to=frozenset({"allocated", "container", "released", "devices"}),
        window=1.0,
        waits=True,
        most_queued=1,
        first=True,
        skips_equal=True,
    ),
    "rte": PublisherBehaviour(reacts_to=frozenset({"container"}), window=1.0, waits=False, most_queued=6, first=True),
    "nfd": PublisherBehaviour(
        reacts_to=frozenset({"allocated"}), window=0.0, waits=False, most_queued=1000, first=False
    ),
}


class Exporter:
    __slots__ = (
        "_before",
        "_behaviour",
        "_entries",
        "_env",
        "_last_look",
        "_node_state",
        "_node_uid",
        "_queued",
        "_reported",
        "_reported_at",
        "_write_after",
        "_writer",
        "running",
    )

    def __init__(self, node_state: NodeState, env: NodeEnvironment, node_uid: Callable[[], str]) -> None:
        self._node_state = node_state
        self._env = env
        self._node_uid = node_uid
        self._behaviour = BEHAVIOURS[node_state.spec.publishing.publisher]
        self._entries: dict[str, TimerEntry] = {}
        """Pending timers: the periodic report, the queued report, the restart."""
        self.running = False
        self._forget()

    def begin(self) -> None:
        """Starts the process with empty memory."""
        self.stop()
        self._forget()
        self.running = True
        if self._behaviour.first:
            self._queue()
        self._wait_for_period()

    def stop(self) -> None:
        """Stops the process. Reports in flight are still written."""
        self.running = False
        for entry in self._entries.values():
            entry.cancel()
        self._entries.clear()
        self._queued = 0

    def restart(self) -> None:
        """The process crashes and is restarted."""
        self.stop()
        self._later("restart", RESTART_SECONDS, self.begin)

    def happened(self, what: NodeChange) -> None:
        heard = self.running and self._node_state.up and self._node_state.spec.publishing.reactive
        if heard and what in self._behaviour.reacts_to:
            self._queue()

    def _forget(self) -> None:
        self._writer = ReportWriter(self._env.api, self._node_state.spec.publishing.publisher, self._node_state.name)
        self._queued = 0
        self._last_look = -1e9
        self._write_after = 0.0
        self._reported: NodeTopology | None = None
        """The report that it last wrote, as far as it knows."""
        self._reported_at = 0.0
        self._before: Tree | None = None
        """The report before the last one."""

    # Timing

    def _window(self) -> float:
        own = self._node_state.spec.publishing.window
        return self._behaviour.window if own is None else own

    def _queue(self) -> None:
        if self._queued >= self._behaviour.most_queued:
            return
        self._queued += 1
        if self._queued == 1:
            now = self._env.clock.now()
            moment = now + self._window() if self._behaviour.waits else max(now, self._last_look + self._window())
            self._later("look", moment - now, self._react)

    def _react(self) -> None:
        self._queued -= 1
        if self._queued:
            self._later("look", self._window(), self._react)
        self._look("reactive")

    def _wait_for_period(self) -> None:
        publishing = self._node_state.spec.publishing
        if publishing.period:
            pause = publishing.period + publishing.jitter * self._env.chances.random()
            self._later("period", pause, self._periodic)

    def _periodic(self) -> None:
        self._wait_for_period()
        self._look("periodic")

    def _later(self, what: str, seconds: float, action: Callable[[], None]) -> None:
        self._entries[what] = self._env.timers.at(self._env.clock.now() + seconds, action)

    # Reports

    def _look(self, trigger: Trigger) -> None:
        """A kubelet that does not run does not answer."""
        if not self._node_state.up:
            return None
        overlaps = self._node_state.spec.publishing.faults.overlapping
        if self._env.clock.now() < self._write_after and not overlaps:
            return self._look_afterwards(trigger)
        self._last_look = self._env.clock.now()
        publishing, chances = self._node_state.spec.publishing, self._env.chances
        if _falls(publishing.faults.restarted, chances.random):
            return self.restart()
        topology = reports.seen(self._node_state, publishing.publisher)
        if self._behaviour.skips_equal and topology == self._reported and self._is_current(trigger):
            return None
        tree = self._formed(topology, trigger)
        stale = self._before if _falls(publishing.faults.stale, chances.random) else None
        self._before = tree if publishing.faults.stale else None
        if not _falls(publishing.faults.dropped, chances.random):
            self._reported, self._reported_at = topology, self._env.clock.now()
            self._send(stale or tree)

    def _look_afterwards(self, trigger: Trigger) -> None:
        """A publisher does not read the node while its last report is in flight."""
        if "afterwards" not in self._entries:
            self._later("afterwards", self._write_after - self._env.clock.now(), lambda: self._catch_up(trigger))

    def _catch_up(self, trigger: Trigger) -> None:
        del self._entries["afterwards"]
        self._look(trigger)

    def _is_current(self, trigger: Trigger) -> bool:
        """Whether a report that says the same is there, with a heartbeat that lasts until the next look."""
        if trigger == "reactive":
            return True
        due = self._reported_at + publishers.HEARTBEAT_SECONDS - self._node_state.spec.publishing.period
        return self._env.clock.now() < due and self._writer.is_there()

    def _formed(self, topology: NodeTopology, trigger: Trigger) -> Tree:
        publishing, chances = self._node_state.spec.publishing, self._env.chances
        tree = reports.body(topology, publishing.publisher, chances)
        if publishing.publisher == "agent":
            beat = {publishers.HEARTBEAT: self._env.clock.rfc3339()}
            tree["metadata"]["annotations"] = tree["metadata"].get("annotations", {}) | beat
        if publishing.publisher == "rte":
            tree["metadata"].setdefault("annotations", {})[reports.UPDATE] = trigger
        if publishing.faults.without:
            tree = reports.without(tree, publishing.faults.without)
        return reports.garbled(tree, chances) if _falls(publishing.faults.garbage, chances.random) else tree

    def _send(self, tree: Tree) -> None:
        publishing, env = self._node_state.spec.publishing, self._env
        now = env.clock.now()
        self._write_after = max(self._write_after, now + publishing.lag + publishing.jitter * env.chances.random())
        env.timers.at(self._write_after, lambda: self._write(tree))
        if _falls(publishing.faults.duplicated, env.chances.random):
            env.timers.at(self._write_after + max(1.0, publishing.lag), lambda: self._write(tree))

    def _write(self, tree: Tree) -> None:
        try:
            self._writer.write(tree, self._node_uid())
        except StatusError:
            self._env.refused += 1
            self._reported = None
            if self.running and self._node_state.spec.publishing.publisher == "nfd":
                self.restart()


def _falls(chance: float, drawn: Callable[[], float]) -> bool:
    # No random number is drawn for a fault that is off, so switching a fault on does not change other runs.
    return chance > 0 and drawn() < chance
