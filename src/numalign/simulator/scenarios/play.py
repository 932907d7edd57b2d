"""Plays a scenario on the embedded cluster in virtual time, with its load and faults, and records its history.

The command line and tests call `play`. The same scenario, seed and scheduler give the same history. `calls` turns the
load into creations and deletions in time. They are drawn from a seed, so that all schedulers get the same load; pods
that name no scheduler get the one that plays."""

import random
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

from msgspec import Struct

from numalign.api.objects.pod import DEFAULT_SCHEDULER
from numalign.scheduler import profiles
from numalign.scheduler.main import Scheduler
from numalign.simulator import cluster, schedulers, virtualtime
from numalign.simulator.apiserver.storage import resources
from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import Resource
from numalign.simulator.apiserver.verbs.api import Api, Patch
from numalign.simulator.clock import Clock
from numalign.simulator.cluster import Cluster
from numalign.simulator.nodes import workloads
from numalign.simulator.nodes.node import SimulatedNode
from numalign.simulator.scenarios import durations
from numalign.simulator.scenarios.durations import Span
from numalign.simulator.scenarios.history import HistoryEntry, HistoryRecorder
from numalign.simulator.scenarios.scenario import CreatedObjects, Deletion, Fault, PodKind, PodStream, Scenario, Traffic
from numalign.simulator.trees import Tree

TEMPLATES: Final = {
    "Pod": ("spec",),
    "Deployment": ("spec", "template", "spec"),
    "ReplicaSet": ("spec", "template", "spec"),
    "DaemonSet": ("spec", "template", "spec"),
    "Job": ("spec", "template", "spec"),
}
"""Where each kind has the spec of its pods."""


class Creation(Struct, frozen=True):
    at: float
    tree: Tree


Call = Creation | Deletion


def calls(traffic: Iterable[Traffic], scheduler: str, seed: int) -> list[Call]:
    """The calls in order of time; calls of the same time are in the order of the file."""
    made = [call for number, each in enumerate(traffic) for call in _calls(each, scheduler, f"{seed}/{number}")]
    return sorted(made, key=lambda call: call.at)


def _calls(each: Traffic, scheduler: str, seed: str) -> Iterator[Call]:
    match each:
        case PodStream():
            yield from _arrivals(each, scheduler, random.Random(seed))
        case CreatedObjects(at=at, objects=objects):
            yield from (Creation(at, with_scheduler(tree, scheduler)) for tree in objects)
        case Deletion():
            yield each


def _arrivals(stream: PodStream, scheduler: str, chances: random.Random) -> Iterator[Creation]:
    at = stream.at
    weights = [choice.weight for choice in stream.mix]
    for number in range(stream.pods):
        (choice,) = chances.choices(stream.mix, weights)
        tree = _pod(stream, choice, number, chances)
        yield Creation(at, with_scheduler(tree, scheduler))
        at += drawn(stream.every, chances)


def _pod(stream: PodStream, choice: PodKind, number: int, chances: random.Random) -> Tree:
    annotations, spec = dict(choice.annotations), dict(choice.spec)
    if stream.lifetime is not None:
        # A pod with a lifetime restarts never, unless the scenario says otherwise.
        spec = {"restartPolicy": "Never"} | spec
        annotations[workloads.RUN_SECONDS] = f"{drawn(stream.lifetime, chances):.3f}"
    metadata: dict[str, Any] = {
        "name": f"{choice.name}-{number}",
        "namespace": stream.namespace,
        "labels": {"app": choice.name} | dict(choice.labels),
        "annotations": annotations,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def drawn(span: Span, chances: random.Random) -> float:
    return span.least if span.least == span.most else chances.uniform(span.least, span.most)


def with_scheduler(tree: Tree, scheduler: str) -> Tree:
    """A copy whose pods name this scheduler, unless they name one already."""
    return _with(tree, TEMPLATES.get(tree.get("kind", ""), ()), scheduler)


def _with(tree: Tree, path: tuple[str, ...], scheduler: str) -> Tree:
    if not path:
        return tree
    inner = tree.get(path[0], {})
    spec = {"schedulerName": scheduler} | inner if len(path) == 1 else _with(inner, path[1:], scheduler)
    return tree | {path[0]: spec}


Progress = Callable[[float], None]
"""Called with the time of the scenario."""


class PlayResult(Struct, frozen=True):
    """`refused` holds the calls of the scenario that failed, as sentences."""

    lines: list[HistoryEntry]
    refused: list[str]


def play(
    scenario: Scenario,
    scheduler: str = DEFAULT_SCHEDULER,
    seed: int | None = None,
    progress: Progress = lambda at: None,
    at_end: Callable[[Cluster], None] = lambda embedded: None,
) -> PlayResult:
    """`at_end` is called before the cluster stops."""
    return virtualtime.run(_played(scenario, scheduler, scenario.seed if seed is None else seed, progress, at_end))


async def _played(
    scenario: Scenario, scheduler: str, seed: int, progress: Progress, at_end: Callable[[Cluster], None]
) -> PlayResult:
    clock = virtualtime.clock(random.Random(f"{seed}/clock"))
    async with staged(scenario, scheduler, seed, clock) as stage:
        embedded = stage.cluster
        recorder = HistoryRecorder(embedded.api)
        refused = await perform(scenario, embedded, scheduler, seed, progress)
        recorder.stop()
        at_end(embedded)
        return PlayResult(recorder.lines, refused)


class Stage(Struct, frozen=True):
    """A cluster for a scenario, and our scheduler where it plays."""

    cluster: Cluster
    zone_aware: Scheduler | None


@asynccontextmanager
async def staged(
    scenario: Scenario, scheduler: str, seed: int, clock: Clock, authority: str = ""
) -> AsyncIterator[Stage]:
    """Runs the cluster of a scenario until the block ends. All random choices come from the seed and the clock's."""
    chances = random.Random(f"{seed}/{scheduler}")
    running = cluster.running(scenario.nodes, clock, random.Random(seed), authority=authority)
    async with running as embedded, AsyncExitStack() as stack:
        zone_aware = None
        if scheduler == profiles.NAME:
            zone_aware = await stack.enter_async_context(embedded.scheduled_by(schedulers.zone_aware(chances)))
        yield Stage(embedded, zone_aware)


async def perform(
    scenario: Scenario, embedded: Cluster, scheduler: str, seed: int, progress: Progress = lambda at: None
) -> list[str]:
    """Performs the load and the faults on a running cluster, until the scenario ends. Returns the failed calls."""
    clock, refused = embedded.clock, list[str]()
    begun = clock.now()
    for at, act in sorted(_acts(scenario, scheduler, seed, embedded), key=lambda pair: pair[0]):
        if at > scenario.lasts:
            break
        await clock.sleep(max(0.0, begun + at - clock.now()))
        progress(at)
        try:
            act()
        except StatusError as refusal:
            refused.append(f"at {at:g} s: {refusal}")
    await clock.sleep(max(0.0, begun + scenario.lasts - clock.now()))
    progress(scenario.lasts)
    late = sum(call.at > scenario.lasts for call in calls(scenario.traffic, scheduler, seed))
    if late:
        refused.append(f"{late} pods would arrive after the end at {durations.text(scenario.lasts)}; make lasts longer")
    return refused


Act = tuple[float, Callable[[], None]]


def _acts(scenario: Scenario, scheduler: str, seed: int, embedded: Cluster) -> Iterator[Act]:
    for call in calls(scenario.traffic, scheduler, seed):
        yield call.at, _performing(embedded.api, call)
    for fault in scenario.faults:
        yield fault.at, _injecting(embedded, fault)


def _performing(api: Api, call: Call) -> Callable[[], None]:
    def perform() -> None:
        match call:
            case Creation(tree=tree):
                api.create(_resource(api, tree["apiVersion"], tree["kind"]), tree, manager="scenario")
            case Deletion():
                _delete(api, call)

    return perform


def _delete(api: Api, what: Deletion) -> None:
    resource = _resource(api, what.api_version, what.kind)
    if what.name:
        api.delete(resource, what.name, what.namespace)
        return
    for tree in api.list(resource, what.namespace, labels=what.labels).items:
        api.delete(resource, tree["metadata"]["name"], tree["metadata"].get("namespace", ""))


def _resource(api: Api, api_version: str, kind: str) -> Resource:
    group, _, version = api_version.rpartition("/")
    found = api.state.registry.of_kind(group, version, kind)
    if found is None:
        raise StatusError(404, "NotFound", f"no kind {kind} in {api_version}", None)
    return found


def _injecting(embedded: Cluster, fault: Fault) -> Callable[[], None]:
    def inject() -> None:
        for name in fault.nodes:
            if name in embedded.fleet.nodes:
                FAULT_INJECTORS[fault.kind](embedded, embedded.fleet.nodes[name], fault)

    return inject


def _health(healthy: bool) -> Callable[[Cluster, SimulatedNode, Fault], None]:
    def inject(embedded: Cluster, node: SimulatedNode, fault: Fault) -> None:
        for device in fault.devices or node.devices(fault.resource):
            node.set_health(fault.resource, device, healthy=healthy)

    return inject


def _schedulable(schedulable: bool) -> Callable[[Cluster, SimulatedNode, Fault], None]:
    def inject(embedded: Cluster, node: SimulatedNode, fault: Fault) -> None:
        spec = {"spec": {"unschedulable": None if schedulable else True}}
        embedded.api.patch(resources.NODES, node.name, "", Patch("merge", spec), manager="scenario")

    return inject


def _deleted(embedded: Cluster, node: SimulatedNode, fault: Fault) -> None:
    embedded.fleet.remove(node.name)
    embedded.api.delete(resources.NODES, node.name)


FAULT_INJECTORS: Final[dict[str, Callable[[Cluster, SimulatedNode, Fault], None]]] = {
    "reboot": lambda embedded, node, fault: node.reboot(),
    "restart-kubelet": lambda embedded, node, fault: node.restart(),
    "stop-kubelet": lambda embedded, node, fault: node.stop(),
    "start-kubelet": lambda embedded, node, fault: node.start(),
    "stop-reports": lambda embedded, node, fault: node.stop_exporter(),
    "start-reports": lambda embedded, node, fault: node.start_exporter(),
    "break-devices": _health(healthy=False),
    "mend-devices": _health(healthy=True),
    "delete-node": _deleted,
    "cordon": _schedulable(False),
    "uncordon": _schedulable(True),
}
