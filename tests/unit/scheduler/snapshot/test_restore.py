"""A scheduler's cluster from a snapshot: what follows from objects, and the state that only the scheduler has."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from numalign.api.attributes import heldrooms
from numalign.api.attributes.heldrooms import HeldRoom
from numalign.api.decode import decode
from numalign.api.objects.node import Node, NodeCondition
from numalign.api.objects.pod import Pod
from numalign.api.objects.volumes import StorageClass
from numalign.api.objects.workloads import Namespace
from numalign.placement.explain import nodeview
from numalign.scheduler.choose.choose import Chosen
from numalign.scheduler.snapshot import restore
from numalign.scheduler.snapshot.snapshot import AssumedPod, KeptOff, NominatedPod, SchedulerState, Snapshot
from tests.unit.scheduler import servers, waitingpods
from tests.unit.scheduler.servers import trainer


def of(*pods: Pod, state: SchedulerState | None = None, nodes: str = "ab", **objects: Any) -> Snapshot:
    there = {
        "nodes": tuple(map(servers.node, nodes)),
        "noderesourcetopologies": tuple(map(servers.reported, nodes)),
        "pods": pods,
    }
    return Snapshot(objects=there | objects, state=state, now=100.0)


def test_objects_alone_are_enough() -> None:
    made = restore.restored(of(servers.on(trainer("p", gpus=4), "a"), trainer("q")))
    assert (made.cluster.nodes, made.cluster.pods, sorted(made.pods)) == (2, 1, ["default/p", "default/q"])
    seen = nodeview.of(made.engine, "a")
    assert seen is not None
    assert [tenant.name for tenant in seen.tenants] == ["default/p"]
    assert list(made.profiles) == ["numalign"]


def test_what_is_not_about_nodes_and_pods_comes_along() -> None:
    labelled = decode.decode(Namespace, {"metadata": {"name": "n", "labels": {"team": "x"}}})
    kept = decode.decode(StorageClass, {"metadata": {"name": "fast"}})
    made = restore.restored(of(namespaces=(labelled,), storageclasses=(kept,)))
    assert made.stock.namespaces.labels("n") == {"team": "x"}
    assert made.stock.volumes.classes.get("fast") is kept


def test_rows_are_in_the_order_that_the_scheduler_had() -> None:
    made = restore.restored(of(state=SchedulerState(rows=("b", "a"))))
    assert [made.world.names[row] for row in range(2)] == ["b", "a"]


def test_a_new_node_gets_the_vacant_row_that_it_got_from_the_scheduler() -> None:
    made = restore.restored(of(state=SchedulerState(rows=("", "b", "", "a"), vacant_rows=(2, 0))))
    assert dict(made.engine.rows) == {"b": 1, "a": 3}
    made.cluster.node(servers.node("c"))
    assert (made.engine.row("c"), made.cluster.nodes) == (0, 3)


def test_pods_do_not_say_of_a_node_that_it_had_a_report_if_the_scheduler_knew_better() -> None:
    annotated = trainer("p")
    meta = structs.replace(annotated.metadata, annotations={"numalign.io/placement": "v1;main=0"})
    bare = of(servers.on(structs.replace(annotated, metadata=meta), "a"))
    for known in ((), ("a",)):
        made = restore.restored(structs.replace(bare, state=SchedulerState(once_reported=known)))
        assert made.cluster.once_reported == frozenset(known)


def test_a_deleted_report_is_in_force_as_it_was_for_the_scheduler() -> None:
    bare = of(servers.on(trainer("p", gpus=4), "a"), state=SchedulerState(deleted_reports=(servers.reported("a"),)))
    made = restore.restored(structs.replace(bare, objects={**bare.objects, "noderesourcetopologies": ()}))
    assert [made.engine.lacks_report(name) for name in "ab"] == [False, True]
    assert [each.metadata.name for each in made.cluster.deleted_reports] == ["a"]


def ready(name: str, since: str) -> Node:
    node = servers.node(name)
    condition = NodeCondition(type="Ready", status="True", last_transition_time=since)
    return structs.replace(node, status=structs.replace(node.status, conditions=(condition,)))


def test_without_a_scheduler_nodes_say_themselves_since_when_they_are_ready() -> None:
    old, new = ready("a", "2026-01-01T00:00:30Z"), ready("b", "2026-01-01T00:01:30Z")
    objects = {"nodes": (old, new, servers.node("c"))}
    made = restore.restored(Snapshot(objects=objects, now=100.0, wall="2026-01-01T00:02:00Z"))
    assert [made.world.unreported.since(made.world.rows[name]) for name in "ab"] == [10.0, 70.0]
    assert made.world.unreported.waiting(60.0) == [made.world.rows["b"]]


def test_the_scheduler_knows_since_when_nodes_are_ready() -> None:
    made = restore.restored(of(state=SchedulerState(ready_since={"a": 20.0}), noderesourcetopologies=()))
    assert [made.world.unreported.since(made.world.rows[name]) for name in "ab"] == [20.0, 100.0]


def test_assumed_pods_count_where_they_are_going() -> None:
    made = restore.restored(of(trainer("p"), state=SchedulerState(assumed=(AssumedPod("uid-p", "b", is_bound=True),))))
    assert [pod.metadata.name for pod in made.cluster.pods_on("b")] == ["p"]
    assert made.cluster.assumed["uid-p"].is_bound


def test_nominations_are_remembered_with_whom_they_wait_for() -> None:
    result = servers.on(trainer("said"), "", nominated_node_name="a")
    state = SchedulerState(nominated=(NominatedPod("uid-p", "b", ("uid-v",)), NominatedPod("uid-gone", "a")))
    made = restore.restored(of(result, trainer("p"), state=state))
    assert (made.nominations.node_of("uid-said"), made.nominations.node_of("uid-p")) == ("a", "b")
    assert (made.nominations.leaving("b"), made.nominations.node_of("uid-gone")) == (("uid-v",), "")


def test_whom_the_storm_guard_keeps_off_stays_off() -> None:
    kept = KeptOff(trainer("like"), "a", until=200.0, last=90.0)
    owners = KeptOff(trainer("like"), "b", until=200.0, last=90.0, owner="uid-set")
    made = restore.restored(of(trainer("p"), state=SchedulerState(kept_off=(kept, owners))))
    shape = made.engine.shape(trainer("p")).number
    pods = (trainer("p"), servers.owned(trainer("p"), "uid-set"))
    rows = [made.rejections.kept_off(pod, shape, made.world.rows, 100.0) for pod in pods]
    assert [sorted(made.world.names[row] for row in each) for each in rows] == [["a"], ["a", "b"]]


def test_pods_that_are_to_count_nowhere_do_not() -> None:
    pods = (servers.on(trainer("p", gpus=8), "a"), servers.on(trainer("q", gpus=8), "b"))
    made = restore.restored(of(*pods), without=frozenset({"uid-p"}))
    assert (made.cluster.pods_on("a"), len(made.cluster.pods_on("b"))) == ((), 1)
    asked = servers.Servers()
    asked.cluster, asked.profile = made.cluster, made.profiles["numalign"]
    found = asked.choose(trainer("p", gpus=4))
    assert isinstance(found, Chosen)
    assert found.decision.node == "a"


def test_an_object_that_nothing_can_be_made_of_is_left_out_and_said() -> None:
    odd = structs.replace(servers.reported("a"), metadata=structs.replace(servers.reported("a").metadata, name=""))
    made = restore.restored(of(waitingpods.pod("p"), noderesourcetopologies=(odd, servers.reported("b"))))
    assert nodeview.of(made.engine, "b") is not None
    assert len(made.problems) <= 1


def test_rooms_that_nodes_hold_are_kept_free_as_by_the_scheduler_itself() -> None:
    room = HeldRoom(uid="old", until="2026-01-01T00:10:00Z", pod=trainer("held"))
    node = servers.node("a")
    annotations = {heldrooms.NAME: heldrooms.written([room]) or ""}
    node = structs.replace(node, metadata=structs.replace(node.metadata, annotations=annotations))
    for wall, held in (("2026-01-01T00:00:00Z", 1), ("2026-01-01T00:20:00Z", 0)):
        made = restore.restored(Snapshot(objects={"nodes": (node,)}, wall=wall))
        assert len(made.nominations.above("a", trainer("other"))) == held
    stood_in = NominatedPod("old/held-room", "a", pod=trainer("held"))
    made = restore.restored(Snapshot(objects={"nodes": (node,)}, state=SchedulerState(nominated=(stood_in,))))
    assert made.nominations.nodes() == ("a",), "a dump has it with its pod, and its Nodes are not read again"
