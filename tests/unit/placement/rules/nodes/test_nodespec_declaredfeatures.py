"""Some pods need nodes that declare a feature."""

from typing import Any

import pytest

from numalign.placement.rules.nodes.nodespec import NodeDeclaredFeatures
from tests.unit.placement.rules import worlds

RULE = NodeDeclaredFeatures()
NAMES = ("RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport", "VolumeBindMountOptions")
CLUSTER = worlds.world([worlds.node(name, declaredFeatures=[name, "Unheard"]) for name in NAMES])


def container(**fields: Any) -> dict[str, Any]:
    return {"name": "main"} | fields


RESTARTS = [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}]
MOUNTS = [{"name": "v", "mountPath": "/v", "bindMountOptions": ["noexec"]}]


@pytest.mark.parametrize(
    "spec, needed",
    [
        pytest.param({"containers": [container(restartPolicyRules=RESTARTS)]}, NAMES[0], id="restart rule"),
        pytest.param({"initContainers": [container(restartPolicyRules=RESTARTS)]}, NAMES[0], id="restart rule at init"),
        pytest.param({"hostNetwork": True, "hostUsers": False}, NAMES[1], id="user namespace on the host's network"),
        pytest.param({"containers": [container(volumeMounts=MOUNTS)]}, NAMES[2], id="bind mount options"),
    ],
)
def test_nodes_without_the_feature_are_refused(spec: dict[str, Any], needed: str) -> None:
    assert worlds.fitting(RULE, worlds.pod(**spec), CLUSTER) == [needed]


@pytest.mark.parametrize(
    "spec",
    [{}, {"hostNetwork": True}, {"hostUsers": False}, {"hostNetwork": True, "hostUsers": True}],
    ids=["plain", "host network", "user namespace", "host's users"],
)
def test_other_pods_need_nothing(spec: dict[str, Any]) -> None:
    assert RULE.prepare(worlds.pod(**spec), CLUSTER) is None


def test_all_features_must_be_there_and_eviction_does_not_help() -> None:
    pod = worlds.pod(hostNetwork=True, hostUsers=False, containers=[container(restartPolicyRules=RESTARTS)])
    refusal = worlds.refusals(RULE, pod, CLUSTER)[0]
    assert refusal is not None
    assert (refusal.reasons, refusal.unresolvable) == (("node(s) didn't match Pod's required features",), True)
