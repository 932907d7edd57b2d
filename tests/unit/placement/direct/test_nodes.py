"""The engine decides pods on nodes in direct mode, charges the decisions, and finds them again on the pods."""

from functools import partial, reduce
from operator import or_
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from numalign.api.attributes import directresult, directspec
from numalign.api.attributes.directmode import DirectMode
from numalign.api.decode import cpuset
from numalign.api.objects.pod import Pod
from numalign.placement.columns.directmachine import DirectMachine, FreeState
from numalign.placement.columns.nodefacts import Assumption
from numalign.placement.decisions import Code, WakeCause
from numalign.placement.direct.nodes import DirectNodes
from numalign.placement.engine import Engine
from numalign.placement.exact import ExactFlavour
from numalign.placement.explain import answers, wording
from numalign.placement.facts import BindFailed, NodeSeen, PodGone, ReportSeen, Tick
from tests.unit.kubelet import made
from tests.unit.placement import choices
from tests.unit.placement.direct import clusters, machines
from tests.unit.placement.direct.clusters import bound, engine, named, result

SINGLE = '{"policy": "SingleNUMANode", "scope": "Container"}'


def pod(name: str = "p", *cpus: Any, spec: str = SINGLE, **more: Any) -> Pod:
    return named(machines.pod(*(cpus or (6,)), spec=spec, **more), name)


def placed(on: Engine, of: Pod) -> Any:
    return choices.chosen(on, of, Random(1)).decision


def free_cpus(on: Engine, node: str = "n") -> str:
    """As decisions see it."""
    direct, machine = parts(on, node)
    return cpuset.text(direct.ledger.free(node, machine).cpus)


def free_state(on: Engine, node: str = "n") -> FreeState:
    """Summed up anew."""
    direct, machine = parts(on, node)
    return direct.ledger.without(node, machine, ())


def parts(on: Engine, node: str) -> tuple[DirectNodes, DirectMachine]:
    assert isinstance(on.flavour, ExactFlavour)
    on.flavour.refresh()
    machine = on.flavour.machine(on.rows[node])
    assert machine is not None
    return on.flavour.direct, machine


def test_the_decision_names_the_cpus_zones_and_memory_of_every_container() -> None:
    found = result(placed(engine("n"), pod("p", 6, 6)))
    assert [(each.name, each.cpuset, each.zones) for each in found.containers] == [
        ("c0", "0-5", (0,)),
        ("c1", "8-13", (1,)),
    ]
    assert found.containers[0].resources == {"0": {"cpu": "6", "memory": "1Gi"}}
    assert (found.uid, found.node, found.scope, found.policy) == ("p", "n", "container", "single-numa-node")
    assert found.cpuset == "0-5,8-13"
    assert [(each.node, each.resources["cpu"]) for each in found.numa_node_resources] == [(0, "6"), (1, "6")]


def test_memory_is_limited_to_the_zones_where_the_pod_says_so() -> None:
    spec = '{"policy": "SingleNUMANode", "memory": "Enforce"}'
    assert result(placed(engine("n"), pod(spec=spec))).containers[0].mems == "0"
    assert result(placed(engine("n"), pod())).containers[0].mems == ""


def test_decisions_do_not_overlap_and_what_is_left_is_the_pool() -> None:
    on = engine("n")
    held = [result(placed(on, pod(f"p{number}", 4))).cpus for number in range(4)]
    assert [cpuset.text(cpus) for cpus in held] == ["0-3", "4-7", "8-11", "12-15"]
    assert free_cpus(on) == ""
    assert placed(on, pod("late", 1)) is None


def test_a_pod_that_goes_frees_what_it_held() -> None:
    on = engine("n")
    first = pod("first", 8)
    there = bound(first, placed(on, first))
    placed(on, pod("second", 8))
    clusters.see(on, there)
    assert placed(on, pod("third", 2)) is None
    wakes = on.apply(PodGone(structs.replace(there, status=structs.replace(there.status, phase="Succeeded")), 1.0))
    assert any(wake.cause is WakeCause.FREED for wake in wakes)
    assert result(placed(on, pod("third", 2))).cpuset == "0-1"


def test_a_pod_that_is_gone_holds_its_cpus_until_its_containers_have_surely_ended() -> None:
    on = engine("n")
    first = pod("first", 8)
    there = bound(first, placed(on, first))
    running = structs.replace(there, status=structs.replace(there.status, phase="Running"))
    clusters.see(on, running)
    on.apply(PodGone(running, 1.0))
    assert free_cpus(on) == "8-15"
    on.apply(Tick(1000.0))
    assert free_cpus(on) == "0-15"


def test_a_binding_that_failed_frees_the_node_and_wakes_others() -> None:
    on = engine("n")
    placed(on, pod("first", 8))
    assert [wake.node for wake in on.apply(BindFailed("first"))] == ["n"]
    assert free_cpus(on) == "0-15"


def test_a_new_process_knows_everything_from_the_pods() -> None:
    on, again, there = engine("n"), engine("n"), list[Pod]()
    for number, cpus in enumerate((5, 3, "500m", 2)):
        each = pod(f"p{number}", cpus)
        there.append(bound(each, placed(on, each)))
    for each in there:
        clusters.see(again, each)
    assert free_state(on) == free_state(again)
    assert result(placed(again, pod("late", 4))) == result(placed(on, pod("late", 4)))


def test_pods_may_be_seen_before_the_nodes_report() -> None:
    on = engine("n")
    first = pod("first", 8)
    there = bound(first, placed(on, first))
    late = Engine()
    late.apply(NodeSeen(clusters.node()))
    clusters.see(late, there)
    late.apply(ReportSeen(clusters.topology(), 0.0))
    assert free_cpus(late) == "8-15"


def test_a_copied_decision_has_no_effect() -> None:
    on = engine("n")
    first = pod("first", 8)
    there = bound(first, placed(on, first))
    again = engine("n")
    copied = structs.replace(there, metadata=structs.replace(there.metadata, uid="other"))
    clusters.see(again, copied)
    assert free_cpus(again) == "0-15"


@pytest.mark.parametrize("text", ["{", '{"version":1,"uid":"p","node":"n","cpuset":"0-x"}'])
def test_a_broken_decision_is_counted_and_nothing_stops(text: str) -> None:
    on = engine("n")
    there = pod()
    meta = structs.replace(there.metadata, annotations={directresult.RESULT: text})
    clusters.see(on, structs.replace(there, metadata=meta, spec=structs.replace(there.spec, node_name="n")))
    assert on.statistics().problems["direct-decision-unreadable"] == 1
    assert placed(on, pod("other")) is not None


def test_a_node_is_in_direct_mode_only_if_the_kubelets_managers_are_off() -> None:
    static = made.settings(policy="single-numa-node")
    on = engine("n", settings=static)
    decision = placed(on, pod(spec='{"policy": "SingleNUMANode"}'))
    assert decision.direct is None
    assert Assumption.DIRECT_NOT_POSSIBLE in answers.of(on, pod()).assumptions(on.rows["n"])


def test_a_node_without_the_mode_is_in_predict_mode_and_takes_no_pod_that_needs_direct_mode() -> None:
    on = Engine()
    on.apply(NodeSeen(clusters.node("plain")))
    plain = clusters.topology("plain")
    on.apply(ReportSeen(structs.replace(plain, facts=structs.replace(plain.facts, mode=None)), 0.0))
    asked = pod("p", 4, "500m", spec='{"policy": "None", "containers": {"exclude": ["c1"]}}')
    found = choices.chosen(on, asked)
    assert found.refused == {Code.INTENT: 1}
    reason = answers.of(on, asked).reason(on.rows["plain"])
    assert reason is not None
    assert wording.sentence(reason) == (
        "the pod's annotations ask for policy none and alignment of some containers, which needs a node in direct mode"
    )


def test_in_a_mixed_cluster_each_pod_goes_where_its_wishes_are_kept() -> None:
    on = engine("direct")
    on.apply(NodeSeen(clusters.node("kubelet")))
    static = made.settings(policy="single-numa-node", reserved_cpus="0")
    plain = clusters.topology("kubelet", settings=static)
    on.apply(ReportSeen(structs.replace(plain, facts=structs.replace(plain.facts, mode=None)), 0.0))
    apart = '{"policy": "SingleNUMANode", "memory": "Enforce"}'
    assert placed(on, pod("needs-direct", spec=apart)).node == "direct"
    nodes = {placed(on, pod(f"p{number}", 6, spec='{"policy": "SingleNUMANode"}')).node for number in range(3)}
    assert nodes == {"direct", "kubelet"}
    # A kubelet with a weaker policy does not keep the pod's.
    weak = clusters.topology("kubelet", settings=made.settings(policy="best-effort"))
    on.apply(ReportSeen(structs.replace(weak, facts=structs.replace(weak.facts, mode=None)), 1.0))
    assert on.refuses(on.shape(pod("strict", 1, spec='{"policy": "Restricted"}')), "kubelet")


def test_an_agent_that_cannot_limit_memory_gets_no_pod_that_wants_it() -> None:
    on = engine("n", mode=DirectMode(frozenset({"cpus"})))
    asked = pod(spec='{"policy": "SingleNUMANode", "memory": "Enforce"}')
    assert choices.chosen(on, asked).refused == {Code.INTENT: 1}
    assert placed(on, pod()) is not None


def test_labels_of_the_node_are_defaults() -> None:
    on = engine("n", labels={"numalign.io/numa-topology-policy": "SingleNUMANode"})
    assert result(placed(on, pod("p", 6, 6, spec=""))).containers[1].zones == (1,)
    on.apply(NodeSeen(clusters.node(labels={"numalign.io/numa-topology-policy": "None"})))
    assert result(placed(on, pod("q", 2, spec=""))).containers[0].zones == ()


REFUSED = {
    "a zone is too small": (
        pod("p", 9),
        "container c0 needs 9 CPUs in one NUMA zone, best zone has 8, even when empty",
    ),
    "no two zones for all": (
        pod("p", 6, 6, spec='{"policy": "SingleNUMANode", "scope": "Pod"}'),
        "the pod needs 12 CPUs in one NUMA zone, best zone has 8, even when empty",
    ),
}


@pytest.mark.parametrize("asked, sentence", REFUSED.values(), ids=REFUSED)
def test_a_refusal_says_what_is_missing(asked: Pod, sentence: str) -> None:
    on = engine("n")
    reason = answers.of(on, asked).reason(on.rows["n"])
    assert reason is not None
    assert wording.sentence(reason) == sentence


class Story(clusters.Story):
    """Pods come, are bound or not, go, and processes start anew."""

    def __init__(self, draw: Any) -> None:
        super().__init__(draw, partial(engine, "n", "m"))

    def place(self, name: str) -> None:
        cpus = self.draw(st.lists(st.sampled_from([1, 2, 3, 5, "500m"]), min_size=1, max_size=3))
        policy = self.draw(st.sampled_from(list(directspec.POLICIES)))
        asked = pod(name, *cpus, spec=f'{{"policy": "{policy}"}}')
        decision = placed(self.on, asked)
        if decision is not None:
            self.there[name] = bound(asked, decision)
            clusters.see(self.on, self.there[name])

    def fail(self, name: str) -> None:
        if placed(self.on, pod(name, 2)) is not None:
            self.on.apply(BindFailed(name))

    def check(self, node: str) -> None:
        results = [directresult.of_pod(each) for each in self.there.values() if each.spec.node_name == node]
        held = [each.cpus for each in results if each is not None]
        union = reduce(or_, held, 0)
        assert union.bit_count() == sum(cpus.bit_count() for cpus in held)
        # Pools and pins together are all that may be handed out.
        state = free_state(self.on, node)
        assert state.cpus | union == cpuset.parse("0-15")
        assert not state.cpus & union
        assert free_cpus(self.on, node) == cpuset.text(state.cpus)


@settings(max_examples=40)
@given(st.data())
def test_whatever_happens_no_cpu_is_held_twice(data: st.DataObject) -> None:
    story = Story(data.draw)
    steps = [story.place, story.place, story.place, story.fail, story.end, story.restart]
    for number, step in enumerate(data.draw(st.lists(st.sampled_from(steps), max_size=12))):
        step(f"p{number}")
        for node in ("n", "m"):
            story.check(node)
