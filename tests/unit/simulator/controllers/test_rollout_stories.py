"""Deployments as people see them, in virtual time."""

import asyncio

import pytest

from numalign.simulator.apiserver.storage.resources import DEPLOYMENTS, PODS, REPLICASETS
from numalign.simulator.controllers.workloads import deployments
from numalign.simulator.trees import Tree
from tests.unit.simulator.controllers.stories import Cluster, condition, deployment, played, template


def ready(cluster: Cluster) -> int:
    found: int = cluster.get(DEPLOYMENTS, "web")["status"].get("readyReplicas", 0)
    return found


def test_a_deployment_gets_its_pods_and_says_so() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("a")
        cluster.api.create(DEPLOYMENTS, deployment(3))
        await asyncio.sleep(5)
        web = cluster.get(DEPLOYMENTS, "web")
        assert cluster.phases() == {"Running": 3}
        assert (condition(web, "Available"), condition(web, "Progressing")) == (
            ("True", "MinimumReplicasAvailable"),
            ("True", "NewReplicaSetAvailable"),
        )
        assert web["status"]["observedGeneration"] == web["metadata"]["generation"]

    played(story)


def test_a_new_template_rolls_out_one_pod_at_a_time() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("a")
        cluster.api.create(DEPLOYMENTS, deployment(3))
        await asyncio.sleep(5)
        cluster.change(DEPLOYMENTS, "web", {"spec": {"template": template("app:2")}})
        seen = []
        for _ in range(100):
            await asyncio.sleep(0.1)
            seen.append((len(cluster.pods()), ready(cluster)))
        assert cluster.sizes() == [0, 3]
        assert min(available for _, available in seen) >= 3
        assert {pod["spec"]["containers"][0]["image"] for pod in cluster.pods()} == {"app:2"}

    played(story)


def test_undoing_a_rollout_brings_the_old_replica_set_back_with_a_new_revision() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("a")
        cluster.api.create(DEPLOYMENTS, deployment(2))
        await asyncio.sleep(5)
        for image in ("app:2", "app:1"):
            cluster.change(DEPLOYMENTS, "web", {"spec": {"template": template(image)}})
            await asyncio.sleep(20)
        newest = max(cluster.views[REPLICASETS], key=deployments.revision)
        assert newest["metadata"]["annotations"][deployments.REVISION] == "3"
        assert newest["metadata"]["annotations"][deployments.HISTORY] == "1"
        assert cluster.get(DEPLOYMENTS, "web")["metadata"]["annotations"][deployments.REVISION] == "3"

    played(story)


def test_recreate_waits_until_the_last_old_pod_is_gone() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("a")
        cluster.api.create(DEPLOYMENTS, deployment(2, strategy={"type": "Recreate"}))
        await asyncio.sleep(5)
        cluster.change(DEPLOYMENTS, "web", {"spec": {"template": template("app:2")}})
        images = set()
        for _ in range(50):
            await asyncio.sleep(0.1)
            images.add(frozenset(pod["spec"]["containers"][0]["image"] for pod in cluster.pods()))
        assert images - {frozenset()} == {frozenset({"app:1"}), frozenset({"app:2"})}

    played(story)


def test_a_rollout_that_makes_no_progress_is_reported_and_the_old_pods_stay() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("a")
        cluster.api.create(DEPLOYMENTS, deployment(4, progressDeadlineSeconds=60))
        await asyncio.sleep(5)
        cluster.change(DEPLOYMENTS, "web", {"spec": {"template": template(cpu="100")}})
        await asyncio.sleep(70)
        web = cluster.get(DEPLOYMENTS, "web")
        assert condition(web, "Progressing") == ("False", "ProgressDeadlineExceeded")
        assert web["status"]["availableReplicas"] == 3

    played(story)


def test_a_paused_deployment_scales_but_does_not_roll() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("a")
        cluster.api.create(DEPLOYMENTS, deployment(2))
        await asyncio.sleep(5)
        body: Tree = {"spec": {"paused": True, "replicas": 4, "template": template("app:2")}}
        cluster.change(DEPLOYMENTS, "web", body)
        await asyncio.sleep(5)
        assert condition(cluster.get(DEPLOYMENTS, "web"), "Progressing") == ("Unknown", "DeploymentPaused")
        assert {pod["spec"]["containers"][0]["image"] for pod in cluster.pods()} == {"app:1"}
        assert cluster.phases() == {"Running": 4}
        cluster.change(DEPLOYMENTS, "web", {"spec": {"paused": False}})
        await asyncio.sleep(20)
        assert cluster.sizes() == [0, 4]

    played(story)


@pytest.mark.parametrize("replicas", [0, 1, 7], ids=["to nothing", "down", "up"])
def test_scaling_a_deployment(replicas: int) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("a")
        cluster.api.create(DEPLOYMENTS, deployment(3))
        await asyncio.sleep(5)
        cluster.change(DEPLOYMENTS, "web", {"spec": {"replicas": replicas}})
        await asyncio.sleep(5)
        assert len(cluster.pods()) == ready(cluster) == replicas

    played(story)


def test_old_replica_sets_above_the_history_limit_go() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("a")
        cluster.api.create(DEPLOYMENTS, deployment(1, revisionHistoryLimit=2))
        for version in range(2, 7):
            await asyncio.sleep(10)
            cluster.change(DEPLOYMENTS, "web", {"spec": {"template": template(f"app:{version}")}})
        await asyncio.sleep(10)
        assert sorted(map(deployments.revision, cluster.views[REPLICASETS])) == [4, 5, 6]

    played(story)


def test_a_rejected_pod_is_replaced_again_and_again() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("a", cpu="64")
        cluster.rejects = lambda pod: True
        cluster.api.create(DEPLOYMENTS, deployment(1))
        await asyncio.sleep(60)
        failed = cluster.phases()["Failed"]
        assert 50 <= failed <= 60
        assert len(cluster.events("ReplicaSet")) <= 12

    played(story, start_delay=1.0)


def test_a_replica_set_takes_up_pods_that_were_left_behind() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("a")
        cluster.api.create(PODS, {"metadata": {"name": "stray", "namespace": "default"}} | _labelled())
        await asyncio.sleep(5)
        spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template()}
        cluster.api.create(REPLICASETS, {"metadata": {"name": "web"}, "spec": spec})
        await asyncio.sleep(5)
        assert len(cluster.pods()) == 2
        assert cluster.get(PODS, "stray")["metadata"]["ownerReferences"][0]["kind"] == "ReplicaSet"

    played(story)


def _labelled() -> Tree:
    made = template()
    return {"metadata": {"name": "stray", "namespace": "default"} | made["metadata"], "spec": made["spec"]}
