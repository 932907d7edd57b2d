"""The state machine of enforcement: what each container has to have, whatever the order of events."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numalign.agent.enforce import messages
from numalign.agent.enforce.messages import CPUSettings, RuntimeContainer, Sandbox
from numalign.agent.enforce.pools import NodeCPUs
from numalign.agent.enforce.state import STRAYS, NodeState, Refusal
from numalign.api.attributes.directmode import AppliedContainer
from numalign.api.decode import cpuset
from tests.unit.agent.enforce.nodes import NODE, TWO_ZONES, made, own, sandbox


def state(patience: float = 0.0) -> NodeState:
    found = NodeState(NODE, patience)
    found.configure(TWO_ZONES, {})
    return found


def create(found: NodeState, pod: Sandbox, name: str, now: float = 0.0, pid: int = 7) -> CPUSettings:
    settings = found.create(pod, made(pod, name), now)
    assert isinstance(settings, CPUSettings)
    found.started(made(pod, name).id, pid)
    return settings


def flushed(found: NodeState) -> dict[str, str]:
    """The CPUs of containers that had to change; the runtime applies everything."""
    changes = found.changes()
    for each in changes:
        found.accepted(each)
    return {each.update.container: each.update.settings.cpus for each in changes}


def test_a_container_with_cpus_of_its_own_starts_with_them_and_without_a_quota() -> None:
    pod = sandbox("db", own("main", "1-4", (0,), mems="0"))
    assert create(state(), pod, "main") == CPUSettings("1-4", "0", unlimited=True)


def test_containers_without_a_decision_run_in_the_shared_pool_of_the_node() -> None:
    found = state()
    assert create(found, sandbox("web"), "main").cpus == "1-7,9-15"


def test_shared_containers_leave_cpus_before_a_container_gets_them_and_return_when_its_pod_is_gone() -> None:
    found, web, db = state(), sandbox("web"), sandbox("db", own("main", "1-4", (0,)))
    create(found, web, "main")
    assert found.create(db, made(db, "main"), 0.0) == CPUSettings("1-4", unlimited=True)
    assert [each.update.settings.cpus for each in found.changes(before="db/main")] == ["5-7,9-15"]
    assert flushed(found) == {"web/main": "5-7,9-15"}
    found.ended("db/main")
    assert flushed(found) == {}
    found.pod_stopped(db.id)
    assert flushed(found) == {"web/main": "1-7,9-15"}


def test_an_aligned_container_without_cpus_of_its_own_runs_in_the_pools_of_its_zones() -> None:
    found = state()
    create(found, sandbox("db", own("main", "9-10", (1,))), "main")
    assert create(found, sandbox("app", own("main", "", (1,), mems="1")), "main") == CPUSettings("11-15", "1")


def test_where_a_pool_is_empty_containers_run_on_the_reserved_cpus_and_without_any_on_all() -> None:
    found = state()
    create(found, sandbox("db", own("main", "1-7,9-15")), "main")
    assert create(found, sandbox("web"), "main").cpus == "0,8"
    found.configure(NodeCPUs(TWO_ZONES.zones), {})
    create(found, sandbox("more", own("main", "0,8")), "main")
    assert flushed(found)["web/main"] == "0-15"


def test_a_container_that_the_decision_does_not_name_runs_in_the_pool_of_the_node() -> None:
    found, pod = state(), sandbox("db", own("main", "1-4", (0,)))
    assert create(found, pod, "istio-proxy").cpus == "5-7,9-15"


@pytest.mark.parametrize("uid, node", [("other", NODE), ("uid-db", "node-9")])
def test_a_decision_about_another_pod_or_node_has_no_effect(uid: str, node: str) -> None:
    from tests.unit.agent.enforce.nodes import decision

    copied = {"numalign.io/resource-status": decision(uid, own("main", "1-4"), node=node)}
    pod = Sandbox(id="box-db", uid="uid-db", namespace="default", name="db", annotations=copied)
    assert create(state(), pod, "main").cpus == "1-7,9-15"


def test_a_decision_that_cannot_be_read_is_reported_and_costs_no_other_pod() -> None:
    found = state()
    odd = Sandbox(id="1", uid="u", namespace="default", name="odd", annotations={"numalign.io/resource-status": "{"})
    assert create(found, odd, "main").cpus == "1-7,9-15"
    ((pod, container, why),) = found.failures
    assert (pod.name, container) == ("odd", "")
    assert "not a result of this version" in why
    assert create(found, sandbox("db", own("main", "1-4")), "main").cpus == "1-4"


def test_a_contradiction_makes_a_container_wait_for_a_while_and_then_run_in_the_shared_pool() -> None:
    found = state(patience=60.0)
    create(found, sandbox("first", own("main", "1-4", (0,))), "main")
    second = sandbox("second", own("main", "4-5", (0,)))
    why = "container main of pod default/first runs on CPUs 4"
    assert found.create(second, made(second, "main"), 10.0) == Refusal(why)
    assert found.create(second, made(second, "main"), 69.0) == Refusal(why)
    assert create(found, second, "main", 70.0) == CPUSettings("6-7")
    assert next(each for each in found.applied if each.uid == "uid-second").failure == why


def test_a_decision_is_applied_as_soon_as_nothing_contradicts_it_any_more() -> None:
    found, first = state(), sandbox("first", own("main", "1-4", (0,)))
    create(found, first, "main")
    create(found, sandbox("second", own("main", "4-5", (0,))), "main")
    found.ended("first/main")
    assert flushed(found)["second/main"] == "4-5"
    assert not list(found.failures)


@pytest.mark.parametrize(
    "cpus, kubelet, why",
    [
        ("0-3", {}, "CPUs 0 may not be handed out on this node"),
        ("14-17", {}, "CPUs 16-17 may not be handed out on this node"),
        ("1-4", {("static", "main"): "4-5"}, "the kubelet has given CPUs 4 to another container"),
        ("1-4", {("uid-db", "main"): "1-4"}, "the kubelet has given this container CPUs"),
    ],
)
def test_reserved_foreign_and_kubelet_cpus_are_refused(
    cpus: str, kubelet: dict[tuple[str, str], str], why: str
) -> None:
    found = state()
    found.configure(TWO_ZONES, {key: cpuset.parse(text) for key, text in kubelet.items()})
    pod = sandbox("db", own("main", cpus))
    found.create(pod, made(pod, "main"), 0.0)
    assert [each[2] for each in found.failures] == [why]


def test_a_container_that_the_kubelet_pinned_is_never_touched() -> None:
    found, pod = state(), sandbox("static")
    found.configure(TWO_ZONES, {("uid-static", "main"): cpuset.parse("2-3")})
    assert found.create(pod, made(pod, "main"), 0.0) is None
    assert create(found, sandbox("web"), "main").cpus == "1,4-7,9-15"
    assert flushed(found) == {}


def test_nothing_is_touched_while_the_kubelets_managers_are_on() -> None:
    found = state()
    create(found, sandbox("web"), "main")
    found.configure(TWO_ZONES, {}, barred="the kubelet's CPU manager has policy static")
    pod = sandbox("db", own("main", "1-4"))
    assert found.create(pod, made(pod, "main"), 0.0) is None
    assert flushed(found) == {}
    assert [each[2] for each in found.failures] == ["the kubelet's CPU manager has policy static"]


def test_an_app_container_gets_the_cpus_of_its_init_container_though_its_end_was_not_reported_yet() -> None:
    found, pod = state(patience=60.0), sandbox("db", own("init", "1-7", (0,)), own("main", "1-6", (0,)))
    create(found, pod, "init")
    assert create(found, pod, "main").cpus == "1-6"
    found.ended("db/init")
    assert [each.id for each in found.containers.values()] == ["db/main"]


def test_a_restarted_container_gets_its_cpus_though_the_end_of_its_last_run_was_not_reported_yet() -> None:
    found, pod = state(patience=60.0), sandbox("db", own("main", "1-6", (0,)))
    create(found, pod, "main")
    again = RuntimeContainer(id="db/main-2", sandbox=pod.id, name="main")
    assert found.create(pod, again, 1.0) == CPUSettings("1-6", unlimited=True)


def test_after_a_restart_containers_keep_what_they_have_and_the_others_are_mended() -> None:
    first, second = sandbox("first", own("main", "1-4", (0,))), sandbox("second", own("main", "9-12", (1,)))
    web = sandbox("web")
    running = {"state": messages.RUNNING, "pid": 9}
    found = state()
    found.synchronize(
        [first, second, web],
        [
            made(first, "main", cpus="1-4", quota=-1, **running),
            made(second, "main", cpus="", **running),
            made(web, "main", cpus="1-15", **running),
            RuntimeContainer(id="lost", sandbox="gone", name="main"),
        ],
    )
    assert list(flushed(found).items()) == [("web/main", "5-7,13-15"), ("second/main", "9-12")]
    assert {each.uid: cpuset.text(each.cpus) for each in found.applied} == {"uid-first": "1-4", "uid-second": "9-12"}


def test_a_change_that_fails_is_acknowledged_as_failed_and_tried_again() -> None:
    found, pod = state(), sandbox("db", own("main", "1-4", (0,)))
    found.synchronize([pod], [made(pod, "main", state=messages.RUNNING)])
    (change,) = found.changes()
    found.rejected(change, "no such cgroup")
    assert [each.failure for each in found.applied] == ["no such cgroup"]
    assert flushed(found) == {"db/main": "1-4"}
    assert [each.failure for each in found.applied] == [""]


def test_a_change_that_was_overtaken_by_a_later_one_is_sent_again() -> None:
    found, web = state(), sandbox("web")
    create(found, web, "main")
    found.pod_started(sandbox("first", own("main", "1-2")))
    (early,) = found.changes()
    found.pod_started(sandbox("second", own("main", "3-4")))
    (late,) = found.changes()
    found.accepted(late)
    found.accepted(early)
    assert flushed(found) == {"web/main": "5-7,9-15"}


def test_a_change_that_was_sent_while_the_container_was_being_created_is_sent_again() -> None:
    found, web = state(), sandbox("web")
    found.create(web, made(web, "main"), 0.0)
    found.pod_started(sandbox("db", own("main", "1-2")))
    assert flushed(found) == {"web/main": "3-7,9-15"}
    found.started("web/main", 5)
    assert flushed(found) == {"web/main": "3-7,9-15"}


def test_what_the_kernel_reports_is_acknowledged_and_drift_is_mended_and_reported_if_it_stays() -> None:
    found, pod = state(), sandbox("db", own("main", "1-4", (0,), mems="0"))
    create(found, pod, "main")
    found.see("db/main", cpuset.parse("1-4"), 1)
    assert list(found.applied) == [AppliedContainer(uid="uid-db", container="main", cpus=0b11110, mems=1)]
    for _ in range(STRAYS):
        found.see("db/main", cpuset.parse("0-15"), 3)
        assert flushed(found) == {"db/main": "1-4"}
    assert [each.failure for each in found.applied] == ["the kernel reports CPUs 0-15 and zones 0-1"]
    found.see("db/main", cpuset.parse("1-4"), 1)
    assert [each.failure for each in found.applied] == [""]


def test_a_process_may_limit_itself_to_a_part_of_its_cpus() -> None:
    found, pod = state(), sandbox("db", own("main", "1-4", (0,)))
    create(found, pod, "main")
    found.see("db/main", cpuset.parse("2"), 3)
    assert flushed(found) == {}
    assert [each.cpus for each in found.applied] == [0b100]


def test_a_resize_by_the_kubelet_keeps_cpus_of_its_own_free_of_quotas() -> None:
    found = state()
    create(found, sandbox("db", own("main", "1-4", (0,))), "main")
    create(found, sandbox("web"), "main")
    assert found.resized("db/main") == CPUSettings("1-4", unlimited=True)
    assert found.resized("web/main") is None


CPUS = st.sets(st.integers(0, 17), min_size=1, max_size=6).map(lambda cpus: cpuset.text(cpuset.of(cpus)))
CONTAINERS = st.builds(
    own,
    name=st.sampled_from("ab"),
    cpus=st.one_of(st.just(""), CPUS),
    zones=st.sampled_from([(), (0,), (1,), (0, 1)]),
    mems=st.sampled_from(["", "0", "1"]),
)
PODS = st.lists(st.lists(CONTAINERS, max_size=2, unique_by=lambda each: each.name), min_size=1, max_size=5)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["create", "end", "stop", "flush", "lose", "configure", "synchronize", "see"]),
        st.integers(0, 4),
        st.sampled_from("ab"),
    ),
    max_size=30,
)


@settings(max_examples=300, deadline=None)
@given(pods=PODS, steps=STEPS)
def test_no_cpu_belongs_to_two_containers_and_pools_and_pins_are_all_there_is(
    pods: list[list[object]], steps: list[tuple[str, int, str]]
) -> None:
    found = state()
    boxes = [sandbox(f"p{number}", *containers) for number, containers in enumerate(pods)]  # type: ignore[arg-type]
    for number, (step, place, name) in enumerate(steps):
        pod = boxes[place % len(boxes)]
        if step == "create":
            found.create(pod, made(pod, name), float(number))
        elif step == "end":
            found.ended(made(pod, name).id)
        elif step == "stop":
            found.pod_stopped(pod.id)
        elif step == "flush":
            flushed(found)
        elif step == "lose":
            for change in found.changes():
                found.rejected(change, "lost")
        elif step == "see":
            found.see(made(pod, name).id, place, 1)
        elif step == "configure":
            found.configure(TWO_ZONES, {("uid-p0", "a"): 0b110} if place == 0 else {})
        else:
            seen = [_of(each) for each in found.containers.values()]
            found.synchronize([each for each in boxes if each.id in {one.sandbox for one in seen}], seen)
        check(found)
    flushed(found)
    check(found)
    assert not found.changes()


def _of(each: object) -> RuntimeContainer:
    from numalign.agent.enforce.state import HostContainer

    assert isinstance(each, HostContainer)
    cpus = each.has.cpus if each.has is not None else ""
    return RuntimeContainer(id=each.id, sandbox=each.pod.sandbox.id, name=each.name, cpus=cpus)


def check(found: NodeState) -> None:
    holders = [each for each in found.containers.values() if each.holds]
    assert disjoint(each.wants for each in holders)
    allocatable = found.cpus.allocatable
    pins = found.taken & allocatable
    pool = found.cpus.pool((), found.taken)
    if pins != allocatable:
        assert pool | pins == allocatable
        assert not pool & pins
    zones = [found.cpus.pool((zone,), found.taken) for zone in found.cpus.zones]
    if all(cpus & ~found.taken & allocatable for cpus in found.cpus.zones.values()):
        assert zones[0] | zones[1] == pool
    for each in found.containers.values():
        assert each.holds or each.failure or not each.wants
        assert not each.holds or not each.wants & ~allocatable


def disjoint(cpus: Iterable[int]) -> bool:
    every = 0
    for each in cpus:
        if every & each:
            return False
        every |= each
    return True


def test_a_pod_is_gone_with_its_last_container_although_the_runtime_does_not_say_so() -> None:
    """containerd, of pods that were there before it restarted."""
    found = state()
    pod, web = sandbox("db", own("main", "1-4", (0,))), sandbox("web")
    crashed = made(pod, "main", state=messages.STOPPED)
    again = messages.RuntimeContainer(id="db/main-2", sandbox=pod.id, name="main", state=messages.RUNNING, cpus="1-4")
    found.synchronize([pod, web], [crashed, again, made(web, "main", state=messages.RUNNING)])
    assert cpuset.text(found.taken) == "1-4"
    found.removed(crashed.id)
    assert cpuset.text(found.taken) == "1-4"
    found.ended(again.id)
    # It may start again.
    assert cpuset.text(found.taken) == "1-4"
    found.removed(again.id)
    assert found.taken == 0
    assert [each.update.settings.cpus for each in found.changes()] == ["1-7,9-15"]
