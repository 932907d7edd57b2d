"""A pod we place is admitted: in every order of the pods on their way, with any choice of devices, where we said.

Random clusters of modelled kubelets. The scheduler's own choice places pods until hardly anything fits; now and then
nodes report, and pods end. Before a node reports, the pods bound to it since are played in all orders."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from msgspec import structs

from numalign.kubelet.admission import Outcome
from numalign.kubelet.state import ContainerPlacement
from numalign.kubelet.topologymanager import mask as masks
from numalign.placement.decisions import Decision
from numalign.placement.exact import ExactFlavour
from tests.placing import KERNELS, Placing
from tests.unit.placement import clusters
from tests.unit.placement.clusters import ModelNode

PATIENCE = 4
"""Pods that fit nowhere before a cluster counts as full."""


class Story:
    """One cluster, from empty to full, with everything that the scheduler saw and promised."""

    def __init__(self, seed: int, *, compiled: bool = False) -> None:
        self.rng = Random(seed)
        self.compiled = compiled
        self.placing = Placing(compiled=compiled)
        self.nodes = {name: clusters.node(self.rng, name) for name in "abc"[: self.rng.randint(1, 3)]}
        self.promised: dict[str, Decision] = {}
        self.count: Counter[str] = Counter()
        self.now = 0.0
        for node in self.nodes.values():
            self.placing.node(node.node)
            self.placing.report(node.topology, self.now)

    @property
    def flavour(self) -> ExactFlavour:
        flavour = self.placing.engine.flavour
        assert isinstance(flavour, ExactFlavour)
        return flavour

    def tell(self, most: int) -> Counter[str]:
        misses = number = 0
        while misses < PATIENCE and number < most:
            number += 1
            misses += not self.place(f"p{number}")
            self.now += 1.0
            if self.rng.random() < 0.25:
                self.report(self.rng.choice(list(self.nodes.values())))
            if self.rng.random() < 0.1:
                self.end(self.rng.choice(list(self.nodes.values())))
        for node in self.nodes.values():
            self.report(node)
        return self.count

    def place(self, uid: str) -> bool:
        wishes = self.rng.choice(list(self.nodes.values())).wishes
        pod = clusters.pod(self.rng, uid, wishes)
        decision = self.placing.place(pod, self.rng, self.now)
        if decision is None:
            self.count["refused"] += 1
            return False
        self.count["placed"] += 1
        self.promised[uid] = decision
        bound = clusters.on_node(pod, decision.node)
        self.nodes[decision.node].bound[uid] = bound
        if self.rng.random() < 0.5:
            self.placing.cluster.pod(bound, self.now)
        return True

    def report(self, node: ModelNode) -> None:
        self.flavour.mirror.refresh()
        for order in node.orders(self.rng):
            _, outcomes = node.played(order)
            for uid, outcome in outcomes.items():
                self.check(node, uid, outcome, [pod.metadata.uid for pod in order])
        happened = self.rng.sample(list(node.bound.values()), k=len(node.bound))
        for pod in happened:
            self.placing.cluster.pod(pod, self.now)
        node.settle(happened)
        self.placing.report(node.topology, self.now)

    def check(self, node: ModelNode, uid: str, outcome: Outcome, order: list[str]) -> None:
        self.count["admissions"] += 1
        assert outcome.admitted, (node.name, uid, outcome.reason, outcome.message, order, self.promised[uid])
        expected = self.expected(node, uid)
        for name, placed in outcome.placement.items():
            zones, sets = affinity(node, placed), expected.get(name)
            assert not sets or any(zones <= each for each in sets), (node.name, uid, name, zones, expected, order)

    def expected(self, node: ModelNode, uid: str) -> dict[str, set[frozenset[int]]]:
        """By container the sets in one of which its zones lie, as the ledger has it; equals may have each other's."""
        ledger = self.flavour.mirror.ledger
        holdings = [holding for other in node.bound if (holding := ledger.holding(other)) is not None]
        own = next(holding for holding in holdings if holding.uid == uid)
        alike = [each for each in holdings if own.interchangeable and each.shape == own.shape] or [own]
        return {
            container.container: {
                frozenset(node.kubelet.machine.zone_ids[position] for position in masks.members(mask))
                for each in alike
                for mask in each.containers[place].possible
            }
            for place, container in enumerate(own.containers)
        }

    def end(self, node: ModelNode) -> None:
        """A pod finishes, or is deleted, while none is on its way: an emptier zone can attract a pod's first container
        and starve its second, which cannot be foreseen (engine spec R1)."""
        if node.bound or not node.state.active:
            return
        uid, pod = self.rng.choice(list(node.state.active.items()))
        node.end(uid)
        self.count["ended"] += 1
        if self.rng.random() < 0.5:
            self.placing.cluster.pod(clusters.on_node(pod, node.name, "Succeeded"), self.now)
            return
        self.placing.cluster.pod_gone(structs.replace(pod), self.now)
        self.now += 100.0
        self.placing.cluster.tick(self.now)


def affinity(node: ModelNode, placed: ContainerPlacement) -> frozenset[int]:
    mask = placed.affinity.mask
    return frozenset(masks.members(node.kubelet.machine.all_zones if mask is None else mask))


def played(seeds: range, most: int, *, compiled: bool = False) -> Counter[str]:
    total: Counter[str] = Counter()
    for seed in seeds:
        total.update(Story(seed, compiled=compiled).tell(most))
    return total


@KERNELS
def test_a_few_hundred_pods_are_admitted_where_we_said(compiled: bool) -> None:
    assert played(range(30), most=30, compiled=compiled)["placed"] > 150


@pytest.mark.slow
@KERNELS
@pytest.mark.parametrize("part", range(5))
def test_a_hundred_thousand_pods_are_admitted_where_we_said(part: int, compiled: bool) -> None:
    placed, seed = 0, 1_000_000 * (part + 1 + 5 * compiled)
    while placed < 10_000:
        placed += played(range(seed, seed + 1), most=60, compiled=compiled)["placed"]
        seed += 1
