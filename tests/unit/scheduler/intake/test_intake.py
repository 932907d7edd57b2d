"""Watch events become facts, events and queued pods; objects that cannot be read are counted."""

from __future__ import annotations

from typing import Any, cast

import pytest
from msgspec import structs

from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import Pod
from numalign.api.objects.workloads import Namespace
from numalign.kube.watch.store import Change
from numalign.scheduler import placementannotation
from numalign.scheduler.choose.stormguard import MEMORY, StormGuard
from numalign.scheduler.events.publish import Publisher
from numalign.scheduler.intake.intake import Intake
from numalign.scheduler.metrics import Metrics
from numalign.scheduler.profiles import Profile
from tests.unit.scheduler import servers, waitingpods
from tests.unit.scheduler.servers import Servers, trainer

SAME_OWNER = "node(s) keep turning away replicas of the same owner (TopologyAffinityError)"


class RecordingPublisher:
    """In a publisher's place."""

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.deleted: list[str] = []

    def warned(self, pod: object, reason: str, action: str, note: str) -> None:
        self.warnings.append(f"{reason}: {note}")

    def cleared(self, pod: ObjectMeta) -> None:
        self.deleted.append(pod.name)

    def forget(self, uid: str) -> None:
        pass


class Taken:
    def __init__(self, *nodes: str, clears: bool = False, answers: bool = False) -> None:
        self.cluster, self.queue = Servers(*nodes).cluster, waitingpods.queue()
        self.published, self.guard, self.counts, self.woken = RecordingPublisher(), StormGuard(), Metrics(), 0
        self.now_ = 0.0
        self.intake = Intake(
            self.cluster,
            self.queue,
            {"numalign": Profile(), "totals": Profile(name="totals", zones=False)},
            publisher=cast(Publisher, self.published),
            rejections=self.guard,
            counts=self.counts,
            clock=cast(Any, self),
            wake=self._wake,
            clears_rejected=clears,
            answers=answers,
        )

    def now(self) -> float:
        return self.now_

    def _wake(self) -> None:
        self.woken += 1

    def pod(self, old: Any, new: Any, final: Any = None) -> None:
        self.intake.guarded("pods", self.intake.pod)(Change(old, new, final))

    def reject(self, pod: Pod) -> None:
        """It is bound to node a, which does not take it."""
        bound = servers.on(pod, "a")
        self.pod(None, bound)
        self.pod(bound, servers.on(pod, "a", phase="Failed", reason="TopologyAffinityError"))

    def kept_off(self, pod: Pod) -> list[str]:
        """Why, by node."""
        shape = self.cluster.engine.shape(pod).number
        return list(self.guard.kept_off(pod, shape, self.cluster.world.rows, self.now_).values())

    @property
    def waiting(self) -> list[str]:
        return [name for pods in waitingpods.names(self.queue).values() for name in pods]


def test_a_pod_of_ours_without_a_node_is_queued_and_wakes_the_cycle() -> None:
    taken = Taken("a")
    taken.pod(None, trainer("p"))
    assert (taken.waiting, taken.woken) == (["p"], 1)


def test_a_pod_of_another_scheduler_waits_for_that_one() -> None:
    taken = Taken("a")
    taken.pod(None, waitingpods.pod("p", {"schedulerName": "other"}))
    assert taken.waiting == []


@pytest.mark.parametrize("scheduler", ["numalign", "other"])
def test_a_pod_with_a_node_counts_there_no_matter_which_scheduler_bound_it(scheduler: str) -> None:
    taken = Taken("a")
    taken.pod(None, servers.on(trainer("p", schedulerName=scheduler), "a"))
    assert [pod.metadata.name for pod in taken.cluster.pods_on("a")] == ["p"]


def test_a_pod_that_another_scheduler_binds_leaves_the_queue() -> None:
    taken = Taken("a")
    taken.pod(None, trainer("p"))
    taken.pod(trainer("p"), servers.on(trainer("p"), "a"))
    assert taken.waiting == []


def test_a_pod_that_is_bound_and_not_seen_so_is_not_tried_again() -> None:
    taken = Taken("a")
    pod = trainer("p")
    taken.pod(None, pod)
    taken.queue.pop(0.0)
    shape = taken.cluster.engine.shape(pod)
    decision = taken.cluster.engine.place(pod, shape, taken.cluster.world.rows["a"], 0.0)
    assert decision is not None
    taken.cluster.assume(pod, decision)
    taken.queue.done(pod.metadata.uid, bound=True)
    taken.pod(pod, trainer("p", terminationGracePeriodSeconds=5))
    assert taken.waiting == []


def test_a_deleted_pod_is_nowhere_any_more() -> None:
    taken = Taken("a")
    taken.pod(None, trainer("p"))
    taken.pod(trainer("p"), None)
    taken.pod(None, servers.on(trainer("q"), "a"))
    taken.pod(servers.on(trainer("q"), "a"), None)
    assert taken.waiting == []
    assert taken.cluster.pods_on("a") == ()


def test_a_rejected_pod_keeps_its_like_off_the_node_and_is_reported() -> None:
    taken = Taken("a")
    pod = servers.on(trainer("p"), "a")
    taken.pod(None, pod)
    taken.pod(pod, servers.on(pod, "a", phase="Failed", reason="TopologyAffinityError"))
    assert taken.kept_off(pod) == ["node(s) turned away pods like this one (TopologyAffinityError)"]
    assert taken.published.warnings[0].startswith("PodRejected: node a rejected the pod (TopologyAffinityError)")
    assert taken.counts.rejections.values == {("TopologyAffinityError", "numalign"): 1.0}


@pytest.mark.parametrize("clears, deleted", [(False, []), (True, ["p"])])
def test_a_rejected_pod_is_deleted_only_where_people_want_that(clears: bool, deleted: list[str]) -> None:
    taken = Taken("a", clears=clears)
    pod = servers.on(trainer("p"), "a")
    taken.pod(None, pod)
    taken.pod(pod, servers.on(pod, "a", phase="Failed", reason="TopologyAffinityError"))
    assert taken.published.deleted == deleted


def test_a_rejected_pod_that_our_extender_bound_keeps_its_like_off_the_node() -> None:
    taken = Taken("a", answers=True)
    pod = trainer("p", schedulerName="default-scheduler")
    taken.reject(
        structs.replace(pod, metadata=structs.replace(pod.metadata, annotations={placementannotation.NAME: ""}))
    )
    assert taken.kept_off(pod) == ["node(s) turned away pods like this one (TopologyAffinityError)"]
    assert taken.counts.rejections.values == {("TopologyAffinityError", "numalign"): 1.0}
    assert taken.published.warnings == [], "kube-scheduler writes the Events of its pods"


def test_a_profile_that_does_not_look_at_zones_has_no_storm_guard() -> None:
    taken = Taken("a", clears=True)
    pod = servers.on(trainer("p", schedulerName="totals"), "a")
    taken.pod(None, pod)
    taken.pod(pod, servers.on(pod, "a", phase="Failed", reason="TopologyAffinityError"))
    assert (taken.kept_off(pod), taken.published.warnings, taken.published.deleted) == ([], [], ["p"])
    assert taken.counts.rejections.values == {("TopologyAffinityError", "numalign"): 1.0}


def test_its_own_end_does_not_bring_its_like_back() -> None:
    taken = Taken("a")
    pod = servers.on(trainer("p"), "a")
    taken.pod(None, pod)
    taken.pod(pod, servers.on(pod, "a", phase="Failed", reason="TopologyAffinityError"))
    taken.now_ = 5.0
    assert taken.kept_off(pod)
    taken.intake.topology(Change(None, servers.reported("a")))
    assert not taken.kept_off(pod)


def test_nor_does_the_end_of_another_that_was_turned_away() -> None:
    taken = Taken("a")
    taken.reject(trainer("p"))
    taken.reject(trainer("other", gpus=2))
    taken.now_ = 5.0
    assert taken.kept_off(trainer("p"))


def test_nor_does_the_end_of_anothers_pause() -> None:
    taken = Taken("a")
    taken.reject(trainer("other", gpus=2))
    taken.intake.topology(Change(None, servers.reported("a")))
    taken.reject(trainer("p"))
    for taken.now_ in (2.0, 5.0):
        taken.intake.tick()
    assert not taken.kept_off(trainer("other", gpus=2))
    assert taken.kept_off(trainer("p"))


def test_nor_does_it_that_the_rejected_pod_is_cleared_away() -> None:
    taken = Taken("a")
    taken.reject(trainer("p"))
    taken.pod(servers.on(trainer("p"), "a", phase="Failed", reason="TopologyAffinityError"), None)
    taken.now_ = 5.0
    assert taken.kept_off(trainer("p"))


@pytest.mark.parametrize("scheduler", ["default-scheduler", "", "by-hand"])
def test_pods_of_ours_stay_away_where_replicas_of_their_owner_keep_being_rejected(scheduler: str) -> None:
    taken = Taken("a")
    ours = servers.owned(trainer("p"), "uid-set")
    for number, kept_off in enumerate(([], [SAME_OWNER])):
        taken.reject(servers.owned(trainer(f"theirs-{number}", schedulerName=scheduler), "uid-set"))
        assert taken.kept_off(ours) == kept_off
    assert taken.kept_off(trainer("p")) == []
    assert taken.counts.rejections.values == {("TopologyAffinityError", "others"): 2.0}
    assert taken.published.warnings == []


def test_they_come_back_when_the_node_has_changed() -> None:
    taken = Taken("a")
    for number in range(2):
        taken.reject(servers.owned(trainer(f"theirs-{number}", schedulerName="other"), "uid-set"))
    taken.now_ = 5.0
    taken.intake.topology(Change(None, servers.reported("a")))
    assert taken.kept_off(servers.owned(trainer("p"), "uid-set")) == []


def test_a_pod_that_no_controller_replaces_is_no_storm() -> None:
    taken = Taken("a")
    for number in range(3):
        taken.reject(trainer(f"p{number}", schedulerName="other"))
    assert len(taken.guard) == 0


def test_a_runaway_replica_set_leaves_little_behind() -> None:
    taken = Taken("a")
    for number in range(2000):
        taken.now_ = float(number)
        pod = servers.owned(trainer(f"p{number}", schedulerName="other"), "uid-set")
        taken.reject(pod)
        taken.pod(servers.on(pod, "a", phase="Failed"), None)
    assert (len(taken.guard), taken.cluster.pods, len(taken.cluster.engine.shapes.all)) == (1, 0, 1)
    taken.now_ += MEMORY
    taken.intake.tick()
    assert len(taken.guard) == 0


def test_rejections_from_before_we_looked_count_for_nothing() -> None:
    taken = Taken("a")
    taken.pod(None, servers.on(trainer("p"), "a", phase="Failed", reason="TopologyAffinityError"))
    assert len(taken.guard) == 0


def test_an_unreadable_object_is_counted_and_stalls_nothing() -> None:
    taken = Taken("a")
    taken.pod(None, Namespace(metadata=ObjectMeta(name="odd")))
    taken.pod(None, trainer("p"))
    assert taken.waiting == ["p"]
    assert taken.counts.skipped.values == {("pods",): 1.0}


def test_a_freed_zone_wakes_the_pods_that_it_blocked() -> None:
    taken = Taken("a")
    pod = servers.on(trainer("p", gpus=4), "a")
    taken.pod(None, pod)
    taken.pod(None, trainer("q"))
    waitingpods.tried(taken.queue, waitingpods.refused("NodeResourceTopologyMatch", zones_of={"a"}), 0.0)
    assert waitingpods.names(taken.queue) == {"unschedulable": ["q"]}
    taken.pod(pod, servers.on(pod, "a", phase="Succeeded"))
    assert waitingpods.names(taken.queue) == {"backoff": ["q"]}
