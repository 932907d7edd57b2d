"""Extended resources that a DeviceClass stands for: pods that ask for them wait, until no class does any more."""

from __future__ import annotations

from numalign.simulator import virtualtime
from numalign.simulator.trees import Tree
from tests.embedded.barecluster import Bare

GPU = "example.com/gpu"
UNREPORTED = {"name": "Numalign", "args": {"nodesWithoutReport": "allow"}}
CLASS: Tree = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "fast"},
    "spec": {"extendedResourceName": GPU},
}


def node() -> Tree:
    amounts = {"cpu": "16", "memory": "64Gi", "pods": "110", GPU: "4"}
    status = {"capacity": amounts, "allocatable": amounts}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": status}


def pod(name: str, **requests: str) -> Tree:
    amounts = {"cpu": "1", **requests}
    container = {"name": "main", "image": "a:1", "resources": {"requests": amounts, "limits": amounts}}
    spec = {"schedulerName": "numalign", "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


async def played() -> tuple[str, dict[str, str], dict[str, str]]:
    bare = Bare()
    for thing in (node(), CLASS):
        bare.create(thing)
    async with bare.scheduler({"profiles": [{"pluginConfig": [UNREPORTED]}]}):
        await bare.clock.sleep(3.0)
        bare.create(pod("plain"))
        bare.create(pod("gpu", **{GPU: "1"}))
        await bare.clock.sleep(3.0)
        (condition,) = bare.pods()["gpu"]["status"]["conditions"]
        before = bare.bound()
        bare.api.delete(bare.resource(CLASS), "fast")
        await bare.clock.sleep(15.0)
        return condition["message"], before, bare.bound()


def test_a_pod_that_asks_for_one_waits_until_the_class_is_gone() -> None:
    message, before, after = virtualtime.run(played())
    assert "asks for example.com/gpu, which DeviceClass fast stands for" in message
    assert (before, after) == ({"gpu": "", "plain": "n"}, {"gpu": "n", "plain": "n"})
