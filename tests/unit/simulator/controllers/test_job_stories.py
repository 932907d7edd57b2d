"""Jobs from start to end, in virtual time; the fake kubelet runs a pod, the story says how it ends."""

import asyncio
import itertools

from numalign.simulator.apiserver.storage.resources import JOBS, PODS
from numalign.simulator.controllers.framework import pods
from numalign.simulator.controllers.framework.views import key_of
from numalign.simulator.controllers.workloads import jobs
from numalign.simulator.trees import Tree
from tests.unit.simulator.controllers.stories import Cluster, condition, played, template


def job(**spec: object) -> Tree:
    body = {"template": template(restartPolicy="Never"), "completions": 1, "parallelism": 1, "backoffLimit": 6}
    return {"metadata": {"name": "work"}, "spec": body | spec}


def finish(cluster: Cluster, phase: str = "Succeeded") -> int:
    """All that runs ends now."""
    running = [pod for pod in cluster.pods() if pods.phase(pod) == "Running"]
    for pod in running:
        state = {"terminated": {"finishedAt": cluster.clock.rfc3339()}}
        cluster.report(key_of(pod), {"phase": phase, "containerStatuses": [{"name": "app", "state": state}]})
    return len(running)


def test_a_job_runs_so_many_pods_at_a_time_until_enough_succeeded() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("a")
        cluster.api.create(JOBS, job(completions=5, parallelism=2))
        ended = []
        for _ in range(4):
            await asyncio.sleep(5)
            ended.append(finish(cluster))
        work = cluster.get(JOBS, "work")
        assert ended == [2, 2, 1, 0]
        assert (work["status"]["succeeded"], condition(work, "Complete")) == (5, ("True", "CompletionsReached"))
        assert not any(pod["metadata"].get("finalizers") for pod in cluster.pods())

    played(story)


def test_a_failing_job_backs_off_and_gives_up() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("a")
        cluster.api.create(JOBS, job(backoffLimit=2))
        ends = []
        for second in range(120):
            await asyncio.sleep(1)
            ends += [second] * finish(cluster, "Failed")
        assert [later - earlier for earlier, later in itertools.pairwise(ends)] == [11, 21]
        assert condition(cluster.get(JOBS, "work"), "Failed") == ("True", "BackoffLimitExceeded")
        assert "BackoffLimitExceeded: Job has reached the specified backoff limit" in cluster.events("Job")

    played(story, start_delay=0.1)


def test_a_job_past_its_deadline_loses_its_pods() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("a")
        cluster.api.create(JOBS, job(activeDeadlineSeconds=30))
        await asyncio.sleep(35)
        assert condition(cluster.get(JOBS, "work"), "Failed") == ("True", "DeadlineExceeded")
        assert cluster.pods() == []

    played(story)


def test_a_finished_job_goes_when_its_time_is_over() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("a")
        cluster.api.create(JOBS, job(ttlSecondsAfterFinished=100))
        await asyncio.sleep(5)
        finish(cluster)
        await asyncio.sleep(95)
        assert cluster.exists(JOBS, "work")
        await asyncio.sleep(10)
        assert (cluster.exists(JOBS, "work"), cluster.pods()) == (False, [])

    played(story)


def test_a_suspended_job_has_no_pods_until_it_is_resumed() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("a")
        cluster.api.create(JOBS, job())
        await asyncio.sleep(5)
        cluster.change(JOBS, "work", {"spec": {"suspend": True}})
        await asyncio.sleep(5)
        assert (cluster.pods(), condition(cluster.get(JOBS, "work"), "Suspended")) == ([], ("True", "JobSuspended"))
        cluster.change(JOBS, "work", {"spec": {"suspend": False}})
        await asyncio.sleep(5)
        assert cluster.phases() == {"Running": 1}
        assert [each.split(":")[0] for each in cluster.events("Job")].count("Resumed") == 1

    played(story)


def test_each_index_of_an_indexed_job_succeeds_once() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("a")
        cluster.api.create(JOBS, job(completionMode="Indexed", completions=3, parallelism=2))
        await asyncio.sleep(5)
        assert sorted(map(str, map(jobs.index, cluster.pods()))) == ["0", "1"]
        for _ in range(3):
            finish(cluster)
            await asyncio.sleep(5)
        work = cluster.get(JOBS, "work")
        assert (work["status"]["completedIndexes"], condition(work, "Complete")[0]) == ("0-2", "True")

    played(story)


def test_a_deleted_job_does_not_hold_its_pods_back() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("a")
        cluster.api.create(JOBS, job(parallelism=2, completions=2))
        await asyncio.sleep(5)
        cluster.api.delete(JOBS, "work", "default")
        await asyncio.sleep(10)
        assert len(cluster.views[PODS]) == 0

    played(story)
