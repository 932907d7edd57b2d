import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.simulator.controllers.framework.actions import Action, Create, Delete, MergePatch, Update
from numalign.simulator.controllers.workloads import jobs
from numalign.simulator.trees import Tree
from tests.unit.simulator.controllers.trees import NOW, owner, pod

TRACKED = [jobs.TRACKING]


def job(status: Tree | None = None, **spec: object) -> Tree:
    template = {"metadata": {}, "spec": {"containers": [{"name": "app"}], "restartPolicy": "Never"}}
    return owner("work", status, **{"template": template, "completions": 1, "parallelism": 1, **spec})


def status(actions: list[Action]) -> Tree:
    [update] = [action for action in actions if isinstance(action, Update)]
    found: Tree = update.tree["status"]
    return found


def created(actions: list[Action]) -> int:
    return sum(isinstance(action, Create) for action in actions)


WANTED = {
    "one at a time": ({"completions": 5, "parallelism": 2}, [], 2),
    "no more than are missing": ({"completions": 5, "parallelism": 9}, [], 5),
    "as much as runs is enough": ({"completions": 5, "parallelism": 1}, [pod("a")], 0),
    "a queue of work": ({"completions": None, "parallelism": 3}, [pod("a")], 2),
    "a queue of work that is done": (
        {"completions": None, "parallelism": 3},
        [pod("a", "Succeeded", finalizers=TRACKED)],
        0,
    ),
    "suspended": ({"suspend": True}, [], 0),
}


@pytest.mark.parametrize("spec, owned, count", WANTED.values(), ids=WANTED)
def test_how_many_pods_a_job_starts(spec: Tree, owned: list[Tree], count: int) -> None:
    assert created(jobs.reconcile(job(**spec), owned, NOW)) == count


def test_a_finished_pod_is_counted_once_and_released() -> None:
    done = pod("a", "Succeeded", finalizers=TRACKED)
    actions = jobs.reconcile(job(completions=2), [done], NOW)
    [released] = [action for action in actions if isinstance(action, MergePatch)]
    assert status(actions)["succeeded"] == 1
    assert released.body["metadata"]["finalizers"] is None
    counted = jobs.reconcile(job(status(actions), completions=2), [pod("a", "Succeeded")], NOW)
    assert not any(isinstance(action, Update | MergePatch) and action.part == "" for action in counted)


BACKOFF = {"none": (0, 0.0, 0.0), "first": (1, 0.0, 10.0), "third": (3, 5.0, 35.0), "most": (99, 0.0, 600.0)}


@pytest.mark.parametrize("failures, since, left", BACKOFF.values(), ids=BACKOFF)
def test_backoff(failures: int, since: float, left: float) -> None:
    assert jobs.backoff(failures, since) == left


def test_containers_that_restart_in_place_count_against_the_limit() -> None:
    template = {"metadata": {}, "spec": {"containers": [], "restartPolicy": "OnFailure"}}
    actions = jobs.reconcile(job(template=template, backoffLimit=3), [pod("a", restarts=3)], NOW)
    assert status(actions)["conditions"][-1]["reason"] == "BackoffLimitExceeded"
    assert any(isinstance(action, Delete) for action in actions)


def test_a_finished_job_does_nothing_more() -> None:
    complete = {"conditions": [{"type": "Complete", "status": "True"}]}
    assert jobs.reconcile(job(complete, completions=5), [], NOW) == []


INDEXES = {"": [], "0": [0], "0,1": [0, 1], "0-2": [0, 1, 2], "1,3-5,7,8": [1, 3, 4, 5, 7, 8]}


@pytest.mark.parametrize("text, indexes", INDEXES.items())
def test_completed_indexes_as_text(text: str, indexes: list[int]) -> None:
    assert jobs.written(indexes) == text


@given(st.sets(st.integers(0, 200)))
def test_completed_indexes_are_read_back(indexes: set[int]) -> None:
    assert jobs.read(jobs.written(indexes)) == indexes


@given(st.integers(0, 8), st.integers(0, 8), st.lists(st.sampled_from(["Running", "Failed", "Succeeded"]), max_size=8))
def test_no_job_ever_runs_more_than_allowed(completions: int, parallelism: int, phases: list[str]) -> None:
    owned = [pod(f"p{number}", phase, finalizers=TRACKED) for number, phase in enumerate(phases)]
    spec = job(completions=completions, parallelism=parallelism, backoffLimit=100)
    actions = jobs.reconcile(spec, owned, NOW)
    removed = sum(isinstance(action, Delete) for action in actions)
    running = phases.count("Running") + created(actions) - removed
    assert running <= max(0, min(parallelism, completions - phases.count("Succeeded")))
