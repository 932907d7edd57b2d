"""Which victims kube-scheduler is given: those whose end makes a kubelet admit the pod, and no others."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from numalign.api.decode import decode
from numalign.api.decode.structs import ENCODER
from numalign.api.objects.pod import Pod
from numalign.placement.explain import whatif
from numalign.scheduler.choose.choose import Chosen
from numalign.scheduler.extender.earliervictims import PATIENCE, PAUSE
from numalign.scheduler.extender.protocol import MetaPod, MetaVictims, PreemptionArgs
from tests.unit.scheduler import servers, waitingpods
from tests.unit.scheduler.choose.test_plugins_budgets import budget
from tests.unit.scheduler.extender.test_extender import Asked
from tests.unit.scheduler.preempt.test_preemption import START, admitted
from tests.unit.scheduler.servers import trainer

Answer = dict[str, MetaVictims]


def full(*nodes: str) -> Asked:
    """Every GPU is taken by a pod of priority 0 that has one."""
    asked = Asked(*nodes)
    for number in range(8 * len(nodes)):
        asked.servers.run(trainer(f"low{number}", cpu="1"), start_time=START)
    return asked


def by_zone(asked: Asked, node: str) -> list[list[str]]:
    """The uids of the node's pods, zone by zone."""
    cluster, pod = asked.servers.cluster, trainer("any")
    holders = whatif.of(cluster.engine, pod, cluster.engine.shape(pod)).holders(cluster.world.rows[node])
    return [sorted(uid for uid, mask in holders.items() if mask == zone) for zone in (1, 2)]


def answer(asked: Asked, pod: Pod, **victims: list[str]) -> Answer:
    """As kube-scheduler asks an extender with a cache of nodes."""
    question = {
        node: MetaVictims(tuple(MetaPod(each) for each in uids) or None, len(uids)) for node, uids in victims.items()
    }
    return asked.extender.preempt(
        PreemptionArgs(pod, node_name_to_meta_victims=dict(question))
    ).node_name_to_meta_victims


def high(gpus: int = 3, **spec: Any) -> Pod:
    return trainer("high", gpus=gpus, priority=100, **spec)


def test_victims_that_make_room_in_one_zone_stay_as_kube_scheduler_chose_them() -> None:
    asked = full("a")
    three = by_zone(asked, "a")[1][:3]
    (found,) = answer(asked, high(), a=three).values()
    assert (found.uids, found.violations) == (tuple(three), 3)


def test_victims_of_different_zones_are_replaced_by_as_many_of_one_zone() -> None:
    asked = full("a")
    zones = by_zone(asked, "a")
    (found,) = answer(asked, high(), a=[*zones[0][:2], zones[1][0]]).values()
    assert len(found.uids) == 3
    assert any(set(found.uids) <= set(zone) for zone in zones)


def test_a_node_that_no_eviction_helps_is_left_out() -> None:
    asked = full("a", "b")
    assert answer(asked, high(6), a=by_zone(asked, "a")[0], b=[]) == {}


def test_empty_lists_are_filled() -> None:
    """kube-scheduler 1.38 and later sends them for nodes that only an extender refuses."""
    asked = full("a", "b")
    found = answer(asked, high(), a=[], b=[])
    assert sorted(found) == ["a", "b"]
    assert all(len(each.uids) == 3 and each.violations == 0 for each in found.values())


def test_budgets_are_respected_and_their_violations_counted() -> None:
    asked = Asked("a")
    for app in ("web", "db"):
        pod = trainer(app, gpus=4, cpu="1")
        asked.servers.run(structs.replace(pod, metadata=structs.replace(pod.metadata, labels={"app": app})))
    asked.servers.budgets.put(budget("web", 0))
    assert answer(asked, high(4), a=[]) == {"a": MetaVictims((MetaPod("uid-db"),), 0)}
    asked.servers.budgets.put(budget("db", 0, {"matchLabels": {"app": "db"}}))
    asked.now += PAUSE
    (found,) = answer(asked, high(4), a=[]).values()
    assert found.violations == 1


def test_pods_of_the_same_priority_are_no_victims() -> None:
    assert answer(full("a"), structs.replace(high(), spec=structs.replace(high().spec, priority=0)), a=[]) == {}


def test_room_of_a_pod_that_is_nominated_already_is_not_given_twice() -> None:
    asked = full("a")
    for name in ("first", "second"):
        asked.servers.nominations.put(trainer(name, gpus=4, cpu="1", priority=100), "a")
    assert answer(asked, high(4), a=[]) == {}


def test_whole_victims_are_answered_by_uid() -> None:
    """As kube-scheduler asks an extender without a cache of nodes."""
    asked = full("a")
    three = by_zone(asked, "a")[0][:3]
    pods = [{"metadata": {"name": uid, "namespace": "default", "uid": uid}, "spec": {}} for uid in three]
    body = {
        "Pod": json.loads(ENCODER.encode(high())),
        "NodeNameToVictims": {"a": {"Pods": pods, "NumPDBViolations": 1}},
    }
    found = asked.extender.preempt(decode.decode(PreemptionArgs, json.dumps(body).encode()))
    said = {"NodeNameToMetaVictims": {"a": {"Pods": [{"UID": uid} for uid in three], "NumPDBViolations": 1}}}
    assert json.loads(ENCODER.encode(found)) == said


def test_null_where_go_has_no_map_or_slice_is_read() -> None:
    asked = full("a")
    every: tuple[Any, ...] = ({"Pods": None, "NumPDBViolations": 0}, {"Pods": []}, {}, None)
    for victims in every:
        body = {
            "Pod": json.loads(ENCODER.encode(high())),
            "NodeNameToVictims": None,
            "NodeNameToMetaVictims": {"a": victims},
        }
        found = asked.extender.preempt(decode.decode(PreemptionArgs, json.dumps(body).encode()))
        assert list(found.node_name_to_meta_victims) == ["a"]
        asked.now += PAUSE
    neither = decode.decode(PreemptionArgs, json.dumps({"Pod": body["Pod"]}).encode())
    assert asked.extender.preempt(neither).node_name_to_meta_victims == {}


def test_a_pod_that_no_kubelet_aligns_keeps_the_victims_of_kube_scheduler() -> None:
    asked = full("a", "b")
    plain = waitingpods.pod("plain", {"containers": [{"name": "main"}], "priority": 100})
    assert list(answer(asked, plain, a=["uid-low0"], b=[])) == ["a"]


def test_nodes_that_are_unknown_without_report_or_avoided_are_left_out() -> None:
    asked = full("a")
    assert answer(asked, high(), a=[], new=["uid-x"]).keys() == {"a"}
    shape = asked.servers.cluster.engine.shape(high()).number
    asked.rejections.rejected(shape, "a", "TopologyAffinityError", asked.now)
    assert answer(asked, high(), a=[]) == {}
    blind = Asked("a", reports=False)
    blind.servers.cluster.pod(servers.on(trainer("low", gpus=4), "a"), 0.0)
    assert answer(blind, high(), a=["uid-low"]) == {}


def test_a_pod_that_kube_scheduler_may_not_have_placed_there_is_no_victim() -> None:
    """kube-scheduler rejects an answer that names a pod which it does not know on the node."""
    asked = Asked("a")
    for name in ("p", "q"):
        assert asked.chosen(trainer(name, gpus=4, cpu="1")) == "a"
    assert answer(asked, high(4), a=[]) == {}
    for name in ("p", "q"):
        asked.seen(trainer(name, gpus=4, cpu="1"), "a")
    assert len(answer(asked, high(4), a=[])["a"].uids) == 1


def test_no_other_victims_are_named_while_earlier_ones_leave() -> None:
    """kube-scheduler looks for victims anew as soon as one of them is gone and totals are still short."""
    asked = Asked("a")
    for name in ("p", "q", "r", "s"):
        asked.servers.run(trainer(name, gpus=2, cpu="1"), start_time=START)
    pod = high(4)
    (found,) = answer(asked, pod, a=[]).values()
    first, second = found.uids
    assert answer(asked, pod, a=[]) == {}, "one of them may be gone, and the watch lags"
    asked.now += PAUSE
    assert answer(asked, pod, a=[])["a"].uids == (first, second), "the earlier answer may not have arrived"
    world = asked.servers.cluster.world
    for gone in (first, second):
        asked.servers.cluster.pod_gone(world.pods[gone].pod, asked.now)
        assert answer(asked, pod, a=[]) == {}
    assert answer(asked, structs.replace(pod, metadata=structs.replace(pod.metadata, uid="other")), a=[]) != {}
    asked.now += PATIENCE
    assert set(answer(asked, pod, a=[])) == {"a"}


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 40), st.integers(0, 2)), min_size=1, max_size=10), st.data()
)
def test_the_kubelet_admits_the_pod_once_the_victims_of_an_answer_are_gone(
    pods: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    asked, running = Asked("a"), list[Pod]()
    for number, (gpus, cpu, priority) in enumerate(pods):
        pod = trainer(f"p{number}", gpus=gpus, cpu=str(cpu), priority=priority)
        if isinstance(asked.servers.choose(pod), Chosen):
            running.append(asked.servers.run(pod, "a", start_time=f"2026-01-01T00:{number:02}:00Z"))
    pod = trainer("new", gpus=data.draw(st.integers(1, 4)), cpu=str(data.draw(st.integers(1, 90))), priority=2)
    if isinstance(asked.servers.choose(pod), Chosen):
        return
    lower = [each.metadata.uid for each in running if each.spec.priority < 2]
    supposed = [uid for uid in lower if data.draw(st.booleans())]
    found = answer(asked, pod, a=supposed)
    if "a" in found:
        assert found["a"].uids
        assert set(found["a"].uids) <= set(lower)
        assert admitted(running, set(found["a"].uids), pod)
    else:
        assert not admitted(running, set(lower), pod)
