"""kubectl takes nodes of an embedded cluster out of service and back, and speaks TLS where it is asked to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.embedded import clusters
from tests.embedded.kubectl import Kubectl, Like

NODE = "node-3"
ON_NODE = f'\'{{"spec":{{"nodeSelector":{{"kubernetes.io/hostname":"{NODE}"}}}}}}\''
READY = f"get node {NODE}"
GUARDED = f"""
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{nodeSelector: {{kubernetes.io/hostname: {NODE}}}, containers: [{{name: main, image: a}}]}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {{name: web}}
spec: {{minAvailable: 1, selector: {{matchLabels: {{app: web}}}}}}
"""
EVICTION = '{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "NAME"}}'
REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."


@pytest.fixture
def node(here: Kubectl) -> Iterator[Kubectl]:
    """kubectl, and the last node for the test alone; in service again afterwards."""
    yield here
    here.said(f"uncordon {NODE}")


def guarded(kubectl: Kubectl) -> None:
    """A pod on the node that has to stay."""
    kubectl.said("create -f -", GUARDED)
    kubectl.said("rollout status deployment/web --timeout=170s")
    kubectl.said("wait --for=jsonpath={.status.currentHealthy}=1 pdb/web --timeout=170s")


def test_cordon_and_uncordon(node: Kubectl) -> None:
    assert node(f"cordon {NODE}") == (0, f"node/{NODE} cordoned\n")
    assert node(READY) == (0, Like(f"NAME STATUS ROLES AGE VERSION\n{NODE} Ready,SchedulingDisabled <none> ...\n"))
    node.said(f"run one --image=a --overrides={ON_NODE}")
    node.said("wait --for=jsonpath={.status.conditions[0].reason}=Unschedulable pod/one --timeout=170s")
    assert node(f"uncordon {NODE}") == (0, f"node/{NODE} uncordoned\n")
    assert node("wait --for=condition=Ready pod/one --timeout=170s")[0] == 0


def test_taints_come_and_go(node: Kubectl) -> None:
    assert node(f"taint node {NODE} team=a:NoSchedule") == (0, f"node/{NODE} tainted\n")
    assert "team=a:NoSchedule" in node.said(f"describe node {NODE}")
    assert node(f"taint node {NODE} team-") == (0, f"node/{NODE} untainted\n")


def test_drain_empties_a_node(node: Kubectl) -> None:
    node.said(f"run bare --image=a --overrides={ON_NODE}")
    node.said("wait --for=condition=Ready pod/bare --timeout=170s")
    drain = f"drain {NODE} --ignore-daemonsets --pod-selector=run=bare --timeout=170s"
    code, text = node(drain)
    assert (code, "declare no controller (use --force to override): " in text) == (1, True)
    drained = f"evicting pod {node.namespace}/bare\npod/bare evicted\nnode/{NODE} drained\n"
    assert node(f"{drain} --force") == (0, Like(f"...{drained}"))


@pytest.mark.slow
def test_drain_waits_for_what_has_to_stay(node: Kubectl) -> None:
    guarded(node)
    code, text = node(f"drain {NODE} --ignore-daemonsets --pod-selector=app=web --timeout=1s")
    assert (code, f"(will retry after 5s): {REFUSED}" in text) == (1, True)
    assert node("get pods --field-selector=status.phase=Running -o name") == (0, Like("pod/web-...\n"))


def test_an_eviction_that_would_break_a_budget_is_refused(node: Kubectl) -> None:
    guarded(node)
    pod = node.said("get pods -o jsonpath={.items[0].metadata.name}")
    evict = f"create --raw /api/v1/namespaces/{node.namespace}/pods/{pod}/eviction -f -"
    code, text = node(evict, EVICTION.replace("NAME", pod))
    assert (code, text) == (1, Like(f"Error from server (TooManyRequests): {REFUSED}\n"))


def test_tls_and_a_token(tmp_path: Path, anywhere: Kubectl) -> None:
    with clusters.up(tmp_path, "--nodes 1") as secure:
        kubectl = anywhere._replace(kubeconfig=secure.kubeconfig)
        assert kubectl("get nodes") == (0, Like("NAME STATUS ROLES AGE VERSION\nnode-0 Ready <none> ...\n"))
        assert kubectl("run one --image=a") == (0, "pod/one created\n")
        assert kubectl("wait --for=condition=Ready pod/one --timeout=170s")[0] == 0
        stranger = kubectl("get nodes --token=guessed --request-timeout=60s")
    assert stranger == (1, "error: You must be logged in to the server (Unauthorized)\n")


def test_without_tls_and_without_a_token(tmp_path: Path, anywhere: Kubectl) -> None:
    with clusters.up(tmp_path, "--nodes 1 --no-tls") as bare:
        kubectl = anywhere._replace(kubeconfig=bare.kubeconfig)
        assert kubectl("run one --image=a") == (0, "pod/one created\n")
