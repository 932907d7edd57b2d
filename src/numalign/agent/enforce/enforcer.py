"""Keeps the containers of the node as the decisions say: connects to the container runtime, again and again.

`main` runs it beside the agent's cycle. The cycle says what the node has (`configure`) and publishes what came of it
(`advertised`). A node is advertised in direct mode only if the kubelet's managers are off and the runtime is connected;
a short interruption does not count, because a runtime that restarts starts no containers. A timer compares what the
kernel lets containers use with what was applied, and mends the difference."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct

from numalign.agent.enforce import kernel, pools, wire
from numalign.agent.enforce.devices import Devices
from numalign.agent.enforce.messages import Sandbox
from numalign.agent.enforce.polling import Call, Polling
from numalign.agent.enforce.session import Open, Session
from numalign.agent.enforce.state import Key, NodeState
from numalign.api.attributes import devicetable
from numalign.api.attributes.directmode import AppliedContainer, DirectMode
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.kube.backoff import Exponential
from numalign.kube.clock import Clock
from numalign.kubelet.machine.machine import Machine
from numalign.kubelet.report import directreport
from numalign.kubelet.settings import Settings
from numalign.process import rpc
from numalign.process.rpc import CallFailed, Identity

LOG: Final = logging.getLogger(__name__)

PATIENCE: Final = 60.0
PAUSES: Final = Exponential(first=0.5, longest=10.0)
REFUSALS: Final = 3
"""Attempts over NRI in a row before CRI is used: a runtime that starts may serve CRI first."""
GRACE: Final = 30.0
"""Seconds without a connection after which direct mode is not advertised any more."""
CHECKING: Final = 10.0
"""Seconds between two looks at what the kernel lets containers use."""
LOOKING: Final = 60.0
"""Seconds between two looks at the node's GPUs and NICs."""
FIRST: Final = 5.0
"""Seconds for which the first report of an agent waits for the runtime."""
UNMANAGED: Final = ("none", "None", "none")
"""Policies of the kubelet's CPU, memory and topology managers."""


class Enforcement(Struct, frozen=True, kw_only=True):
    """How decisions are enforced on this node."""

    socket: Path
    """Of NRI, in the agent's mount namespace."""
    host: Path = Path("/")
    patience: float = PATIENCE
    """Seconds for which a container waits whose decision cannot be applied; then it runs in the shared pools."""
    cri: Path | None = None
    """The runtime's own socket, to be used where NRI is off; None: such a node stays in predict mode."""
    devices: Devices | None = None
    verified: bool = True
    """Whether what the kernel reports is acknowledged, rather than what the runtime accepted."""


Reported = Callable[[Sandbox, str, str], None]
"""Called with a pod, the name of a container or nothing, and why the decision is not applied."""


class Enforcer:
    def __init__(
        self,
        node: str,
        settings: Enforcement,
        clock: Clock,
        changed: Callable[[], None],
        reported: Reported,
        opening: Open | None = None,
        call: Call | None = None,
    ) -> None:
        """`changed` is called when there is something new to publish."""
        self._settings, self._clock = settings, clock
        self._tell, self._reported = changed, reported
        self._open: Open = opening if opening is not None else partial(wire.connected, str(settings.socket))
        self.state = NodeState(node, settings.patience)
        self._configured = asyncio.Event()
        self._tried = asyncio.Event()
        self._link = rpc.Link(settings.cri) if settings.cri is not None else None
        self._call = call if call is not None else self._link.call if self._link is not None else None
        self._session: Session | Polling | None = None
        self._connected = False
        self._lost_at: float | None = None
        self._published: tuple[AppliedContainer, ...] = ()
        self._failures: frozenset[tuple[str, str, str]] = frozenset()
        self._known: tuple[object, ...] | None = None
        self._look_at = float("-inf")
        self.standing = "not connected to the container runtime yet"
        """Why nothing is enforced; empty: it is."""

    @property
    def is_connected(self) -> bool:
        return self._connected

    @property
    def is_late(self) -> bool:
        """Whether containers are changed only after they were created."""
        return isinstance(self._session, Polling)

    @property
    def can_enforce(self) -> bool:
        """Whether the node may be advertised in direct mode."""
        if self.state.barred or not self._configured.is_set():
            return False
        return self._connected or (self._lost_at is not None and self._clock.now() - self._lost_at < GRACE)

    def configure(self, machine: Machine, settings: Settings, kubelet: Mapping[Key, int]) -> None:
        """What the node has, and which CPUs the kubelet gave to containers."""
        barred = ""
        if (found := (settings.cpu_policy, settings.memory_policy, settings.topology_policy)) != UNMANAGED:
            named = zip(("CPU manager", "memory manager", "topology manager"), found, UNMANAGED, strict=True)
            barred = "the kubelet's " + ", ".join(f"{name} has policy {is_}" for name, is_, off in named if is_ != off)
        cpus = pools.of_machine(machine, settings.reserved_cpus or 0)
        if self._settings.devices is not None and self._clock.now() >= self._look_at:
            self._settings.devices.look()
            self._look_at = self._clock.now() + LOOKING
        known = cpus, dict(kubelet), barred
        if known != self._known:
            self._known = known
            self.state.configure(cpus, kubelet, barred)
            if barred:
                LOG.warning("Decisions of direct mode are not enforced: %s", barred)
            self._configured.set()
            self._wake()

    def advertised(self, topology: NodeTopology, machine: Machine, settings: Settings) -> NodeTopology:
        """The report with direct mode, where it can be enforced; otherwise as it is."""
        if not self.can_enforce:
            return topology
        devices = self._settings.devices
        if self.is_late:
            # Devices cannot be added to a container that exists.
            devices = None
        features = frozenset(("cpus", "mems", "devices") if devices is not None else ("cpus", "mems"))
        own = Machine(machine.name, machine.zones, devices.plugins if devices is not None else {})
        shares = devices.table if devices is not None else None
        return directreport.advertised(topology, own, settings, DirectMode(features), self.state.applied, shares)

    @property
    def offers(self) -> dict[str, int]:
        """Extended resources that the Node has to offer, so that pods can ask for devices in parts or together."""
        devices = self._settings.devices
        table = devices.table if devices is not None and self.can_enforce and not self.is_late else None
        return devicetable.offered(table) if table is not None else {}

    async def tried(self) -> None:
        """Returns after the first attempt to connect, or some seconds: an agent that restarts must not advertise
        another mode for a moment."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST):
                await self._tried.wait()
        self._tried.set()

    async def run(self) -> None:
        """Runs until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._connect())
                if self._settings.verified:
                    group.create_task(self._check())
        finally:
            if self._link is not None:
                await self._link.close()

    async def _connect(self) -> None:
        await self._configured.wait()
        failures = 0
        while True:
            session = Session(self.state, self._settings.devices, self._clock.now, self._changed)
            try:
                await session.open(self._open)
                failures = 0
                await self._enforce(session, session.run())
            except (CallFailed, OSError) as problem:
                session.close()
                failures += 1
                why = f"the container runtime does not accept the agent as an NRI plugin: {_words(problem)}"
                if self._call is None:
                    self._tried.set()
                    self._note(why)
                elif failures >= REFUSALS:
                    await self._poll(self._call, why)
            finally:
                session.close()
            # Its end is published after `GRACE`, with the next report.
            await self._clock.sleep(PAUSES.pause(failures + 1) * (1 + self._clock.chance()) / 2)

    async def _enforce(self, session: Session | Polling, running: Coroutine[None, None, str]) -> None:
        """Until the session ends."""
        self._session, self._connected = session, True
        self._tried.set()
        self._note("")
        late = ", after containers have started, because NRI is off" if self.is_late else ""
        LOG.info("Enforcing decisions of direct mode with %s%s", session.runtime or "a container runtime", late)
        self._wake()
        self._tell()
        try:
            self._note(f"the connection to the container runtime ended: {await running}")
        finally:
            self._session, self._connected, self._lost_at = None, False, self._clock.now()

    async def _poll(self, call: Call, why: str) -> None:
        """Enforces over CRI, until the runtime ends or serves NRI."""
        before = _identity(self._settings.socket)
        polling = Polling(self.state, call, self._clock.now, self._clock.sleep, self._changed)
        try:
            await polling.open()
        except CallFailed as problem:
            self._tried.set()
            self._note(f"{why}; nor does it answer over CRI: {problem}")
        else:
            await self._enforce(polling, polling.run(lambda: _identity(self._settings.socket) != before))

    async def _check(self) -> None:
        while True:
            await self._clock.sleep(CHECKING)
            for found in [each for each in self.state.containers.values() if each.running and each.pid]:
                seen = kernel.allowed(self._settings.host, found.pid)
                if seen is not None:
                    self.state.see(found.id, *seen)
            self._wake()
            self._changed()

    def _wake(self) -> None:
        if self._session is not None:
            self._session.wake()

    def _changed(self) -> None:
        """Something may be new in the state."""
        applied = tuple(sorted(self.state.applied))
        failures = frozenset((pod.uid, name, why) for pod, name, why in self.state.failures)
        for pod, name, why in self.state.failures:
            if (pod.uid, name, why) not in self._failures:
                self._reported(pod, name, why)
        self._failures = failures
        if applied != self._published:
            self._published = applied
            self._tell()

    def _note(self, standing: str) -> None:
        if standing and standing != self.standing:
            LOG.warning("Decisions of direct mode are not enforced: %s", standing)
        self.standing = standing


def _identity(socket: Path) -> Identity | None:
    """None: there is no such socket."""
    try:
        return rpc.identity_of(socket)
    except CallFailed:
        return None


def _words(problem: CallFailed | OSError) -> str:
    if isinstance(problem, rpc.CallFailed):
        return str(problem)
    return f"{problem.strerror or problem}; is NRI enabled, and the folder of its socket mounted here?"
