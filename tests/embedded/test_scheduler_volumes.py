"""Pods with claims: volumes are made for the node that was chosen, before the pod is bound there."""

from __future__ import annotations

from numalign.kubelet.machine import presets
from numalign.simulator.apiserver.storage.resources import PODS, Resource
from numalign.simulator.apiserver.verbs.api import Patch
from numalign.simulator.nodes.specs import NodeSpec
from numalign.simulator.trees import Tree
from tests import nodes
from tests.embedded import schedulerstories as stories
from tests.embedded.schedulerstories import Stage

MACHINE = presets.machine("2x16")
SETTINGS = nodes.settings(MACHINE, "single-numa-node")
NODES = [NodeSpec(name=f"w-{n}", machine=MACHINE, settings=SETTINGS) for n in range(2)]
SELECTED = "volume.kubernetes.io/selected-node"


def resource(stage: Stage, api_version: str, kind: str) -> Resource:
    group, _, version = api_version.rpartition("/")
    found = stage.api.state.registry.of_kind(group, version, kind)
    assert found is not None
    return found


def create(stage: Stage, tree: Tree) -> None:
    stage.api.create(resource(stage, tree["apiVersion"], tree["kind"]), tree, manager="story")


def storage_class(mode: str) -> Tree:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "fast"},
        "provisioner": "example.com/disk",
        "volumeBindingMode": mode,
    }


CLAIM: Tree = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data", "namespace": "default"},
    "spec": {
        "storageClassName": "fast",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    },
}
VOLUMES = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]


VOLUME: Tree = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "disk"},
    "spec": {
        "storageClassName": "fast",
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "csi": {"driver": "example.com/disk", "volumeHandle": "1"},
    },
}


def made_for(stage: Stage, claim: Tree) -> None:
    """What a provisioner and the volume controller do once a claim names its node."""
    reference = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data"}
    create(stage, VOLUME | {"spec": VOLUME["spec"] | {"claimRef": reference | {"uid": claim["metadata"]["uid"]}}})
    kind, done = resource(stage, "v1", "PersistentVolumeClaim"), {"pv.kubernetes.io/bind-completed": "yes"}
    bound = {"metadata": {"annotations": done}, "spec": {"volumeName": "disk"}}
    stage.api.patch(kind, "data", "default", Patch("merge", bound))
    stage.api.patch(kind, "data", "default", Patch("merge", {"status": {"phase": "Bound"}}), subresource="status")


def the_claim(stage: Stage) -> Tree:
    return stage.api.list(resource(stage, "v1", "PersistentVolumeClaim")).items[0]


def test_a_claim_that_waits_for_its_pod_gets_the_node_and_the_pod_follows_its_volume() -> None:
    waiting: list[str] = []

    async def plot(stage: Stage) -> None:
        create(stage, storage_class("WaitForFirstConsumer"))
        create(stage, CLAIM)
        stage.create("p", 2, volumes=VOLUMES)
        await stage.clock.sleep(20)
        claim = the_claim(stage)
        waiting.append(claim["metadata"]["annotations"][SELECTED])
        waiting.append(stage.api.list(PODS).items[0]["spec"].get("nodeName", ""))
        made_for(stage, claim)

    told = stories.told(plot, NODES)
    selected, bound_before = waiting
    assert bound_before == ""
    assert [pod["spec"].get("nodeName") for pod in told.pods] == [selected]


def test_a_pod_whose_claim_is_missing_waits_and_goes_on_when_it_comes() -> None:
    waited: list[Tree] = []

    async def plot(stage: Stage) -> None:
        create(stage, storage_class("Immediate"))
        create(stage, VOLUME)
        stage.create("p", 2, volumes=VOLUMES)
        await stage.clock.sleep(10)
        waited.extend(stage.api.list(PODS).items)
        create(stage, CLAIM)

    told = stories.told(plot, NODES)
    assert waited[0]["status"]["conditions"][0]["message"].startswith(
        '0/2 nodes are available: persistentvolumeclaim "data" not found.'
    )
    assert told.waiting == []
