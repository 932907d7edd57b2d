"""Nodes are read from the wire with what scheduling looks at."""

from numalign.api.decode import decode, quantity
from numalign.api.objects import node

WRITTEN = b"""{
  "metadata": {"name": "worker-7", "labels": {"zone": "a"}},
  "spec": {"unschedulable": true, "podCIDR": "10.0.0.0/24",
           "taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]},
  "status": {
    "capacity": {"cpu": "64", "memory": "256Gi"}, "allocatable": {"cpu": "62", "memory": "250Gi"},
    "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
    "addresses": [{"type": "InternalIP", "address": "10.0.0.7"}],
    "nodeInfo": {"kubeletVersion": "v1.37.1", "kernelVersion": "6.1.0", "architecture": "amd64", "machineID": "m"},
    "images": [{"names": ["example.com/web:1"], "sizeBytes": 123}]
  }
}"""


def read() -> node.Node:
    return decode.decode(node.Node, WRITTEN)


def test_spec() -> None:
    assert read().spec.unschedulable
    assert read().spec.taints == (node.Taint(key="gpu", value="yes", effect="NoSchedule"),)


def test_status() -> None:
    status = read().status
    assert status.conditions == (node.NodeCondition(type="Ready", status="True", reason="KubeletReady"),)
    assert status.addresses == (node.NodeAddress(type="InternalIP", address="10.0.0.7"),)
    assert status.images == (node.ContainerImage(names=("example.com/web:1",), size_bytes=123),)
    assert (status.node_info.kernel_version, status.node_info.architecture) == ("6.1.0", "amd64")


def test_allocatable_is_what_pods_may_use() -> None:
    assert read().allocatable == {"cpu": quantity.parse("62"), "memory": quantity.parse("250Gi")}


def test_a_node_that_does_not_say_offers_its_capacity() -> None:
    bare = decode.decode(node.Node, b'{"status": {"capacity": {"cpu": "4"}}}')
    assert bare.allocatable == {"cpu": quantity.parse("4")}
