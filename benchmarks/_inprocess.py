"""One workload carried out by the scheduler itself, in a process of its own and without a network.

Queue, cycle, rules, engine, intake and books are the real ones, put together by `scheduler.main`. Bindings are answered
at once, and the watch shows the bound pod as a new object right after; evicted pods are gone at once. Objects are
decoded beforehand. Time is the processor's, for the rates and for the scheduler's own clock, because others use the
machine, too."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from msgspec import structs

from benchmarks import _child, _templates
from benchmarks._workloads import Batch, Churn, Workload
from numalign.api.decode import decode
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod
from numalign.api.objects.workloads import Namespace, Service
from numalign.api.schedulerconfig.plugins import NUMALIGN
from numalign.kube.client import Client
from numalign.kube.clock import SystemClock
from numalign.kube.transport import auth
from numalign.kube.transport.auth import Access, Identity, Login
from numalign.kube.transport.dial import Server
from numalign.kube.transport.tls import Contexts, Trust
from numalign.kube.watch.watch import Meaning
from numalign.process import tasks
from numalign.scheduler import settings
from numalign.scheduler.bind.binder import PendingBinding
from numalign.scheduler.main import NOTHING_SAID, TICK, Scheduler, Setup

AT_ONCE = 64
"""Pods that arrive together."""


class ProcessorClock(SystemClock):
    """Set forward now and then: asking the processor takes longer than asking for the time."""

    def __init__(self) -> None:
        self._now = 0.0

    def now(self) -> float:
        return self._now

    def set_forward(self) -> float:
        self._now = time.process_time()
        return self._now


class InProcess:
    """A scheduler without a network, and everything that would come over it."""

    def __init__(self, *, reports: bool) -> None:
        """`reports`: whether nodes have some. Without any, pods would wait for the first ones."""
        self.clock = clock = ProcessorClock()
        access = Access(Server("127.0.0.1", 1), Login(auth.unchanging(Identity()), clock), Contexts(Trust(), "nobody"))
        self.scheduler = Scheduler(_setup(reports), Client(access, clock=clock))
        # As the process does beside its work.
        self.scheduler.cluster.engine.warm()
        # What would wait for answers of a server: bindings and evictions.
        self.scheduler.cycle._binder = self
        self.scheduler.evictor.start = self.evict  # type: ignore[method-assign]
        self._victims: list[Pod] = []
        self._records = self.scheduler.binder._records
        self._seen_again: dict[str, Pod] = {}
        self._next_tick = 0.0
        self.bound = 0

    def tell(self, plural: str, thing: Any, *, gone: bool = False) -> None:
        """As the watch of the resource would."""
        self.scheduler.watched.informers[plural]._use(thing, Meaning.DELIVER, gone=gone)

    def start(self, bind: PendingBinding) -> None:
        """Instead of the binder: it is bound, and the watch says so."""
        self._records.bound(bind)
        self.bound += 1
        again = self._seen_again.pop(bind.decision.uid)
        meta = structs.replace(again.metadata, resource_version="2")
        seen = structs.replace(again, metadata=meta, spec=structs.replace(again.spec, node_name=bind.node))
        self.tell("pods", seen)

    def evict(self, preemptor: Pod, node: str, victims: Sequence[Pod]) -> None:
        """Instead of the evictor: they are gone as soon as the attempt is over."""
        self._victims += victims

    def _end(self, pod: Pod) -> None:
        """As a kubelet does it: the containers are reported to have ended, and the object goes."""
        meta = structs.replace(pod.metadata, resource_version="3")
        ended = structs.replace(pod, metadata=meta, status=structs.replace(pod.status, phase="Failed"))
        self.tell("pods", ended)
        self.tell("pods", ended, gone=True)

    def arrive(self, pods: Sequence[tuple[Pod, Pod]]) -> None:
        """Each as it is decoded now, and once more for later: what comes over a watch shares nothing."""
        for pod, again in pods:
            self._seen_again[pod.metadata.uid] = again
            self.tell("pods", pod)

    def turn(self) -> None:
        """Until nobody is ready."""
        queue, cycle, clock = self.scheduler.queue, self.scheduler.cycle, self.clock
        if clock.set_forward() >= self._next_tick:
            self.tick()
        while (queued := queue.pop(clock.now())) is not None:
            cycle.step(queued)
            while self._victims:
                self._end(self._victims.pop())

    def tick(self) -> None:
        """As the process does every second; what decisions and watches left for later is done then, at the latest."""
        self._next_tick = self.clock.now() + TICK
        self.scheduler.intake.tick()


def _setup(reports: bool) -> Setup:
    args = {"name": NUMALIGN, "args": {"nodesWithoutReport": "wait" if reports else "allow"}}
    written = NOTHING_SAID | {"profiles": [{"pluginConfig": [args]}]}
    return Setup(config=settings.read(written, "benchmark"), rng=Random(1))


class Disturbance:
    """What happens beside the pods that are measured."""

    def __init__(self, churn: Churn, running: InProcess) -> None:
        self._churn, self._running = churn, running
        self._due = time.process_time()
        self._number = 0
        self._last: list[tuple[str, Any]] = []

    def look(self) -> None:
        if time.process_time() < self._due:
            return
        self._due += self._churn.seconds
        self._number += 1
        for plural, thing in reversed(self._last if self._churn.again else []):
            self._running.tell(plural, thing, gone=True)
        self._last = [self._made(template) for template in self._churn.templates]
        for plural, thing in self._last:
            if isinstance(thing, Pod):
                self._running.arrive([(thing, thing)])
            else:
                self._running.tell(plural, thing)

    def _made(self, template: str) -> tuple[str, Any]:
        name = f"churn-{self._number}"
        match template:
            case "node":
                return "nodes", decode.decode(Node, _templates.idle_node(name))
            case "service":
                return "services", decode.decode(Service, _templates.other_service(name))
        return "pods", decode.decode(Pod, _templates.pod(template, name, "churn"))


def populated(workload: Workload) -> InProcess:
    """With nodes, and with the pods that are there before."""
    running = InProcess(reports=bool(workload.numa))
    for number in range(workload.nodes):
        zone = workload.zones[number % len(workload.zones)] if workload.zones else ""
        name, tainted = f"node-{number:05}", number < workload.tainted
        tree = _templates.node(name, zone, tainted=tainted, numa=workload.numa)
        running.tell("nodes", decode.decode(Node, tree))
        if workload.numa:
            unlike = number + 1 if workload.unlike else 0
            running.tell("noderesourcetopologies", _templates.report(name, workload.numa, unlike))
    if workload.measured.template == "daemonset":
        running.tell("nodes", decode.decode(Node, _templates.named_node()))
    if workload.service:
        running.tell("services", decode.decode(Service, _templates.service(workload.measured.namespace)))
    for name in sorted(set(_namespaces(workload))):
        running.tell("namespaces", decode.decode(Namespace, _templates.namespace(name)))
    for batch in workload.before:
        running.arrive(list(made(batch, "before")))
        running.turn()
    return running


def _namespaces(workload: Workload) -> Iterator[str]:
    yield workload.measured.namespace
    for batch in workload.before:
        yield from (namespace(batch, number) for number in range(max(1, batch.spread)))


def namespace(batch: Batch, number: int) -> str:
    return f"{batch.namespace}-{number % batch.spread}" if batch.spread else batch.namespace


def made(batch: Batch, prefix: str) -> Iterator[tuple[Pod, Pod]]:
    for number in range(batch.count):
        name = f"{prefix}-{batch.template}-{number:06}"
        template = f"{batch.template}-{number % batch.sizes}" if batch.sizes else batch.template
        tree = _templates.pod(template, name, namespace(batch, number))
        yield decode.decode(Pod, tree), decode.decode(Pod, tree)


def measure(workload: Workload) -> dict[str, float]:
    """Measured pods per second of the processor, from their arrival until the watch shows them bound."""
    running = populated(workload)
    before, pods = running.bound, list(made(workload.measured, "measured"))
    wanted = sum(batch.count for batch in workload.before)
    if before != wanted:
        raise RuntimeError(f"{wanted - before} of {wanted} pods that should be there before found no node")
    disturbance = Disturbance(workload.churn, running) if workload.churn else None
    # As the process does once it knows its world.
    tasks.settle()
    started = time.process_time()
    for first in range(0, len(pods), AT_ONCE):
        running.arrive(pods[first : first + AT_ONCE])
        running.turn()
        if disturbance is not None:
            disturbance.look()
    running.tick()
    taken = time.process_time() - started
    bound = running.bound - before
    if bound < len(pods):
        raise RuntimeError(f"{len(pods) - bound} of {len(pods)} measured pods found no node")
    return {"rate": len(pods) / taken}


def rate(workload: Workload) -> float:
    return _child.asked(__spec__.name, workload)["rate"]


if __name__ == "__main__":
    _child.answer(Workload, measure)
