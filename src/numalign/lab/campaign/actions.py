"""Performs the steps of a campaign: pods, faults, and rests in which every pod must reach its right state.

`run` calls it. Requests are repeated until the API server answers, since the campaign may have stopped it. Programs
return after the time that the script sets. At a rest all programs run and no pod arrives. A pod is in its right state
if it runs, has ended, or waits with a reason and fits on no node according to the model and the kubelets' checkpoints.
A pod that does not get there in time is stuck."""

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

from msgspec import structs

from numalign.api.objects.pod import Pod
from numalign.kube import errors
from numalign.kube.client import Client
from numalign.kube.resources import NODES, PODS, DeleteOptions
from numalign.kubelet import admission
from numalign.lab import controlplane
from numalign.lab.campaign.history import History
from numalign.lab.campaign.script import SCHEDULERS, Create, Delete, Fault
from numalign.lab.campaign.watch import NAMESPACE, Checkpoints, Observer, asked, waits
from numalign.lab.lab import Lab
from numalign.lab.processes import Part
from numalign.lab.spec import NodeSpec

T = TypeVar("T")
AGAIN: Final = 0.5
AT_ONCE: Final = DeleteOptions(grace_period_seconds=0)
# A server that has just started has neither accounts nor roles.
NOT_NOW: Final = (
    errors.Unreachable,
    errors.ServerFailure,
    errors.TooManyRequests,
    errors.Unauthorized,
    errors.Forbidden,
)
SERVER: Final = "kube-apiserver"


class PodWatch(Protocol):
    """What actions need of the one who watches the pods."""

    @property
    def history(self) -> History: ...

    @property
    def pods(self) -> Mapping[str, Pod]: ...

    async def relisted(self) -> None: ...


class Actions:
    def __init__(self, lab: Lab, client: Client, watching: PodWatch) -> None:
        self._lab, self._client = lab, client
        self._watching, self._history = watching, watching.history
        self._begun: set[asyncio.Task[None]] = set()
        self._gone: set[str] = set()
        self._requests: dict[str, asyncio.Task[None]] = {}
        """The last request about each pod, by name."""
        self.uids: dict[str, str] = {}
        """UIDs of created pods, by name."""

    def start_second_scheduler(self) -> None:
        """Start a second replica of the scheduler, which waits for the lease."""
        first, name, port = self._lab.parts[SCHEDULERS[0]].program, SCHEDULERS[1], controlplane.free_port()
        command = tuple(str(port) if word == str(first.port) else word for word in first.command)
        second = structs.replace(first, name=name, log=first.log.with_name(f"{name}.log"), command=command, port=port)
        self._lab.parts[second.name] = part = Part(second)
        part.start()

    def begin_request(self, step: Create | Delete) -> None:
        """Perform the step beside the next ones, which take place also while the API server is down. Requests about
        one pod are made one after the other."""
        before = self._requests.get(step.name)
        self._requests[step.name] = self.begin(self._in_turn(before, step))

    async def _in_turn(self, before: asyncio.Task[None] | None, step: Create | Delete) -> None:
        if before is not None:
            await before
        await self.perform(step)

    async def perform(self, step: Create | Delete) -> None:
        match step:
            case Create(name=name, body=body):
                with contextlib.suppress(errors.Conflict):
                    await insist(lambda: self._client.create(PODS.within(NAMESPACE), body))
                # It may have been preempted or evicted by now.
                with contextlib.suppress(errors.NotFound):
                    made = await insist(lambda: self._client.get(PODS.at(name, NAMESPACE)))
                    self.uids[name] = made.metadata.uid
            case Delete(name=name, forced=forced):
                self._history.write("deletion-requested", name=name, uid=self.uids.get(name, ""))
                options = AT_ONCE if forced else DeleteOptions()
                with contextlib.suppress(errors.NotFound):
                    await insist(lambda: self._client.delete(PODS.at(name, NAMESPACE), options))

    async def drain(self, node: str) -> None:
        """Delete every pod of the node at once."""
        for pod in [pod for pod in self._watching.pods.values() if pod.spec.node_name == node]:
            await self.perform(Delete(at=self._history.now, name=pod.metadata.name, forced=True))

    def take_away(self, fault: Fault) -> None:
        """Stop the program; it returns by itself. A program that is already stopped, because steps were late, is
        skipped."""
        if fault.part not in self._gone:
            self.begin(self.roll(fault))

    async def roll(self, fault: Fault) -> None:
        """Stop the program and start it again, unless it is already stopped."""
        if fault.part not in self._gone:
            self._gone.add(fault.part)
            await self._away(fault)

    def begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Do this beside the next steps; the next rest waits for it."""
        task = asyncio.ensure_future(work)
        self._begun.add(task)
        return task

    async def all_back(self) -> None:
        """Wait until every program has returned, requests and operations are over, and the server answers."""
        begun, self._begun = self._begun, set()
        await asyncio.gather(*begun)
        self._requests.clear()
        await insist(lambda: self._client.every(NODES.everywhere()))

    def let_go(self) -> None:
        """Cancel all returns: the lab is about to end."""
        for task in self._begun:
            task.cancel()

    async def _away(self, fault: Fault) -> None:
        part = next(each for each in self._lab.every_part() if each.program.title == fault.part)
        self._history.write("down", name=fault.part, why=fault.how, words=fault.words)
        if fault.how == "hang":
            part.pause()
            await asyncio.sleep(fault.away)
            part.resume()
        else:
            await asyncio.to_thread(part.stop, signal.SIGKILL if fault.how == "kill" else signal.SIGTERM)
            await asyncio.sleep(fault.away)
            # On this thread: the program ends when this thread ends.
            part.start()
        if fault.part == SERVER:
            await insist(lambda: self._client.every(NODES.everywhere()))
        self._gone.discard(fault.part)
        self._history.write("up", name=fault.part)
        if fault.part == SERVER:
            # Watches take up to a minute to reconnect by themselves.
            await self._watching.relisted()


async def insist(call: Callable[[], Awaitable[T]]) -> T:
    """Repeat until the server answers. A definite refusal is raised."""
    while True:
        try:
            return await call()
        except NOT_NOW:
            await asyncio.sleep(AGAIN)


LOOK: Final = 1.0
CALM: Final = 3
"""Consecutive checks that must succeed, because changes take a moment."""
PATIENCE: Final = 90.0
"""Seconds. A pod that was refused often waits up to ten, and a new leader takes about 20."""
AT_A_TIME: Final = 8
NEVER: Final = "Never"
LOWEST: Final = -(1 << 31)


class RestChecks:
    def __init__(self, nodes: Sequence[NodeSpec], client: Client, watching: Observer) -> None:
        self._nodes = nodes
        self._client = client
        self._watching = watching
        self._written: set[str] = set()

    async def rest(self) -> None:
        """Wait until all pods are in their right state or the time is over; record stuck pods once."""
        await self._watching.relisted()
        calm, left = 0, PATIENCE / LOOK
        while calm < CALM and left > 0:
            await asyncio.sleep(LOOK)
            left -= 1
            calm = 0 if self.wrong() else calm + 1
        if calm < CALM:
            for uid, why in self.wrong().items():
                self._write(uid, why)

    async def drain(self) -> None:
        """Delete running pods, a few at a time, until every waiting pod has run."""
        while waiting := [pod for pod in self._watching.pods.values() if not pod.spec.node_name]:
            running = [pod for pod in self._watching.pods.values() if pod.spec.node_name]
            for pod in sorted(running, key=lambda each: each.metadata.creation_timestamp or "")[:AT_A_TIME]:
                await self._delete(pod)
            await self.rest()
            if not running:
                return self._write_all(waiting, "waits, and every node is empty")

    def wrong(self) -> dict[str, str]:
        """The pods that are not in their right state, by uid."""
        return {pod.metadata.uid: why for pod in self._watching.pods.values() if (why := self._why(pod))}

    def _why(self, pod: Pod) -> str:
        if pod.has_started or pod.status.is_finished:
            return "is to go, and stays" if pod.metadata.deletion_timestamp else ""
        if pod.spec.node_name:
            return "is bound, and does not start"
        if not waits(pod):
            return "pending without a reason"
        if place := next(self._places(pod), ""):
            return f"fits on {place}, and waits: {waits(pod)}"
        preempts = pod.spec.priority > 0 and pod.spec.preemption_policy != NEVER
        place = next(self._places(pod, lowest=pod.spec.priority), "") if preempts else ""
        return f"can preempt pods on {place}, and waits: {waits(pod)}" if place else ""

    def _places(self, pod: Pod, lowest: int = LOWEST) -> Iterator[str]:
        """The nodes where it fits beside the pods of at least this priority."""
        home = pod.spec.node_selector.get("kubernetes.io/hostname")
        for node in self._nodes:
            if home in (None, node.name) and node.name in self._watching.checkpoints:
                pods = (each for each in self._watching.pods.values() if each.spec.priority >= lowest)
                there = [each for each in pods if _is_on(each, node.name)]
                if fits(node, self._watching.checkpoints[node.name], there, pod):
                    yield node.name

    def _write_all(self, pods: Sequence[Pod], why: str) -> None:
        for pod in pods:
            self._write(pod.metadata.uid, why)

    def _write(self, uid: str, why: str) -> None:
        pod = self._watching.pods.get(uid)
        if pod is not None and uid not in self._written:
            self._written.add(uid)
            self._watching.history.write("stuck", name=pod.metadata.name, uid=uid, node=pod.spec.node_name, words=why)

    async def _delete(self, pod: Pod) -> None:
        self._watching.history.write("deletion-requested", name=pod.metadata.name, uid=pod.metadata.uid)
        with contextlib.suppress(errors.NotFound):
            await insist(lambda: self._client.delete(PODS.at(pod.metadata.name, NAMESPACE)))


def fits(node: NodeSpec, checkpoints: Checkpoints, there: Sequence[Pod], pod: Pod) -> bool:
    # A kubelet ignores devices that no plugin on its node offers; a scheduler does not place such pods there.
    if not asked(pod).keys() <= node.machine.devices.keys():
        return False
    _, outcome = admission.admit(node.modelled, checkpoints.state(there), pod)
    return outcome.admitted


def _is_on(pod: Pod, node: str) -> bool:
    return pod.spec.node_name == node and not pod.status.is_finished
