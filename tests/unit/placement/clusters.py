"""Random clusters whose nodes are kubelets of the object model, and what becomes of pods bound to them.

A `ModelNode` keeps the truth: what its kubelet holds, and the pods that were bound to it since. `orders` plays the
bound pods in every order, with devices chosen at random, as real kubelets may."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from random import Random

import msgspec
from msgspec import structs

from numalign.api.decode import quantity
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.node import Node, NodeInfo, NodeStatus
from numalign.api.objects.pod import Pod
from numalign.kubelet import admission, predicates, start
from numalign.kubelet.admission import Outcome
from numalign.kubelet.device import Ids, Preference
from numalign.kubelet.refusals import StartRefusal, Undecided
from numalign.kubelet.report import report
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState
from numalign.oracle.kubelet import forms
from numalign.oracle.kubelet.family import CaseOrigin
from numalign.oracle.kubelet.forms import Topology
from numalign.oracle.kubelet.generate import cases, machines, managers
from numalign.oracle.kubelet.sequence import SequenceCase

MOST_ORDERS = 4
"""Bound pods up to which every order is played."""


class Whim:
    """A device plugin that prefers devices at random."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def __call__(self, asked: Preference) -> Ids:
        others = self._rng.sample(sorted(asked.available - asked.must_include), k=asked.size - len(asked.must_include))
        return asked.must_include | frozenset(others)


class ModelNode:
    """One node: its kubelet, its state as last reported, and the pods bound since, in bind order."""

    def __init__(self, name: str, kubelet: Kubelet, wishes: managers.RequestLimits) -> None:
        self.name = name
        self.kubelet = kubelet
        self.wishes = wishes
        self.state: KubeletState = kubelet.initial()
        self.bound: dict[str, Pod] = {}

    @property
    def node(self) -> Node:
        offered = predicates.allocatable(self.kubelet, self.state)
        amounts = {
            name: quantity.parse(f"{amount}m") if name == "cpu" else quantity.of(amount)
            for name, amount in offered.items()
        }
        amounts["pods"] = quantity.of(self.kubelet.settings.max_pods)
        capacity = amounts | {"cpu": quantity.of(self.kubelet.machine.capacity["cpu"] // 1000)}
        minor = self.kubelet.settings.minor
        status = NodeStatus(
            capacity=capacity,
            allocatable=amounts,
            node_info=NodeInfo(kubelet_version=f"v{minor.major}.{minor.minor}.0"),
        )
        return Node(metadata=ObjectMeta(name=self.name), status=status)

    @property
    def topology(self) -> NodeTopology:
        return report.of(self.name, self.kubelet, self.state)

    def end(self, uid: str) -> None:
        self.state = self.state.without_pod(uid)

    def orders(self, rng: Random) -> Iterator[tuple[Pod, ...]]:
        """Every order of the bound pods, or some where there are many."""
        pending = list(self.bound.values())
        if len(pending) <= MOST_ORDERS:
            yield from permutations(pending)
            return
        for _ in range(24):
            yield tuple(rng.sample(pending, k=len(pending)))

    def played(self, order: Sequence[Pod]) -> tuple[KubeletState, dict[str, Outcome]]:
        """The state after these pods arrived in this order, and what was said to each."""
        state, outcomes = self.state, {}
        for pod in order:
            state, outcomes[pod.metadata.uid] = admission.admit(self.kubelet, state, pod)
        return state, outcomes

    def settle(self, order: Sequence[Pod]) -> None:
        """This is the order in which it happened."""
        self.state, _ = self.played(order)
        self.bound.clear()


def node(rng: Random, name: str, **config: object) -> ModelNode:
    """A random machine with a kubelet that starts; `config` overrides its configuration."""
    while True:
        raw = machines.topology(rng, name)
        drawn = cases.sequence_case(rng, name, msgspec.convert(raw, Topology))
        drawn["topology"] = raw
        drawn["config"] = {**dict(drawn["config"]), **config}  # type: ignore[call-overload]
        case = msgspec.convert(drawn, SequenceCase, strict=False)
        made = _started(rng, case)
        if made is not None:
            return ModelNode(name, made, _wishes(case))


def pod(rng: Random, uid: str, wishes: managers.RequestLimits) -> Pod:
    drawn = msgspec.convert(managers.generated_pod(rng, uid, wishes), forms.Pod, strict=False).model
    return structs.replace(drawn, metadata=ObjectMeta(name=uid, namespace="default", uid=uid))


def on_node(pod: Pod, node: str, phase: str = "Pending") -> Pod:
    """The pod as it is seen once it is bound."""
    spec = structs.replace(pod.spec, node_name=node)
    return structs.replace(pod, spec=spec, status=structs.replace(pod.status, phase=phase))


def _started(rng: Random, case: SequenceCase) -> Kubelet | None:
    topology = CaseOrigin().topology(case.topology)
    machine = forms.machine(topology, case.memory_nodes, case.devices)
    try:
        return start.start(machine, case.config.settings(CaseOrigin().minor), prefer=Whim(rng))
    except (StartRefusal, Undecided):
        return None


def _wishes(case: SequenceCase) -> managers.RequestLimits:
    topology = CaseOrigin().topology(case.topology)
    nodes = [{"hugepages": msgspec.to_builtins(each.hugepages)} for each in case.memory_nodes]
    sizes = managers.page_sizes(nodes) if len(topology.numa) <= 4 else ()
    return managers.RequestLimits(
        cpus=max(1, topology.num_cpus // 3),
        memory=case.memory_nodes[0].memory // 2,
        hugepages=sizes,
        devices=tuple(case.devices),
    )
