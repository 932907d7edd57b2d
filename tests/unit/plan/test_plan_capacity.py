"""`plan capacity`: its counts are what the scheduler places and kubelets admit, and its hints come true."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from numalign.api.nrt.topologymanager import POLICIES, SCOPES
from numalign.kubelet import admission
from numalign.plan.questions import capacity, nodes, scene
from numalign.plan.questions.capacity import CapacityPlan, CapacityQuestion
from numalign.plan.questions.scene import Kind
from numalign.plan.sources import scenes
from numalign.scheduler.snapshot.snapshot import Snapshot
from tests import machinescenes
from tests.unit.plan.plannedclusters import STATIC, catalogue_of, cluster, kind, machine_type
from tests.unit.scheduler.servers import trainer

MACHINES = ("2x16", "2x32-smt", "gpu-8", "xeon-snc")


@st.composite
def busy_clusters(draw: st.DrawFn) -> Snapshot:
    """Two machines on which kubelets have admitted some pods."""
    made = []
    for name in ("a", "b"):
        machine = draw(st.sampled_from(MACHINES))
        policy, scope = draw(st.sampled_from(POLICIES)), draw(st.sampled_from(SCOPES))
        has_gpus = machine == "gpu-8"
        residents = [
            trainer(f"{name}-{number}", gpus=gpus if has_gpus else 0, cpu=str(cpus))
            for number, (gpus, cpus) in enumerate(
                draw(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 6)), max_size=3))
            )
        ]
        made.append(machinescenes.node(name, machine, policy, residents, topology_scope=scope))
    return cluster(*made)


@settings(max_examples=25, deadline=None)
@given(busy_clusters(), st.integers(1, 14), st.integers(0, 4))
def test_the_count_is_what_the_scheduler_places_and_kubelets_admit(taken: Snapshot, cpus: int, gpus: int) -> None:
    asked = kind(cpu=str(cpus), gpu=str(gpus)) if gpus else kind(cpu=str(cpus))
    (found,) = capacity.answer(taken, CapacityQuestion(kinds=(asked,), gains=False)).kinds
    opened = scene.opened(taken)
    kubelets = {name: each.restored for name, each in nodes.known(taken).items()}
    placed = 0
    while (arrival := opened.arrivals.place(scene.copy(asked, placed))) is not None:
        known = kubelets[arrival.decision.node]
        assert known is not None
        state, outcome = admission.align(known.kubelet, known.state, scene.copy(asked, placed))
        assert outcome.admitted, f"pod {placed} on {arrival.decision.node}: {outcome.message}"
        kubelets[arrival.decision.node] = known._replace(state=state)
        placed += 1
    assert found.count == placed
    assert found.bound in ("exact", "at-least")


def answered(taken: Snapshot, *kinds: Kind, **asked: Any) -> CapacityPlan:
    return capacity.answer(taken, CapacityQuestion(kinds=kinds, **asked))


def empty(**machine: Any) -> Snapshot:
    return scenes.of_catalogue(catalogue_of(machine_type(**{"count": 2, **machine})), "machines.yaml")


def test_what_stops_the_next_pod_is_named_with_its_zones() -> None:
    (found,) = answered(empty(), kind(cpu="9")).kinds
    assert (found.count, found.roomy_nodes) == (2 * 2, 2)
    (binding,) = found.binding
    assert (binding.resource, binding.together_in, binding.nodes) == ("cpu", 1, 2)
    (own,) = found.nodes
    assert [(zone.zone, zone.pods) for zone in own.zones] == [(0, 1), (1, 1)]


def test_a_taint_that_stops_the_next_pod_is_named() -> None:
    tainted = machinescenes.node("a", "2x16")
    tainted[0]["spec"] = {"taints": [{"key": "gpu", "value": "broken", "effect": "NoSchedule"}]}
    (found,) = answered(cluster(tainted, machinescenes.node("b", "2x16")), kind(cpu="4"), gains=False).kinds
    assert {each.cause for each in found.binding if each.examples == ("a",)} == {
        "untolerated taint gpu=broken:NoSchedule"
    }


def test_one_more_core_in_each_zone_gives_what_it_says() -> None:
    """A zone of 16 CPUs has room for two pods of 8, but for CPU 0, which is reserved."""
    (found,) = answered(empty(), kind(cpu="8")).kinds
    gain = next(each for each in found.gains if each.change.startswith("one more core"))
    assert (found.count, gain.count, gain.gained, gain.nodes) == (2 * 3, 2 * 4, 2, 2)
    policies = {each.change: each.gained for each in found.gains}
    assert policies["topologyManagerPolicy best-effort"] == 0


def test_another_policy_gives_what_kubelets_with_it_would_admit() -> None:
    """What is left of both zones together is enough for one more pod, which `restricted` refuses."""
    (found,) = answered(empty(), kind(cpu="10")).kinds
    policies = {each.change: each.gained for each in found.gains}
    other = empty(kubelet={**STATIC, "topologyManagerPolicy": "best-effort"})
    (really,) = answered(other, kind(cpu="10"), gains=False).kinds
    assert really.count - found.count == policies["topologyManagerPolicy best-effort"] == 2


def test_one_more_device_in_each_zone_counts_on_busy_nodes() -> None:
    taken = cluster(machinescenes.node("busy", "gpu-8", "restricted", [trainer("there", gpus=3)]))
    (found,) = answered(taken, kind(cpu="1", gpu="2")).kinds
    gain = next(each for each in found.gains if each.change == "one more nvidia.com/gpu in each zone")
    assert (found.count, gain.count) == (2, 3)


def test_a_report_of_another_publisher_is_changed_by_its_amounts() -> None:
    taken = cluster(machinescenes.node("plain", "gpu-8", "restricted", publisher="rte"))
    (found,) = answered(taken, kind(cpu="1", gpu="5")).kinds
    gain = next(each for each in found.gains if each.change == "one more nvidia.com/gpu in each zone")
    # Five of eight GPUs take both zones and one CPU takes one, which is refused; five of ten are in one zone.
    assert (found.count, gain.count) == (0, 2)


def test_a_mix_fills_the_cluster_in_the_proportion_of_its_weights() -> None:
    found = answered(empty(count=1), kind("big", cpu="7", weight=2), kind("small", cpu="1", weight=1), gains=False)
    assert found.mix is not None
    assert found.mix.pods == {"big": 4, "small": 2}
    assert found.mix.stopped_by == "big"
    assert found.mix.why


def test_a_workload_fits_only_as_a_whole() -> None:
    fits = answered(empty(count=1), kind("a", pods=2, cpu="15"), is_workload=True, gains=False)
    assert (fits.fits, fits.missing) == (True, {})
    not_so = answered(empty(count=1), kind("a", pods=3, cpu="15"), is_workload=True, gains=False)
    assert (not_so.fits, not_so.missing) == (False, {"a": 1})


def test_the_answer_depends_on_nothing_but_the_question() -> None:
    taken, kinds = empty(), (kind("a", cpu="3"), kind("b", cpu="5"))
    assert answered(taken, *kinds) == answered(taken, *kinds)
