"""What goes when something else goes, in virtual time."""

import asyncio

import pytest

from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import (
    CONFIGMAPS,
    DEPLOYMENTS,
    LEASES,
    NAMESPACES,
    NODES,
    REPLICASETS,
    SERVICEACCOUNTS,
)
from tests.unit.simulator.controllers.stories import Cluster, deployment, played

LEFT = {
    "in the background": ("Background", (0, 0)),
    "by default": ("", (0, 0)),
    "in the foreground": ("Foreground", (0, 0)),
    "orphaned": ("Orphan", (1, 3)),
}


@pytest.mark.parametrize("propagation, left", LEFT.values(), ids=LEFT)
def test_what_a_deleted_deployment_leaves(propagation: str, left: tuple[int, int]) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("a")
        cluster.api.create(DEPLOYMENTS, deployment(3))
        await asyncio.sleep(5)
        cluster.api.delete(DEPLOYMENTS, "web", "default", propagation=propagation)
        await asyncio.sleep(10)
        assert not cluster.exists(DEPLOYMENTS, "web")
        assert (len(cluster.views[REPLICASETS]), len(cluster.pods())) == left

    played(story)


def test_in_the_foreground_the_owner_goes_last() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("a")
        cluster.api.create(DEPLOYMENTS, deployment(3))
        await asyncio.sleep(5)
        cluster.api.delete(DEPLOYMENTS, "web", "default", propagation="Foreground")
        await asyncio.sleep(0.5)
        assert cluster.exists(DEPLOYMENTS, "web")
        assert len(cluster.views[REPLICASETS]) == 1
        assert len(cluster.pods()) == 3
        await asyncio.sleep(5)
        assert not cluster.exists(DEPLOYMENTS, "web")

    played(story)


def test_a_namespace_takes_everything_in_it_along() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("a")
        cluster.api.create(NAMESPACES, {"metadata": {"name": "team"}, "spec": {"finalizers": ["kubernetes"]}})
        web = deployment(2)
        web["metadata"]["namespace"] = "team"
        cluster.api.create(DEPLOYMENTS, web)
        await asyncio.sleep(5)
        assert len(cluster.pods("team")) == 2
        cluster.api.delete(NAMESPACES, "team")
        await asyncio.sleep(10)
        assert not cluster.exists(NAMESPACES, "team")
        assert cluster.pods("team") == []
        assert not cluster.exists(DEPLOYMENTS, "web", "team")

    played(story)


def test_every_namespace_has_its_account_and_certificate() -> None:
    async def story(cluster: Cluster) -> None:
        await asyncio.sleep(1)
        cluster.api.delete(SERVICEACCOUNTS, "default", "default")
        cluster.change(CONFIGMAPS, "kube-root-ca.crt", {"data": {"ca.crt": "forged"}})
        await asyncio.sleep(1)
        assert cluster.exists(SERVICEACCOUNTS, "default")
        assert cluster.get(CONFIGMAPS, "kube-root-ca.crt")["data"] == {"ca.crt": "certificate"}

    played(story)


def test_the_lease_of_a_deleted_node_is_collected() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("a")
        uid = cluster.get(NODES, "a")["metadata"]["uid"]
        owner = {"apiVersion": "v1", "kind": "Node", "name": "a", "uid": uid}
        cluster.api.create(LEASES, {"metadata": {"name": "x", "namespace": "default", "ownerReferences": [owner]}})
        await asyncio.sleep(1)
        assert cluster.get(LEASES, "x")
        cluster.api.delete(NODES, "a")
        await asyncio.sleep(1)
        with pytest.raises(StatusError, match="not found"):
            cluster.get(LEASES, "x")

    played(story)
