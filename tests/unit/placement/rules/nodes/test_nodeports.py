"""Two pods cannot have the same port of one node."""

from typing import Any

import pytest

from numalign.api.objects.pod import Pod
from numalign.placement.rules.clusterstate import ClusterState
from numalign.placement.rules.nodes.nodeports import NodePorts
from tests.unit.placement.rules import worlds

RULE = NodePorts()


def with_port(port: int, address: str = "", protocol: str = "TCP", **container: Any) -> Pod:
    wanted = {"hostPort": port, "containerPort": 1, "hostIP": address, "protocol": protocol}
    return worlds.pod(containers=[{"name": "main", "ports": [wanted]} | container])


def used_by(*pods: Pod) -> ClusterState:
    return worlds.world([worlds.node("busy"), worlds.node("idle")], {"busy": pods})


@pytest.mark.parametrize(
    "used, wanted, fits",
    [
        pytest.param(with_port(80), with_port(80), False, id="every address twice"),
        pytest.param(with_port(80), with_port(81), True, id="another port"),
        pytest.param(with_port(80), with_port(80, protocol="UDP"), True, id="another protocol"),
        pytest.param(with_port(80, "10.0.0.1"), with_port(80, "10.0.0.2"), True, id="another address"),
        pytest.param(with_port(80, "10.0.0.1"), with_port(80, "10.0.0.1"), False, id="the same address"),
        pytest.param(with_port(80, "10.0.0.1"), with_port(80), False, id="one address, then every"),
        pytest.param(with_port(80), with_port(80, "10.0.0.1"), False, id="every address, then one"),
        pytest.param(with_port(80, "0.0.0.0"), with_port(80, "10.0.0.1"), False, id="zeros mean every address"),
        pytest.param(with_port(80, "", "TCP"), with_port(80, "", ""), False, id="no protocol means TCP"),
    ],
)
def test_what_is_the_same_port(used: Pod, wanted: Pod, fits: bool) -> None:
    assert worlds.fitting(RULE, wanted, used_by(used)) == (["busy", "idle"] if fits else ["idle"])


def test_eviction_can_help() -> None:
    refusal, _ = worlds.refusals(RULE, with_port(80), used_by(with_port(80)))
    assert refusal is not None
    expected = ("node(s) didn't have free ports for the requested pod ports",)
    assert (refusal.reasons, refusal.unresolvable) == (expected, False)


def test_a_pod_without_host_ports_is_not_looked_at() -> None:
    assert RULE.prepare(with_port(0), used_by()) is None


@pytest.mark.parametrize("restart, counts", [("Always", True), ("", False)], ids=["sidecar", "plain init"])
def test_init_containers_count_if_they_stay(restart: str, counts: bool) -> None:
    sidecar = {"name": "init", "restartPolicy": restart, "ports": [{"hostPort": 80, "containerPort": 80}]}
    assert (RULE.prepare(worlds.pod(initContainers=[sidecar]), used_by()) is not None) is counts


def test_a_port_is_free_again_when_its_last_pod_is_gone() -> None:
    world = used_by(with_port(80), with_port(80))
    world.drop_pod("busy/0")
    assert worlds.fitting(RULE, with_port(80), world) == ["idle"]
    world.drop_pod("busy/1")
    assert worlds.fitting(RULE, with_port(80), world) == ["busy", "idle"]


def test_one_row_can_be_asked_as_if_pods_were_gone_or_there() -> None:
    prepared = RULE.prepare(with_port(80), used_by(with_port(80)))
    assert prepared is not None
    assert RULE.filter_row(prepared, 0, {"busy/0"}, ()) == 0
    assert RULE.filter_row(prepared, 0, {"busy/0"}, [with_port(80)]) != 0
    assert RULE.filter_row(prepared, 1, (), [with_port(80)]) != 0
