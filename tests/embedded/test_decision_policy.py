"""The policy that comes with agents in direct mode, on a real API server: users do not give themselves devices."""

from __future__ import annotations

from numalign.api.attributes import directresult
from numalign.deploy import podpolicy
from tests.embedded.realserver import RealServer
from tests.embedded.test_pod_policy import (
    PLURALS,
    PODS,
    POLICIES,
    TOPOLOGY,
    only_a_binding_writes_the_decision,
    pod,
)


def test_only_a_binding_writes_the_decision(real_server: RealServer) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    real_server.call("POST", "/api/v1/namespaces/default/serviceaccounts", account)
    made = [(f"{POLICIES}/{PLURALS[each['kind']]}", each) for each in podpolicy.decisions("decisions")]
    assert [answer for status, answer in (real_server.call("POST", *each) for each in made) if status != 201] == []
    forged = {directresult.RESULT: "{}"}
    real_server.until(lambda: real_server.call("POST", PODS, pod(forged))[0] == 403)
    try:
        only_a_binding_writes_the_decision(real_server)
        # Other annotations are not looked at; the policy of another module may have just been deleted.
        real_server.until(lambda: real_server.call("POST", PODS, pod({TOPOLOGY: "["}))[0] == 201)
        undecided = pod({})
        assert real_server.call("POST", PODS, undecided)[0] == 201
        status = f"{PODS}/{undecided['metadata']['name']}/status"
        assert real_server.patch("merge", status, {"metadata": {"annotations": forged}})[0] == 403
    finally:
        for place, each in reversed(made):
            real_server.call("DELETE", f"{place}/{each['metadata']['name']}")
