"""The deployer knows what it stands on: platform, version, distribution, and where the kubelets' files are."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.deploy.apply import platforms
from numalign.kube.request import Request
from numalign.simulator.apiserver.storage import resources
from tests.deploy import sites
from tests.deploy.sites import site

CONFIG = "config.openshift.io"


def node(version: str = "v1.37.1", image: str = "Debian", provider: str = "", **labels: str) -> dict[str, Any]:
    return {
        "metadata": {"name": "a", "labels": {key.replace("__", "/"): value for key, value in labels.items()}},
        "spec": {"providerID": provider},
        "status": {"nodeInfo": {"kubeletVersion": version, "osImage": image}},
    }


@pytest.mark.parametrize(
    "tree, distribution, preset",
    [
        (node(), "kubeadm", "kubeadm"),
        (node("v1.36.2+k3s1"), "k3s", "k3s"),
        (node("v1.36.2+rke2r1"), "rke2", "rke2"),
        (node("v1.36.2+k0s.0"), "k0s", "k0s"),
        (node(**{"microk8s.io__cluster": "true"}), "microk8s", "microk8s"),
        (node(image="Talos (v1.11.0)"), "talos", "talos"),
        (node("v1.34.2-eks-1552ad0"), "eks", "eks"),
        (node("v1.34.2-eks-1552ad0", "Bottlerocket OS 1.50"), "bottlerocket", "bottlerocket"),
        (node("v1.34.1-gke.2037001"), "gke", "gke"),
        (node(**{"kubernetes.azure.com__cluster": "x"}), "aks", "aks"),
        (node(provider="kind://docker/kind/kind-worker"), "kind", "kubeadm"),
        (node(**{"minikube.k8s.io__name": "m"}), "minikube", "kubeadm"),
        ({}, "kubeadm", "kubeadm"),
    ],
)
def test_a_node_shows_its_distribution(tree: dict[str, Any], distribution: str, preset: str) -> None:
    assert platforms.distribution(tree) == (distribution, preset)


@pytest.mark.parametrize(
    "text, found",
    [
        ("Kubernetes:1.37.1", ("Kubernetes", "1.37.1")),
        ("openshift:4.20", ("OpenShift", "4.20")),
        ("HyperShift:4.20.1", ("HyperShift", "4.20.1")),
        ("Kubernetes", None),
        ("Kubernetes:", None),
        ("Kubernetes:1:2", None),
        ("Nomad:1", None),
        ("", None),
    ],
)
def test_the_user_names_a_platform_as_kind_and_version(text: str, found: object) -> None:
    assert platforms.parsed(text) == found


def test_a_plain_cluster_is_kubernetes() -> None:
    async def story() -> None:
        async with site(3) as here:
            here.edit(resources.NODES, "node-0", "", {"metadata": {"labels": {platforms.CONTROL_PLANE[0]: ""}}})
            found = await platforms.detect(here.server)
            assert (found.kind, found.version) == ("Kubernetes", "v1.37.1+numalign-embedded")
            assert (found.distribution, found.preset, found.nodes, found.control_plane_nodes) == (
                "kubeadm",
                "kubeadm",
                3,
                1,
            )
            told = platforms.described(found)
            assert told["platform"] == {"userSupplied": "", "autoDetected": "Kubernetes", "discovered": "Kubernetes"}
            assert platforms.lines(found)[0] == "Kubernetes:v1.37.1+numalign-embedded"
            assert told["values"] == {}

    sites.played(story)


def definition(kind: str, plural: str) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{CONFIG}"},
        "spec": {"group": CONFIG, "scope": "Cluster", "names": names, "versions": [version]},
    }


KINDS: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("ClusterVersion", "clusterversions", "version", {}),
    ("Infrastructure", "infrastructures", "cluster", {"controlPlaneTopology": "HighlyAvailable"}),
    ("ClusterOperator", "clusteroperators", "openshift-apiserver", {"versions": [{"version": "4.20.3"}]}),
)


async def made(here: sites.Site, topology: str) -> None:
    for kind, plural, name, status in KINDS:
        here.api.create(resources.CUSTOMRESOURCEDEFINITIONS, definition(kind, plural), manager="test")
        resource = here.api.state.registry.of_kind(CONFIG, "v1", kind)
        assert resource is not None
        status = status | {"controlPlaneTopology": topology} if kind == "Infrastructure" else status
        tree = {"apiVersion": f"{CONFIG}/v1", "kind": kind, "metadata": {"name": name}, "status": status}
        here.api.create(resource, tree, manager="test")


@pytest.mark.parametrize("topology, kind", [("HighlyAvailable", "OpenShift"), ("External", "HyperShift")])
def test_a_cluster_with_the_apis_of_openshift_is_one(topology: str, kind: str) -> None:
    async def story() -> None:
        async with site(1) as here:
            await made(here, topology)
            found = await platforms.detect(here.server)
            assert (found.kind, found.version, found.preset) == (kind, "4.20.3", "openshift")
            assert platforms.suggested_values(found) == {"agent": {"preset": "openshift"}}

    sites.played(story)


def test_what_the_user_may_not_see_is_unknown_and_not_guessed() -> None:
    async def story() -> None:
        async with site(1) as here:
            await made(here, "External")

            def gate(request: Request) -> None:
                if "clusterversions" in request.path or request.path.endswith("/nodes"):
                    raise sites.forbidden(request)

            here.gate = gate
            found = await platforms.detect(here.server)
            assert (found.kind, found.version, found.nodes) == ("Unknown", "", 0)
            assert "403" in found.problem
            assert found.hints == ("you may not list Nodes, so their distribution is not known",)
            told = await platforms.detect(here.server, ("Kubernetes", "1.37"))
            assert (told.kind, told.version, told.problem) == ("Kubernetes", "1.37", "")

    sites.played(story)


def test_several_distributions_need_several_groups() -> None:
    (said,) = platforms.hints("k3s", "Kubernetes", 1, {"k3s": 2, "rke2": 1}, "")
    assert said == "the nodes are 2 of k3s, 1 of rke2: give each its own group in agent.nodeGroups, with its preset"


def test_the_ports_of_the_api_server_are_those_of_its_endpoints() -> None:
    slices: list[dict[str, Any]] = [{"ports": [{"port": 8443}, {"port": None}, {}]}, {"ports": None}, {}]
    assert platforms.ports(slices) == (8443,)
    found = platforms.Platform(
        kind="Kubernetes", version="v1", distribution="kind", preset="kubeadm", api_server_ports=(8443,)
    )
    assert platforms.suggested_values(found) == {"networkPolicy": {"apiServerPorts": [443, 8443]}}
