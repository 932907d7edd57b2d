"""Puts the bindings of a replay to simulated kubelets, in virtual time.

`numalign plan replay --against simulated` passes `ask` to the planner. Every machine of the trace is a node of an
embedded cluster, without schedulers. A pod is created on its node, the kubelet admits or rejects it, and the next one
follows; no pod ends before the last one has come, but for those that the replay gives up."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from numalign.api.nrt.topologymanager import Policy
from numalign.plan import agreement, machines
from numalign.plan.agreement import Answer, PredictedBinding
from numalign.plan.machines import Hardware
from numalign.plan.trace import TraceNode
from numalign.simulator import cluster, virtualtime
from numalign.simulator.apiserver.storage.resources import PODS
from numalign.simulator.cluster import Cluster
from numalign.simulator.nodes.specs import NodeSpec, Publishing
from numalign.simulator.trees import Tree

NAMESPACE: Final = "default"
APART: Final = 0.001
"""Seconds from one binding to the next. In virtual time everything that a binding causes at once is done by then."""
ENDS: Final = 60.0
"""Seconds after which a deleted pod has ended."""
UNREPORTED: Final = Publishing(publisher="none")
FAILED: Final = "Failed"


def ask(nodes: Sequence[TraceNode], zones: int, policy: Policy, bindings: Sequence[PredictedBinding]) -> list[Answer]:
    """What the kubelets did, in the order of the bindings."""
    made = [_spec(node.name, machines.hardware(node, zones, policy)) for node in nodes]
    return virtualtime.run(_asked(made, bindings))


def _spec(name: str, hardware: Hardware) -> NodeSpec:
    machine, settings = hardware.machine, hardware.settings
    return NodeSpec(name=name, machine=machine, settings=settings, publishing=UNREPORTED)


async def _asked(nodes: Sequence[NodeSpec], bindings: Sequence[PredictedBinding]) -> list[Answer]:
    chances = random.Random(0)
    clock = virtualtime.clock(chances)
    found = []
    async with cluster.running(nodes, clock, chances, default_scheduler=False) as embedded:
        for binding in bindings:
            embedded.api.create(PODS, _pod(binding))
            await clock.sleep(APART)
            # Now, because a cluster does not keep more than some thousand rejected pods.
            answer = _answer(embedded, binding)
            if agreement.is_given_up(binding, answer):
                embedded.api.delete(PODS, binding.pod, NAMESPACE)
                await clock.sleep(ENDS)
            found.append(answer)
    return found


def _pod(binding: PredictedBinding) -> Tree:
    metadata = {"name": binding.pod, "namespace": NAMESPACE}
    spec = {**binding.spec, "nodeName": binding.node}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _answer(embedded: Cluster, binding: PredictedBinding) -> Answer:
    pod, node = embedded.api.get(PODS, binding.pod, NAMESPACE), embedded.fleet.nodes[binding.node]
    uid, state = pod["metadata"]["uid"], node.node_state.state
    if pod["status"].get("phase") == FAILED:
        return Answer(why=pod["status"]["message"])
    if uid not in node.pods:
        return Answer(why="its kubelet has not decided")
    return Answer(held=agreement.held(node.node_state.kubelet.machine, state.cpu, state.devices, uid))
