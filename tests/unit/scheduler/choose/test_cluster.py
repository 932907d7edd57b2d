"""Engine and world in step: nodes that come and go, pods that are assumed, confirmed or forgotten."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from numalign.api.attributes import directresult
from numalign.api.attributes.directresult import DirectResult
from numalign.api.objects.pod import Pod, PodCondition
from numalign.placement.columns.nodefacts import RowFacts
from numalign.placement.exact import ExactFlavour
from numalign.scheduler.choose.cluster import Cluster
from tests.unit.scheduler import servers
from tests.unit.scheduler.servers import Servers, trainer


def requested(cluster: Cluster, node: str) -> int:
    """Thousandths of CPUs, as both know them."""
    row = cluster.engine.columns.rows[node]
    world = int(cluster.world.totals.requested[0, row])
    engine = cluster.engine.columns.requested(row, cluster.engine.columns.column("cpu"))
    assert world == engine
    return world


def known_facts(cluster: Cluster, node: str) -> RowFacts | None:
    assert isinstance(cluster.engine.flavour, ExactFlavour)
    return cluster.engine.flavour.mirror.ledger.facts(node)


def test_a_pod_counts_from_the_decision_on_and_once_when_it_is_confirmed() -> None:
    known = Servers("a")
    pod = trainer("p")
    known.place(pod)
    before = requested(known.cluster, "a")
    known.cluster.pod(servers.on(pod, "a"), 1.0)
    assert before == requested(known.cluster, "a") == 4000
    assert known.cluster.assumed == {}


def test_a_pod_that_is_seen_as_it_was_assumed_changes_nothing_for_rules() -> None:
    known = Servers("a")
    pod = trainer("p")
    known.place(pod)
    changes = known.cluster.world.totals.log.generation
    scheduled = PodCondition(type="PodScheduled", status="True")
    known.cluster.pod(servers.on(pod, "a", conditions=(scheduled,)), 1.0)
    assert known.cluster.world.totals.log.generation == changes


def test_a_pod_that_somebody_bound_elsewhere_counts_there() -> None:
    known = Servers("a", "b")
    pod = trainer("p")
    other = "b" if known.place(pod) == "a" else "a"
    known.cluster.pod(servers.on(pod, other), 1.0)
    assert {name: requested(known.cluster, name) for name in "ab"} == {"a": 0, "b": 0} | {other: 4000}


def test_to_forget_a_pod_that_was_seen_does_nothing() -> None:
    known = Servers("a")
    pod = trainer("p")
    known.place(pod)
    known.cluster.pod(servers.on(pod, "a"), 1.0)
    assert known.cluster.forget(pod.metadata.uid) == []
    assert requested(known.cluster, "a") == 4000


def test_a_finished_pod_counts_no_more() -> None:
    known = Servers("a")
    pod = servers.on(trainer("p"), "a")
    known.cluster.pod(pod, 1.0)
    wakes = known.cluster.pod(servers.on(pod, "a", phase="Succeeded"), 2.0)
    assert requested(known.cluster, "a") == 0
    assert [wake.node for wake in wakes] == ["a"]


def test_a_report_that_repeats_the_one_before_is_not_read_again() -> None:
    cluster, report = Servers("a").cluster, servers.reported("a")
    cluster.report(structs.replace(report, metadata=structs.replace(report.metadata, resource_version="1")), 1.0)
    facts = known_facts(cluster, "a")
    cluster.report(structs.replace(report, metadata=structs.replace(report.metadata, resource_version="2")), 2.0)
    assert known_facts(cluster, "a") is facts
    cluster.report(structs.replace(report, topology_policies=("BestEffort",), attributes=()), 3.0)
    assert known_facts(cluster, "a") != facts


def test_a_report_that_comes_back_counts_although_it_says_the_same() -> None:
    cluster, report = Servers("a").cluster, servers.reported("a")
    facts = known_facts(cluster, "a")
    cluster.report_gone("a", 1.0)
    assert known_facts(cluster, "a") != facts
    assert [each.metadata.name for each in cluster.deleted_reports] == ["a"]
    cluster.report(report, 1.0)
    assert known_facts(cluster, "a") == facts
    assert not cluster.deleted_reports


def test_a_node_that_once_reported_is_awaited_without_end() -> None:
    """Its zones were known to a scheduler before this one, as a pod's annotation says."""
    bound = servers.on(trainer("p", schedulerName="default-scheduler"), "a")
    decided = DirectResult(version=directresult.VERSION, uid=bound.metadata.uid, node="a")
    for noted, taken in (
        ({}, "a"),
        ({"numalign.io/placement": "v1;main=0"}, ""),
        ({directresult.RESULT: directresult.encode(decided)}, ""),
        ({directresult.RESULT: directresult.encode(structs.replace(decided, node="b"))}, "a"),
        ({directresult.RESULT: "nothing"}, "a"),
    ):
        pod = structs.replace(bound, metadata=structs.replace(bound.metadata, annotations=noted))
        known = Servers("a", reports=False)
        known.cluster.pod(pod, 0.0)
        known.cluster.graces_ended(1e6)
        assert known.place(trainer("q")) == taken
        known.cluster.report(servers.reported("a"), 1e6)
        assert known.place(trainer("r")) == "a"


def test_pods_of_a_node_that_is_made_again_count_there() -> None:
    known = Servers("a", reports=False)
    known.cluster.pod(servers.on(trainer("p"), "a"), 1.0)
    known.cluster.node_gone("a")
    known.cluster.node(servers.node("b"))
    known.cluster.node(servers.node("a"))
    assert (requested(known.cluster, "a"), requested(known.cluster, "b")) == (4000, 0)


@pytest.mark.parametrize(
    "known_of_its_binding, others", [("nothing", ["a", "a"]), ("sends", ["a", ""]), ("bound", ["a", ""])]
)
def test_a_pod_deleted_before_its_binding_was_seen_holds_what_it_may_run_on(
    known_of_its_binding: str, others: list[str]
) -> None:
    """A Binding that was sent may have taken effect, even if its answer never came."""
    known = Servers("a")
    pod = trainer("p", gpus=4)
    known.place(pod)
    if known_of_its_binding != "nothing":
        getattr(known.cluster, known_of_its_binding)(pod.metadata.uid)
    known.cluster.pod_gone(pod, 1.0)
    assert [known.place(trainer(f"q{n}", gpus=4)) for n in range(2)] == others


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["node", "node_gone", "report", "report_gone", "pod", "pod_gone", "assume", "forget", "end"]),
        st.sampled_from("abc"),
        st.integers(0, 4),
    ),
    max_size=40,
)


def happen(known: Servers, what: str, name: str, pod_and_now: tuple[Pod, float]) -> None:
    cluster, (pod, now) = known.cluster, pod_and_now
    match what:
        case "node":
            cluster.node(servers.node(name))
        case "report":
            cluster.report(servers.reported(name), now)
        case "node_gone":
            cluster.node_gone(name)
        case "report_gone":
            cluster.report_gone(name, now)
        case "pod" | "pod_gone":
            getattr(cluster, what)(servers.on(pod, name), now)
        case "assume" if not cluster.counts(pod.metadata.uid):
            known.place(pod)
        case "forget":
            cluster.forget(pod.metadata.uid)
        case "end":
            cluster.pod(servers.on(pod, name, phase="Failed"), now)


@given(STEPS)
def test_whatever_happens_engine_and_world_agree(steps: list[tuple[str, str, int]]) -> None:
    known = Servers()
    cluster = known.cluster
    for number, (what, name, which) in enumerate(steps):
        happen(known, what, name, (trainer(f"p{which}"), float(number)))
    assert set(np.flatnonzero(cluster.world.present).tolist()) == {
        cluster.engine.columns.rows[node] for node in cluster._nodes
    }
    there = {pod.metadata.uid: node for node in "abc" for pod in cluster.pods_on(node)}
    assert len(there) == cluster.pods
    for uid, node in there.items():
        row = cluster.engine.columns.rows.get(node)
        assert (cluster.world.pods[uid].row if uid in cluster.world.pods else None) == row
