from hypothesis import given
from hypothesis import strategies as st

from numalign.simulator.controllers.cluster import garbage
from numalign.simulator.controllers.framework.actions import Action, Delete, MergePatch
from tests.unit.simulator.controllers.trees import NOW, pod


def removed(actions: list[Action]) -> list[str]:
    return [each.target["metadata"]["name"] for each in actions if isinstance(each, Delete)]


def test_the_oldest_finished_pods_above_the_threshold_go() -> None:
    every = [pod("new", "Failed", age=1), pod("old", "Failed", age=9), pod("mid", "Succeeded", age=5), pod("on")]
    assert removed(garbage.collect_pods(every, set(), 1, NOW)) == ["old", "mid"]


def test_evicted_pods_go_first() -> None:
    evicted = pod("evicted", "Failed", age=1)
    evicted["status"]["reason"] = "Evicted"
    assert removed(garbage.collect_pods([pod("old", "Failed", age=9), evicted], set(), 1, NOW)) == ["evicted"]


def test_pods_of_a_node_that_is_gone_fail_and_go() -> None:
    failed, removal = garbage.collect_pods([pod("a", node="gone"), pod("b", node="here")], {"gone"}, 100, NOW)
    assert isinstance(failed, MergePatch)
    assert failed.body["status"]["phase"] == "Failed"
    assert failed.body["status"]["conditions"][-1]["reason"] == "DeletionByPodGC"
    assert removed([removal]) == ["a"]


def test_a_deleted_pod_that_never_ran_goes() -> None:
    every = [pod("a", "Pending", deleting=True), pod("b", "Pending"), pod("c", deleting=True, node="n")]
    assert removed(garbage.collect_pods(every, set(), 100, NOW)) == ["a"]


@given(st.lists(st.sampled_from(["Running", "Failed", "Succeeded"]), max_size=30), st.integers(1, 20))
def test_just_as_many_finished_pods_stay_as_allowed(phases: list[str], threshold: int) -> None:
    every = [pod(str(number), phase, node="n") for number, phase in enumerate(phases)]
    finished = len(phases) - phases.count("Running")
    assert len(removed(garbage.collect_pods(every, set(), threshold, NOW))) == max(0, finished - threshold)
