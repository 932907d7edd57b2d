"""Services: defaults, and addresses and ports from simple pools.

An address is the lowest one that no service has; nothing listens on it. Of two families only IPv4 is known."""

import ipaddress
from collections.abc import Iterator
from typing import Final

from numalign.simulator.apiserver.defaults import podspecs
from numalign.simulator.apiserver.storage.resources import SERVICES
from numalign.simulator.apiserver.storage.state import Lookup
from numalign.simulator.trees import Tree

ADDRESSES: Final = ipaddress.IPv4Network("10.96.0.0/16")
NODE_PORTS: Final = range(30_000, 32_768)
STICKY_SECONDS: Final = 10_800
WITH_NODE_PORTS: Final = ("NodePort", "LoadBalancer")
FAMILIES: Final = {"ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"}


def complete(tree: Tree, old: Tree | None, lookup: Lookup) -> None:
    spec = tree.setdefault("spec", {})
    podspecs.fill(spec, {"type": "ClusterIP", "sessionAffinity": "None"})
    if spec["sessionAffinity"] == "ClientIP":
        spec.setdefault("sessionAffinityConfig", {"clientIP": {"timeoutSeconds": STICKY_SECONDS}})
    for port in spec.get("ports") or ():
        podspecs.fill(port, {"protocol": "TCP"})
        port["targetPort"] = port.get("targetPort") or port.get("port", 0)
    if spec["type"] != "ExternalName":
        _complete_reachable(tree, old, lookup)
    if old is None:
        tree["status"] = {"loadBalancer": {}}


def _complete_reachable(tree: Tree, old: Tree | None, lookup: Lookup) -> None:
    spec = tree["spec"]
    others = [each for each in lookup.all(SERVICES) if each["metadata"]["uid"] != tree["metadata"].get("uid")]
    _give_address(spec, (old or {}).get("spec") or {}, others)
    podspecs.fill(spec, FAMILIES | {"internalTrafficPolicy": "Cluster"})
    if spec["type"] in WITH_NODE_PORTS:
        spec.setdefault("externalTrafficPolicy", "Cluster")
        _give_ports(spec, others)
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)


def _give_address(spec: Tree, before: Tree, others: list[Tree]) -> None:
    """An update that leaves the address out keeps it."""
    if not spec.get("clusterIP"):
        used = {(each.get("spec") or {}).get("clusterIP") for each in others}
        spec["clusterIP"] = before.get("clusterIP") or next(each for each in _addresses() if each not in used)
    if (spec.get("clusterIPs") or [""])[0] != spec["clusterIP"]:
        spec["clusterIPs"] = [spec["clusterIP"]]


def _addresses() -> Iterator[str]:
    return map(str, ADDRESSES.hosts())


def _give_ports(spec: Tree, others: list[Tree]) -> None:
    services = [spec, *((each.get("spec") or {}) for each in others)]
    used = {port.get("nodePort") for each in services for port in each.get("ports") or ()}
    free = (number for number in NODE_PORTS if number not in used)
    for port in spec.get("ports") or ():
        if not port.get("nodePort"):
            port["nodePort"] = next(free)
