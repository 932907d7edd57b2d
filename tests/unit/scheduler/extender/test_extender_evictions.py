"""Who is evicted to make room in a zone, by whom, and who may use the room then."""

from __future__ import annotations

import pytest
from msgspec import structs

from numalign.api.objects.pod import Pod
from numalign.scheduler.extender.extender import HOLD, STOCK_FIRST, Evicts
from tests.unit.scheduler.extender.test_extender import Asked
from tests.unit.scheduler.extender.test_extender_preempt import by_zone
from tests.unit.scheduler.preempt.test_preemption import START
from tests.unit.scheduler.servers import trainer


def half(evicts: Evicts = Evicts.NUMALIGN) -> Asked:
    """Three of four GPUs of each zone are in use: two are free, and in no zone more than one."""
    asked = Asked("a", evicts=evicts)
    for number in range(6):
        asked.servers.run(trainer(f"low{number}", cpu="1"), start_time=START)
    for uids in by_zone(asked, "a"):
        if len(uids) == 4:
            gone(asked, uids[-1])
    return asked


def gone(asked: Asked, uid: str) -> None:
    """The pod ends, and the node frees what it had."""
    cluster = asked.servers.cluster
    pod = next(each for each in cluster.pods_on("a") if each.metadata.uid == uid)
    asked.servers.end(pod)


def refused(asked: Asked, name: str = "high", gpus: int = 2, priority: int = 100, **spec: object) -> Pod:
    pod = trainer(name, gpus=gpus, cpu="1", priority=priority, **spec)
    asked.servers.cluster.waits_elsewhere(pod)
    assert asked.passing(pod) == ()
    return pod


def later(asked: Asked, seconds: float = STOCK_FIRST) -> None:
    asked.now += seconds
    asked.tick()


def test_victims_of_one_zone_are_evicted_and_the_pod_is_nominated() -> None:
    asked = half()
    zones = by_zone(asked, "a")
    refused(asked, gpus=3)
    later(asked)
    ((name, node, victims),) = asked.evicted
    assert (name, node, asked.nominated) == ("high", "a", {"high": "a"})
    assert any(set(victims) <= set(zone) for zone in zones)


def test_kube_scheduler_has_a_moment_to_preempt_first() -> None:
    asked = half()
    pod = refused(asked, gpus=3)
    later(asked, STOCK_FIRST / 2)
    status = structs.replace(pod.status, nominated_node_name="a")
    asked.servers.cluster.waits_elsewhere(structs.replace(pod, status=status))
    later(asked)
    assert asked.evicted == []


@pytest.mark.parametrize("evicts", [Evicts.NONE, Evicts.KUBE_SCHEDULER])
def test_nothing_is_evicted_unless_that_is_asked_for(evicts: Evicts) -> None:
    asked = half(evicts)
    refused(asked, gpus=3)
    later(asked)
    assert asked.evicted == []


def test_a_standby_evicts_nothing() -> None:
    asked = half()
    asked.leads = False
    refused(asked, gpus=3)
    later(asked)
    assert asked.evicted == []


def test_nothing_is_evicted_for_a_polite_pod_or_one_that_no_zone_can_take() -> None:
    asked = half()
    refused(asked, gpus=3, preemptionPolicy="Never")
    refused(asked, "huge", gpus=5)
    refused(asked, "equal", gpus=3, priority=0)
    later(asked)
    assert asked.evicted == []


def test_victims_are_evicted_once_however_often_kube_scheduler_asks() -> None:
    asked = half()
    pod = refused(asked, gpus=3)
    for _ in range(3):
        later(asked)
        assert asked.passing(pod) == ()
    assert len(asked.evicted) == 1


def test_the_room_is_kept_from_pods_that_are_less_important() -> None:
    asked = half()
    pod = refused(asked, gpus=4)
    later(asked)
    ((_, _, victims),) = asked.evicted
    for uid in victims:
        gone(asked, uid)
    assert asked.passing(trainer("late", gpus=4, cpu="1", priority=99)) == ()
    assert asked.passing(pod) == ("a",)


def test_the_room_of_a_pod_that_kube_scheduler_nominated_is_kept_from_others() -> None:
    asked = Asked("a")
    asked.servers.run(trainer("there", gpus=4, cpu="1"), start_time=START)
    status = structs.replace(trainer("high").status, nominated_node_name="a")
    high = structs.replace(trainer("high", gpus=4, cpu="1", priority=100), status=status)
    asked.servers.nominations.follow(high)
    assert asked.passing(trainer("low", gpus=4, cpu="1")) == ()
    assert asked.passing(high) == ("a",)
    later(asked, HOLD)
    assert asked.passing(trainer("higher", gpus=4, cpu="1", priority=101)) == ("a",)


def test_nodes_on_which_victims_help_are_resolvable_where_kube_scheduler_looks_for_them() -> None:
    asked = half(Evicts.KUBE_SCHEDULER)
    for pod, expected in (
        (trainer("high", gpus=3, cpu="1", priority=100), {"a"}),
        (trainer("huge", gpus=5, cpu="1", priority=100), set()),
        (trainer("equal", gpus=3, cpu="1"), set()),
    ):
        found = asked.filter(pod)
        assert (found.node_names, set(found.failed_nodes)) == ((), expected)
        assert found.failed_nodes.keys() | found.failed_and_unresolvable_nodes.keys() == {"a"}


def test_where_kube_scheduler_does_not_look_every_refusal_is_unresolvable() -> None:
    """kube-scheduler up to 1.37 fails with an error where it finds no victim on a resolvable node."""
    found = half().filter(trainer("high", gpus=3, cpu="1", priority=100))
    assert (found.failed_nodes, list(found.failed_and_unresolvable_nodes)) == ({}, ["a"])


def test_a_nomination_that_kube_scheduler_clears_stays_while_its_victims_leave() -> None:
    nominations = Asked("a").servers.nominations
    pod = trainer("high")
    named = structs.replace(pod, status=structs.replace(pod.status, nominated_node_name="a"))
    assert nominations.follow(named) == ""
    assert nominations.follow(pod) == "a"
    nominations.follow(named)
    nominations.expect(pod.metadata.uid, ["victim"])
    assert (nominations.follow(pod), nominations.node_of(pod.metadata.uid)) == ("", "a")
    assert nominations.pod(pod.metadata.uid) is pod
