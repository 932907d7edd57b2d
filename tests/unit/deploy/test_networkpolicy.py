"""What the NetworkPolicies of an installation let through, by the rules of Kubernetes: a connection needs the consent
of both ends, and an end that no policy selects consents to everything.

The numbers DP-xx are those of the acceptance list of the reference deployer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from numalign.deploy import installation, values
from numalign.deploy.release import Release

Labels = Mapping[str, str]
API_PORTS = (443, 6443)
"""Of the Service, and of the server behind it: which of them counts depends on the network plugin."""
PROMETHEUS = {"app": "prometheus"}
PROGRAMS: Mapping[str, Any] = {"gc": {"enabled": True}}
OPERATOR = {"operator": {"enabled": True}, "agent": {"enabled": False}, "scheduler": {"enabled": False}}
EXTENDER = {
    "scheduler": {
        "mode": "extender",
        "expanderPort": 8444,
        "tls": {"secretName": "server"},
        "extender": {"clientCaSecret": "clients"},
    }
}


class Network:
    """The pods of an installation by component, and who may connect to whom."""

    def __init__(self, document: Mapping[str, Any] = PROGRAMS, **network: Any) -> None:
        read = values.read({"networkPolicy": {"enabled": True, **network}, **document})
        objects = installation.objects(read, Release())
        self._policies = [each["spec"] for each in objects if each["kind"] == "NetworkPolicy"]
        templates = [each["spec"]["template"] for each in objects if each["kind"] in ("Deployment", "DaemonSet")]
        labels = [each["metadata"]["labels"] for each in templates]
        self.pods: dict[str, Labels] = {each["app.kubernetes.io/component"]: each for each in labels}

    def allows(self, source: Labels | None, target: Labels | None, port: int, protocol: str = "TCP") -> bool:
        """None: an end that is no pod of the cluster, as the API server is."""
        ends = (("Egress", "egress", "to", source, target), ("Ingress", "ingress", "from", target, source))
        return all(
            self._consents(kind, rules, peers, own, other, (port, protocol)) for kind, rules, peers, own, other in ends
        )

    def _consents(
        self, kind: str, rules: str, peers: str, own: Labels | None, other: Labels | None, port: tuple[int, str]
    ) -> bool:
        if own is None:
            return True
        selecting = [
            each
            for each in self._policies
            if kind in each["policyTypes"] and each["podSelector"]["matchLabels"].items() <= own.items()
        ]
        return not selecting or any(
            _is_among(rule.get(peers), other) and _has_port(rule.get("ports"), port)
            for policy in selecting
            for rule in policy.get(rules, ())
        )


def _is_among(peers: Iterable[Any] | None, other: Labels | None) -> bool:
    """Peers of one namespace, selected by labels."""
    if not peers:
        return True
    return other is not None and any(each["podSelector"]["matchLabels"].items() <= other.items() for each in peers)


def _has_port(ports: Iterable[Any] | None, wanted: tuple[int, str]) -> bool:
    return not ports or any((each["port"], each["protocol"]) == wanted for each in ports)


@pytest.mark.parametrize("component", ["scheduler", "agent", "gc", "operator"])
def test_every_program_reaches_the_api_server_and_the_names_of_services(component: str) -> None:
    """DP-13, and 85771 to 85773 of the reference operator."""
    network = Network(OPERATOR if component == "operator" else PROGRAMS)
    pod = network.pods[component]
    assert all(network.allows(pod, None, port) for port in API_PORTS)
    assert all(network.allows(pod, None, 53, protocol) for protocol in ("UDP", "TCP"))
    assert not network.allows(pod, None, 2379)


@pytest.mark.parametrize("component", ["agent", "gc"])
def test_no_other_program_reaches_the_pages_of_the_scheduler(component: str) -> None:
    """DP-14"""
    network = Network()
    assert not network.allows(network.pods[component], network.pods["scheduler"], 10259)
    assert network.allows(PROMETHEUS, network.pods["scheduler"], 10259)
    assert not network.allows(PROMETHEUS, network.pods["scheduler"], 22)


def test_metrics_are_read_by_those_who_are_named() -> None:
    network = Network(ingressFrom=[{"podSelector": {"matchLabels": PROMETHEUS}}])
    for component, port in {"scheduler": 10259, "agent": 10261}.items():
        assert network.allows(PROMETHEUS, network.pods[component], port)
        assert not network.allows({"app": "other"}, network.pods[component], port)


def test_nothing_but_the_pages_of_the_operator_is_reached() -> None:
    """85774 to 85778 of the reference operator."""
    network = Network(OPERATOR, ingressFrom=[{"podSelector": {"matchLabels": PROMETHEUS}}])
    operator = network.pods["operator"]
    assert network.allows(PROMETHEUS, operator, 10263)
    assert not network.allows({"app": "other"}, operator, 10263)
    assert not network.allows(PROMETHEUS, operator, 8081)
    assert not network.allows(operator, PROMETHEUS, 9090)


def test_the_control_plane_reaches_the_extender_whoever_may_read_its_metrics() -> None:
    """kube-scheduler and cluster-autoscaler are no pods that a policy can name."""
    network = Network(EXTENDER, ingressFrom=[{"podSelector": {"matchLabels": PROMETHEUS}}])
    (extender,) = [labels for name, labels in network.pods.items() if name == "scheduler"]
    assert all(network.allows(None, extender, port) for port in (8443, 8444))
    assert not network.allows(None, extender, 10259)


def test_agents_reach_their_kubelet_where_they_have_to() -> None:
    network = Network()
    assert not network.allows(network.pods["agent"], None, 10250)
    document = {"networkPolicy": {"enabled": True}, "agent": {"configz": {"enabled": True}}}
    (policy,) = [
        each
        for each in installation.objects(values.read(document), Release())
        if each["kind"] == "NetworkPolicy" and each["metadata"]["name"].endswith("agent")
    ]
    assert {"port": 10250, "protocol": "TCP"} in policy["spec"]["egress"][0]["ports"]
