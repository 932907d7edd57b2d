"""A pod that is placed is admitted: pending pods in every order, with any choice of devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, permutations
from random import Random

from hypothesis import strategies as st

from numalign.api.objects.pod import Pod
from numalign.kubelet import admission
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState
from numalign.placement.columns.holdings import ContainerZones, Holding, Source
from numalign.placement.columns.requests import Program
from numalign.placement.commit import place as commit
from numalign.placement.commit.place import Newcomer
from numalign.placement.rowmodel.state import RowState
from tests.campaigns import holds_for
from tests.rows import View, choosing, outside
from tests.strategies.placement import Lived, lived, loosened
from tests.unit.placement import agreement

ORDERS = 12


class Node:
    """Pods placed on a row one after the other, none of them reported yet."""

    def __init__(self, view: View, row: RowState) -> None:
        self.view = view
        self.row = row
        self.programs: dict[int, Program] = {}
        self.holdings: list[Holding] = []
        self.pods: list[Pod] = []

    def place(self, pod: Pod) -> None:
        shape = self.view.shape(pod)
        self.programs[shape] = self.view.program(pod)
        placement = commit.place(self.row, self.holdings, Newcomer(shape), self.programs.get)
        if not placement.verdict.fits:
            return
        revised = {each.uid: each for each in placement.revised}
        names = [container.name for container in pod.in_admission_order()]
        holding = Holding(
            uid=pod.metadata.uid,
            name=pod.metadata.name,
            source=Source.PREDICTED,
            entries=placement.verdict.everything,
            containers=tuple(map(ContainerZones, names, placement.verdict.possible)),
            shape=shape,
            interchangeable=placement.interchangeable,
        )
        self.holdings = [*(revised.get(each.uid, each) for each in self.holdings), holding]
        self.pods.append(pod)

    def wrong(self, kubelet: Kubelet, state: KubeletState, order: Sequence[int]) -> Iterator[str]:
        """What happens in this order that was not foreseen."""
        for place in order:
            state, outcome = admission.align(kubelet, state, self.pods[place])
            if not outcome.admitted:
                yield f"{self.pods[place].metadata.uid} in {order}: {outcome.verdict}, {outcome.message}"
            yield from self._misaligned(state, self.pods[place], self.holdings[place])
        for alike in self._groups():
            entries = [entry for each in alike for entry in each.entries]
            foreseen = agreement.at_admission(entries, self.programs[alike[0].shape], self.view)
            held = sum((Counter(self.view.held(state, each.uid)) for each in alike), Counter())
            yield from outside(held, foreseen, len(self.view.zones))

    def _misaligned(self, state: KubeletState, pod: Pod, holding: Holding) -> Iterator[str]:
        for container, possible in self._masks(holding).items():
            if not self.view.allows(state, pod, container, possible):
                yield f"{holding.uid}/{container}: {state.affinity(holding.uid, container)} is none of {possible}"

    def _masks(self, holding: Holding) -> Mapping[str, list[int]]:
        alike = (
            [each for each in self.holdings if each.shape == holding.shape] if holding.interchangeable else [holding]
        )
        masks: dict[str, list[int]] = {}
        for container in (container for each in alike for container in each.containers):
            masks.setdefault(container.container, []).extend(container.possible)
        return masks

    def _groups(self) -> Iterator[list[Holding]]:
        """Pods that change places with each other count together."""
        for shape in self.programs:
            alike = [each for each in self.holdings if each.shape == shape]
            if any(each.interchangeable for each in alike):
                yield alike
            else:
                yield from ([each] for each in alike)


def check(life: Lived, row: RowState, rng: Random) -> None:
    node = Node(life.view, row)
    for pod in life.coming:
        node.place(pod)
    every = list(permutations(range(len(node.pods)))) if len(node.pods) <= 4 else []
    orders = every or [tuple(rng.sample(range(len(node.pods)), len(node.pods))) for _ in range(ORDERS)]
    kubelet = choosing(life.kubelet, rng)
    for order in islice(rng.sample(orders, len(orders)), ORDERS):
        assert not list(node.wrong(kubelet, life.state, order)), node.holdings


@holds_for(lived(max_zones=4, coming=5), st.randoms(use_true_random=False), examples=60)
def test_pods_that_are_placed_are_admitted_in_every_order(life: Lived, rng: Random) -> None:
    check(life, life.view.row(life.state), rng)


@holds_for(st.data(), examples=60)
def test_pods_are_admitted_in_every_order_beside_pods_that_are_known_vaguely(data: st.DataObject) -> None:
    life = data.draw(lived(max_zones=4, coming=4))
    check(life, data.draw(loosened(life)), data.draw(st.randoms(use_true_random=False)))


@holds_for(
    lived(max_zones=8, coming=4, topology_policy="single-numa-node"), st.randoms(use_true_random=False), examples=30
)
def test_pods_of_single_zones_are_admitted_in_every_order(life: Lived, rng: Random) -> None:
    check(life, life.view.row(life.state), rng)
