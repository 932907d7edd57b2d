"""The rows of services and of the endpoints behind them."""

from datetime import datetime
from typing import Any, Final

from numalign.simulator.apiserver.tables import columns
from numalign.simulator.apiserver.tables.columns import AGE, NONE, UNSET, Layout, items, name, named, part, wide
from numalign.simulator.trees import Tree

SHOWN_ENDPOINTS: Final = 3


def service(tree: Tree, now: datetime) -> list[Any]:
    spec = part(tree, "spec")
    addresses = items(spec, "clusterIPs")
    return [
        name(tree),
        spec.get("type", ""),
        addresses[0] if addresses else NONE,
        _external(spec, part(tree, "status")),
        ",".join(map(_port, items(spec, "ports"))) or NONE,
        columns.age(tree, now),
        columns.labels(spec.get("selector")),
    ]


def _external(spec: Tree, status: Tree) -> str:
    own = items(spec, "externalIPs")
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName", ""))
    if spec.get("type") != "LoadBalancer":
        return ",".join(own) or NONE
    entries = items(part(status, "loadBalancer"), "ingress")
    balanced = sorted({each.get("ip") or each.get("hostname", "") for each in entries} - {""})
    return ",".join([*balanced, *own]) or "<pending>"


def _port(port: Tree) -> str:
    outside = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port')}{outside}/{port.get('protocol', '')}"


def slice_of_endpoints(tree: Tree, now: datetime) -> list[Any]:
    ports = [str(each.get("port") or each.get("name") or "*") for each in items(tree, "ports")]
    addresses = [address for each in items(tree, "endpoints") for address in items(each, "addresses")]
    return [name(tree), tree.get("addressType", ""), _first_of(ports), _first_of(addresses), columns.age(tree, now)]


def endpoints(tree: Tree, now: datetime) -> list[Any]:
    found = [address for subset in items(tree, "subsets") for address in _addresses(subset)]
    return [name(tree), _first_of(found) if items(tree, "subsets") else NONE, columns.age(tree, now)]


def _addresses(subset: Tree) -> list[str]:
    addresses = [str(each.get("ip", "")) for each in items(subset, "addresses")]
    ports = [each.get("port") for each in items(subset, "ports")]
    return [f"{address}:{port}" for port in ports for address in addresses] if ports else addresses


def _first_of(texts: list[str]) -> str:
    shown = ",".join(texts[:SHOWN_ENDPOINTS])
    rest = len(texts) - SHOWN_ENDPOINTS
    return f"{shown} + {rest} more..." if rest > 0 else shown or UNSET


SERVICE: Final = named("Type", "Cluster-IP", "External-IP", "Port(s)", AGE, *wide("Selector"))

LAYOUTS: Final = {
    ("", "Service"): Layout(SERVICE, service),
    ("", "Endpoints"): Layout(named("Endpoints", AGE), endpoints),
    ("discovery.k8s.io", "EndpointSlice"): Layout(named("AddressType", "Ports", "Endpoints", AGE), slice_of_endpoints),
}
