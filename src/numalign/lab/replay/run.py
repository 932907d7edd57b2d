"""Replays a trace on some of its machines, and puts every binding to the real kubelets of a lab.

`numalign lab replay` and tests call `run`. Each policy starts with empty nodes. Nodes work side by side; a pod is
created on its node once the kubelet has decided about the one before. When all are decided, the checkpoints of the
kubelets say which CPUs and devices each pod has."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from numalign.agent.sources import checkpoints
from numalign.api.nrt.topologymanager import Policy
from numalign.api.objects.pod import FINISHED, Pod
from numalign.kube import errors
from numalign.kube.client import Client
from numalign.kube.resources import PODS, DeleteOptions
from numalign.lab import up
from numalign.lab.errors import LabError
from numalign.lab.lab import Lab, Say
from numalign.lab.node import LabNode
from numalign.lab.spec import LabSpec, NodeSpec
from numalign.plan import agreement, machines, trace, workload, zoned
from numalign.plan.agreement import Agreement, Answer, PredictedBinding
from numalign.plan.trace import Trace
from numalign.plan.zoned import Setup
from numalign.process import tasks

NAMESPACE: Final = "default"
LOOK: Final = 0.2
"""Seconds between two looks at all pods."""
PATIENCE: Final = 300.0
"""Seconds without any news of a pod that a kubelet has to decide about, or to end."""
GRACEFUL: Final = DeleteOptions(grace_period_seconds=1)
"""The object of a pod goes once its kubelet has let go of everything."""
DECIDED: Final = FINISHED | {"Running"}


class ReplayOptions(Struct, frozen=True, kw_only=True):
    folder: Path
    list: str
    policies: tuple[str, ...]
    nodes: int
    zones: int
    topology_policy: Policy = "restricted"
    is_pinned: bool = False
    """Whether pods are Guaranteed, with whole CPUs."""
    seed: int
    name: str = "replay"


class PolicyRun(Struct, frozen=True, kw_only=True):
    """What came of one policy."""

    policy: str
    kubelets: Agreement


def lab(asked: ReplayOptions) -> LabSpec:
    """BadObject if the trace cannot be read."""
    return _lab(asked, _some(asked))


def _some(asked: ReplayOptions) -> Trace:
    """The trace with so many of its machines; the pods of a run then ask for 130 % of the GPUs of these."""
    return workload.with_some_nodes(trace.read(asked.folder, asked.list), asked.nodes, asked.seed)


def _lab(asked: ReplayOptions, some: Trace) -> LabSpec:
    made = (machines.hardware(node, asked.zones, asked.topology_policy) for node in some.nodes)
    nodes = tuple(
        NodeSpec(name=node.name, machine=each.machine, kubelet=each.configuration)
        for node, each in zip(some.nodes, made, strict=True)
    )
    return LabSpec(name=asked.name, nodes=nodes, controllers=False)


async def run(asked: ReplayOptions, say: Say) -> tuple[PolicyRun, ...]:
    """LabError if the lab cannot run. A signal ends it: what has run is lost."""
    running = asyncio.ensure_future(_run(asked, say))
    with tasks.ended_by_signals(asyncio.get_running_loop(), running):
        return await running


async def _run(asked: ReplayOptions, say: Say) -> tuple[PolicyRun, ...]:
    some = _some(asked)
    said = [_said(asked, some, policy) for policy in asked.policies]
    found = []
    async with up.up(_lab(asked, some), say) as started, started.client() as client:
        for policy, bindings in zip(asked.policies, said, strict=True):
            answers = await _put(started, client, bindings)
            compared = agreement.compare(bindings, answers)
            found.append(PolicyRun(policy=policy, kubelets=compared))
            started.say(f"{policy}: {compared.bindings} bindings, {len(compared.contradictions)} contradicted")
            await _clear(client)
    return tuple(found)


def _said(asked: ReplayOptions, some: Trace, policy: str) -> list[PredictedBinding]:
    bindings: list[PredictedBinding] = []
    setup = Setup(zones=asked.zones, policy=asked.topology_policy, pinned=asked.is_pinned)
    zoned.pack(some, policy, asked.seed, setup, bindings.append)
    return bindings


async def _put(lab: Lab, client: Client, bindings: Sequence[PredictedBinding]) -> list[Answer]:
    pods = _Pods(client, [binding.pod for binding in bindings])
    by_node: dict[str, list[PredictedBinding]] = {}
    for binding in bindings:
        by_node.setdefault(binding.node, []).append(binding)
    await tasks.together(_all(_bind(client, pods, own) for own in by_node.values()), {"pods": pods.watch()})
    books = {name: _Books(lab.nodes[name]) for name in by_node}
    return [books[binding.node].answer(pods.decided[binding.pod].result()) for binding in bindings]


async def _until_gone(client: Client, name: str) -> None:
    await _delete(client, name)
    loop = asyncio.get_running_loop()
    until = loop.time() + PATIENCE
    while any(pod.metadata.name == name for pod in await _listed(client)):
        if loop.time() > until:
            raise LabError(f"pod {name} did not end in {PATIENCE:.0f} s; look at the log of its kubelet")
        await asyncio.sleep(LOOK)


async def _all(parts: Iterable[Any]) -> None:
    async with asyncio.TaskGroup() as group:
        for part in parts:
            group.create_task(part)


async def _bind(client: Client, pods: _Pods, bindings: Sequence[PredictedBinding]) -> None:
    for binding in bindings:
        await client.create(PODS.within(NAMESPACE), _object(binding))
        try:
            pod = await asyncio.wait_for(asyncio.shield(pods.decided[binding.pod]), PATIENCE)
        except TimeoutError:
            why = f"the kubelet of {binding.node} did not decide about pod {binding.pod} in {PATIENCE:.0f} s"
            raise LabError(f"{why}; look at its log") from None
        if agreement.is_given_up(binding, Answer(why=_why(pod))):
            await _until_gone(client, binding.pod)


def _why(pod: Pod) -> str:
    return (pod.status.message or pod.status.reason) if pod.status.phase == "Failed" else ""


def _object(binding: PredictedBinding) -> dict[str, Any]:
    inner = {**binding.spec, "nodeName": binding.node, "automountServiceAccountToken": False}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": binding.pod}, "spec": inner}


class _Pods:
    """Looks at all pods now and then: a list is cheaper than as many gets."""

    def __init__(self, client: Client, names: Sequence[str]) -> None:
        self._client = client
        loop = asyncio.get_running_loop()
        self.decided: Mapping[str, asyncio.Future[Pod]] = {name: loop.create_future() for name in names}

    async def watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            for pod in await _listed(self._client):
                decided = self.decided[pod.metadata.name]
                if pod.status.phase in DECIDED and not decided.done():
                    decided.set_result(pod)


async def _listed(client: Client) -> list[Pod]:
    return [pod for pod in await client.every(PODS.within(NAMESPACE)) if isinstance(pod, Pod)]


class _Books:
    """What a kubelet wrote down."""

    def __init__(self, node: LabNode) -> None:
        self._machine = node.spec.machine
        self._cpus = checkpoints.cpu(node.cpu_state.read_bytes()).state
        self._devices = checkpoints.devices(node.device_state.read_bytes()).state

    def answer(self, pod: Pod) -> Answer:
        if why := _why(pod):
            return Answer(why=why)
        return Answer(held=agreement.held(self._machine, self._cpus, self._devices, pod.metadata.uid))


async def _clear(client: Client) -> None:
    left = await _listed(client)
    for pod in left:
        await _delete(client, pod.metadata.name)
    loop = asyncio.get_running_loop()
    until = loop.time() + PATIENCE
    while left:
        if loop.time() > until:
            raise LabError(f"{len(left)} pods did not end in {PATIENCE:.0f} s, such as {left[0].metadata.name}")
        await asyncio.sleep(LOOK)
        left = await _listed(client)


async def _delete(client: Client, name: str) -> None:
    try:
        await client.delete(PODS.at(name, NAMESPACE), GRACEFUL)
    except errors.NotFound:
        return
