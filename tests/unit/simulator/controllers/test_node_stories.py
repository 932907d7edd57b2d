"""Nodes that fall silent, are cordoned or leave, in virtual time."""

import asyncio

from numalign.simulator.apiserver.storage.resources import DAEMONSETS, DEPLOYMENTS, NODES, PODS
from numalign.simulator.apiserver.verbs.api import Patch
from numalign.simulator.trees import Tree
from tests.unit.simulator.controllers.stories import Cluster, condition, deployment, played, template

FIVE_MINUTES = [
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for key in ("not-ready", "unreachable")
]


def taints(cluster: Cluster, node: str) -> list[str]:
    found = cluster.get(NODES, node).get("spec", {}).get("taints", [])
    return [f"{taint['key'].rpartition('/')[2]}:{taint['effect']}" for taint in found]


def test_a_silent_node_becomes_unknown_then_loses_its_pods() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("a")
        cluster.api.create(DEPLOYMENTS, deployment(1, template=template(tolerations=FIVE_MINUTES)))
        await asyncio.sleep(15)
        cluster.node("b")
        cluster.silent.add("a")
        await asyncio.sleep(55)
        assert condition(cluster.get(NODES, "a"), "Ready") == ("Unknown", "NodeStatusUnknown")
        assert taints(cluster, "a") == ["unreachable:NoSchedule", "unreachable:NoExecute"]
        assert len(cluster.pods()) == 1
        await asyncio.sleep(310)
        assert {pod["spec"]["nodeName"] for pod in cluster.pods() if "deletionTimestamp" not in pod["metadata"]} == {
            "b"
        }
        assert "NodeNotReady: Node a status is now: NodeNotReady" in cluster.events("Node")

    played(story)


def test_a_node_that_comes_back_in_time_keeps_its_pods() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("a")
        cluster.api.create(DEPLOYMENTS, deployment(1, template=template(tolerations=FIVE_MINUTES)))
        await asyncio.sleep(15)
        cluster.silent.add("a")
        await asyncio.sleep(100)
        cluster.silent.clear()
        beat(cluster, "a")
        await asyncio.sleep(400)
        assert taints(cluster, "a") == []
        assert len(cluster.pods()) == 1
        assert any("Cancelling deletion of Pod" in each for each in cluster.events("Pod"))

    played(story)


def beat(cluster: Cluster, node: str) -> None:
    conditions = [{"type": "Ready", "status": "True", "lastHeartbeatTime": cluster.clock.rfc3339()}]
    cluster.api.patch(NODES, node, "", Patch("merge", {"status": {"conditions": conditions}}), subresource="status")


def test_a_pod_that_endures_nothing_leaves_a_silent_node_at_once() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("a")
        impatient = [toleration | {"tolerationSeconds": 0} for toleration in FIVE_MINUTES]
        cluster.api.create(DEPLOYMENTS, deployment(1, template=template(tolerations=impatient)))
        await asyncio.sleep(15)
        cluster.silent.add("a")
        await asyncio.sleep(50)
        [marked] = [pod for pod in cluster.pods() if pod["spec"].get("nodeName")]
        assert marked["metadata"]["deletionTimestamp"]
        assert condition(marked, "DisruptionTarget") == ("True", "DeletionByTaintManager")

    played(story)


def test_a_cordoned_node_is_tainted_and_takes_no_pod() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("a")
        cluster.change(NODES, "a", {"spec": {"unschedulable": True}})
        cluster.api.create(DEPLOYMENTS, deployment(1))
        await asyncio.sleep(5)
        assert taints(cluster, "a") == ["unschedulable:NoSchedule"]
        assert cluster.phases() == {"Pending": 1}
        cluster.change(NODES, "a", {"spec": {"unschedulable": False}})
        await asyncio.sleep(5)
        assert (taints(cluster, "a"), cluster.phases()) == ([], {"Running": 1})

    played(story)


def test_pods_of_a_node_that_is_gone_are_collected() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("a")
        cluster.api.create(DEPLOYMENTS, deployment(2))
        await asyncio.sleep(5)
        cluster.node("b")
        cluster.silent.add("a")
        cluster.api.delete(NODES, "a")
        await asyncio.sleep(90)
        assert {pod["spec"]["nodeName"] for pod in cluster.pods()} == {"b"}
        assert "RemovingNode: Node a event: Removing Node a from Controller" in cluster.events("Node")

    played(story)


def test_every_node_gets_its_daemon_and_a_new_one_too() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("a")
        cluster.node("b")
        cluster.api.create(DAEMONSETS, daemonset())
        await asyncio.sleep(5)
        cluster.node("c")
        cluster.change(NODES, "c", {"spec": {"unschedulable": True}})
        await asyncio.sleep(5)
        assert sorted(pod["spec"]["nodeName"] for pod in cluster.pods()) == ["a", "b", "c"]
        status = cluster.get(DAEMONSETS, "agent")["status"]
        assert (status["desiredNumberScheduled"], status["numberReady"]) == (3, 3)

    played(story)


def test_daemons_are_updated_one_node_at_a_time() -> None:
    async def story(cluster: Cluster) -> None:
        for name in "abc":
            cluster.node(name)
        cluster.api.create(DAEMONSETS, daemonset())
        await asyncio.sleep(5)
        cluster.change(DAEMONSETS, "agent", {"spec": {"template": template("app:2")}})
        fewest = 3
        for _ in range(150):
            await asyncio.sleep(0.1)
            fewest = min(fewest, cluster.get(DAEMONSETS, "agent")["status"]["numberReady"])
        assert {pod["spec"]["containers"][0]["image"] for pod in cluster.pods()} == {"app:2"}
        assert fewest == 2

    played(story)


def test_a_deleted_pod_that_was_never_bound_goes() -> None:
    async def story(cluster: Cluster) -> None:
        metadata = {"name": "p", "namespace": "default", "finalizers": ["example.com/hold"]}
        cluster.api.create(PODS, {"metadata": metadata, "spec": template()["spec"]})
        cluster.api.delete(PODS, "p", "default")
        await asyncio.sleep(21)
        assert cluster.get(PODS, "p")["status"]["phase"] == "Failed"

    played(story)


def daemonset() -> Tree:
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template()}
    return {"metadata": {"name": "agent"}, "spec": spec}
