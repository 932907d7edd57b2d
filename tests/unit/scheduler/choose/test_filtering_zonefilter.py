"""A profile that disables NodeResourceTopologyMatch places pods by node totals; the books stay right for all others."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from numalign.api.objects.pod import Pod
from numalign.placement.engine import Engine
from numalign.placement.settings import Settings
from numalign.scheduler.choose.choose import AttemptContext, Chosen, NoNode
from numalign.scheduler.choose.cluster import Cluster
from numalign.scheduler.choose.stormguard import StormGuard
from numalign.scheduler.explain.explanations import explained
from numalign.scheduler.preempt.preemption import Nomination
from numalign.scheduler.queue.nominations import Nominations
from tests.unit.scheduler import servers
from tests.unit.scheduler.preempting import Town
from tests.unit.scheduler.servers import GPU, trainer


class Totals(Town):
    """Its own profile looks at zones, `by_totals` does not."""

    def __init__(self, *names: str) -> None:
        super().__init__(*names)
        self.exact = self.profile
        self.totals = structs.replace(self.profile, name="totals", zones=False)

    def by_totals(self, pod: Pod, **more: Any) -> str:
        self.profile = self.totals
        try:
            found = self.choose(pod, **more)
            return self.cluster.assume(pod, found.decision).spec.node_name if isinstance(found, Chosen) else ""
        finally:
            self.profile = self.exact

    def requested(self, node: str) -> tuple[int, int]:
        """GPUs and pods that count for the node as a whole."""
        columns = self.cluster.engine.columns
        row = columns.rows[node]
        return columns.requested(row, columns.column(GPU)), int(columns.pods[row])


def wide(name: str) -> Pod:
    """Fits the node, and none of its zones."""
    return trainer(name, gpus=6, cpu="8")


def test_a_pod_goes_where_the_totals_do_although_no_zone_has_room() -> None:
    assert Totals("a").place(wide("p")) == ""
    assert Totals("a").by_totals(wide("p")) == "a"


def test_totals_are_charged_and_keep_pods_off() -> None:
    town = Totals("a")
    assert [town.by_totals(wide("p")), town.by_totals(trainer("q", gpus=3))] == ["a", ""]
    assert town.requested("a") == (6, 1)


def test_a_pod_that_is_chosen_twice_is_charged_once() -> None:
    town = Totals("a")
    town.profile = town.totals
    for _ in range(3):
        assert isinstance(town.choose(wide("p")), Chosen)
    assert town.requested("a") == (6, 1)


def test_other_profiles_know_that_its_zones_are_taken() -> None:
    town = Totals("a")
    for name in ("p", "q"):
        assert town.by_totals(trainer(name, gpus=3)) == "a"
        town.run(trainer(name, gpus=3), "a")
    # Each zone has one GPU left.
    assert town.place(trainer("late", gpus=2)) == ""
    assert town.place(trainer("small", gpus=1)) == "a"


@pytest.mark.parametrize("is_bound, left", [(False, (0, 0)), (True, (3, 1))])
def test_what_was_assigned_is_free_again_only_if_it_was_not_bound(is_bound: bool, left: tuple[int, int]) -> None:
    town, pod = Totals("a"), trainer("p", gpus=3)
    town.by_totals(pod)
    if is_bound:
        town.cluster.pod(servers.on(pod, "a"), 1.0)
    town.cluster.forget(pod.metadata.uid)
    assert town.requested("a") == left
    assert bool(town.place(trainer("four", gpus=4)) and town.place(trainer("more", gpus=4))) is not is_bound


def test_a_pod_that_its_node_rejects_is_no_charge_any_more() -> None:
    town, pod = Totals("a"), wide("p")
    town.by_totals(pod)
    town.cluster.pod(servers.on(pod, "a"), 1.0)
    town.cluster.pod(servers.on(pod, "a", phase="Failed", reason="TopologyAffinityError"), 2.0)
    assert town.requested("a") == (0, 0)
    assert town.place(trainer("four", gpus=4)) == town.place(trainer("more", gpus=4)) == "a"


def test_nodes_that_rejected_its_like_are_not_left_out() -> None:
    town = Totals("a")
    assert town.by_totals(wide("p"), kept_off={town.cluster.world.rows["a"]: "rejected"}) == "a"


def test_it_preempts_by_totals() -> None:
    town = Totals("a")
    for name in ("p", "q"):
        town.run(trainer(name, gpus=3))
    town.profile = town.totals
    found = town.asked(trainer("urgent", gpus=5, priority=10))
    assert isinstance(found, Nomination)
    assert len(found.victims.pods) == 1


def test_a_pod_that_fits_nowhere_is_refused_by_totals_alone() -> None:
    town = Totals("a")
    town.profile = town.totals
    found = town.choose(trainer("p", gpus=9))
    assert isinstance(found, NoNode)
    assert [plugin for plugin, _, _ in found.tallies()] == ["NodeResourcesFit"]
    assert not len(found.zones)


def test_explain_says_that_the_profile_does_not_look_at_zones() -> None:
    town = Totals("a")
    around = AttemptContext(town.cluster, Nominations(), StormGuard())
    found = explained(wide("p"), town.totals, around)
    assert (found.fitting, found.refused) == (("a",), {})
    assert found.notes[0].startswith("profile totals does not look at zones (NodeResourceTopologyMatch is disabled)")
    assert not explained(wide("p"), town.exact, around).fits


def test_broken_annotations_of_zones_are_not_its_concern() -> None:
    town = Totals("a")
    pod = wide("p")
    odd = structs.replace(pod, metadata=structs.replace(pod.metadata, annotations={"numalign.io/scope": "everywhere"}))
    around = AttemptContext(town.cluster, Nominations(), StormGuard())
    assert explained(odd, town.totals, around).fitting == ("a",)


def test_the_reference_flavour_charges_totals_and_gives_them_back() -> None:
    town = Totals()
    town.cluster = Cluster(Engine(Settings(flavour="reference")), town.cluster.world)
    town.cluster.node(servers.node("a"))
    assert town.by_totals(wide("p")) == "a"
    assert town.requested("a") == (6, 1)
    town.cluster.forget("uid-p")
    assert town.requested("a") == (0, 0)
