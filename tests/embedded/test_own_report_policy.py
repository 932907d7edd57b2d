"""The policy of examples/rbac.yaml on a real API server: an agent writes the report of its own node and no other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from numalign.api.decode import yamltext
from numalign.deploy import rights
from tests.embedded.realserver import RealServer

AGENT = Path(__file__).parents[2] / "examples/agent.yaml"
REPORTS = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies"
POLICIES = "/apis/admissionregistration.k8s.io/v1"
ACCOUNTS = f"/api/v1/namespaces/{rights.NAMESPACE}/serviceaccounts"
PODS = f"/api/v1/namespaces/{rights.NAMESPACE}/pods"
PLURALS = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}
NODES = ("one", "two")


def report(name: str, **more: Any) -> dict[str, Any]:
    kind = {"apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopology"}
    return kind | {"metadata": {"name": name}, "zones": []} | more


NODE_OBJECTS = "/api/v1/nodes"


def pod(node: str) -> dict[str, Any]:
    spec = {
        "serviceAccountName": rights.AGENT_ACCOUNT.name,
        "nodeName": node,
        "automountServiceAccountToken": False,
        "containers": [{"name": "agent", "image": "agent"}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"agent-{node}"}, "spec": spec}


@pytest.fixture(scope="module")
def guarded(real_server: RealServer) -> Iterator[RealServer]:
    """A server with the policy, reports of two nodes, and a pod of the agent on each."""
    made = [(ACCOUNTS, each) for each in rights.manifest() if each["kind"] == "ServiceAccount"]
    made += [(PODS, pod(node)) for node in NODES]
    made += [(REPORTS, report(node)) for node in NODES]
    made += [(NODE_OBJECTS, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}}) for node in NODES]
    made += [(f"{POLICIES}/{PLURALS[each['kind']]}", each) for each in rights.own_report_policy(rights.AGENT_ACCOUNT)]
    answers = [real_server.call("POST", place, each) for place, each in made]
    assert [answer for status, answer in answers if status != 201] == []
    yield real_server
    for place, each in reversed(made):
        real_server.call("DELETE", f"{place}/{each['metadata']['name']}?gracePeriodSeconds=0")


def token(server: RealServer, node: str = "") -> str:
    """The agent's token as its pod on this node gets it, or one that is bound to no pod."""
    bound = {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": f"agent-{node}"}} if node else {}
    status, answer = server.call("POST", f"{ACCOUNTS}/{rights.AGENT_ACCOUNT.name}/token", {"spec": bound})
    assert status == 201, answer
    return str(answer["status"]["token"])


def applied(server: RealServer, holder: str, name: str, **more: Any) -> int:
    path = f"{REPORTS}/{name}?fieldManager=agent&force=true"
    status, answer = server.call("PATCH", path, report(name, **more), "application/apply-patch+yaml", token=holder)
    assert status < 400 or "may not write the report of node" in answer["message"], answer
    return status


def test_an_agent_writes_the_report_of_its_own_node_alone(guarded: RealServer) -> None:
    one = token(guarded, "one")
    # The server compiles a new policy in the background.
    guarded.until(lambda: applied(guarded, one, "two") == 403)
    assert [applied(guarded, one, name) for name in ("one", "two", "new")] == [200, 403, 403]
    assert [applied(guarded, token(guarded, "two"), name) for name in NODES] == [403, 200]


def labelled(server: RealServer, holder: str, node: str, subresource: str = "") -> int:
    """The answer to the agent's attempt to change a Node."""
    change = {"metadata": {"labels": {"changed": holder[-8:].strip("-_.")}}}
    path = f"{NODE_OBJECTS}/{node}{subresource}"
    status, answer = server.call("PATCH", path, change, "application/merge-patch+json", token=holder)
    assert status < 400 or "may not write node" in answer["message"], answer
    return status


def test_an_agent_changes_its_own_node_alone(guarded: RealServer) -> None:
    """RBAC allows every Node where agents remove a taint or offer devices."""
    one = token(guarded, "one")
    guarded.until(lambda: labelled(guarded, one, "two") == 403)
    assert [labelled(guarded, one, name) for name in NODES] == [200, 403]
    assert [labelled(guarded, one, name, "/status") for name in NODES] == [200, 403]


def test_a_token_that_is_bound_to_no_pod_writes_no_report(guarded: RealServer) -> None:
    guarded.until(lambda: applied(guarded, token(guarded), "one") == 403)


def test_the_first_report_of_a_node_may_be_created_there_alone(guarded: RealServer) -> None:
    guarded.until(lambda: applied(guarded, token(guarded, "one"), "two") == 403)
    guarded.call("DELETE", f"{REPORTS}/one")
    assert applied(guarded, token(guarded, "two"), "one") == 403
    assert applied(guarded, token(guarded, "one"), "one") == 201


def test_an_agent_deletes_no_report_of_another_node(guarded: RealServer) -> None:
    guarded.until(lambda: applied(guarded, token(guarded, "one"), "two") == 403)
    assert guarded.call("DELETE", f"{REPORTS}/two", token=token(guarded, "one"))[0] == 403


def test_the_server_accepts_the_manifest_of_the_agent(guarded: RealServer) -> None:
    (manifest,) = yamltext.documents(AGENT.read_text(), AGENT.name)
    path = f"/apis/apps/v1/namespaces/{rights.NAMESPACE}/daemonsets?dryRun=All&fieldValidation=Strict"
    status, answer = guarded.call("POST", path, manifest.value)
    assert status == 201, answer


def test_other_accounts_are_not_concerned(guarded: RealServer) -> None:
    assert guarded.patch("merge", f"{REPORTS}/two", {"zones": []})[0] == 200
