"""Values files that people write, by what they want."""

from __future__ import annotations

from typing import Any, Final

from numalign.deploy.model import Preset
from numalign.deploy.presets import LAYOUTS
from numalign.deploy.release import CERT_MANAGER, MONITORING, OPENSHIFT, Release

Object = dict[str, Any]
MONITORED: Final[Object] = {each: {"enabled": True} for each in ("podMonitor", "serviceMonitor", "prometheusRule")}
OPTIONAL: Final = ("gc", "networkPolicy", "grafanaDashboard", "criticalPodsQuota")
OPERATED: Final[Object] = {each: {"enabled": False} for each in ("agent", "scheduler")}
ALL_APIS: Final = Release(manager="Helm", api_versions=frozenset({MONITORING, OPENSHIFT, CERT_MANAGER}))
PLAIN: Final = Release(manager="Helm")


def _preset(name: Preset) -> Object:
    return {"agent": {"preset": name}}


CASES: Final[dict[str, tuple[Object, Release]]] = {
    "nothing": ({}, PLAIN),
    "everything": ({**MONITORED, **{each: {"enabled": True} for each in OPTIONAL}}, ALL_APIS),
    "an old cluster": ({}, Release(manager="Helm", kube_version="1.31.9")),
    "another release": ({}, Release(manager="Helm", name="numa", namespace="elsewhere")),
    "a long release": ({}, Release(manager="Helm", name="a" * 53, namespace="x")),
    "only the agent": ({"scheduler": {"enabled": False}}, PLAIN),
    "only the scheduler": ({"agent": {"enabled": False}, "crds": {"install": False}}, PLAIN),
    "the only scheduler": ({"scheduler": {"mode": "only", "replicas": 3}}, PLAIN),
    "the only scheduler under its one name": ({"scheduler": {"mode": "only", "name": "default-scheduler"}}, PLAIN),
    "Koordinator's annotations": (
        {
            "scheduler": {
                "config": {
                    "profiles": [
                        {"pluginConfig": [{"name": "Numalign", "args": {"koordinatorAnnotations": True}}]},
                    ]
                }
            }
        },
        PLAIN,
    ),
    "agents in direct mode": ({"agent": {"directMode": True}}, PLAIN),
    "agents in direct mode without a policy": ({"agent": {"directMode": True, "decisionPolicy": False}}, PLAIN),
    "the policy for direct mode": ({"scheduler": {"directModePolicy": True}}, PLAIN),
    "the policy for direct mode on an old cluster": (
        {"scheduler": {"directModePolicy": True}},
        Release(manager="Helm", kube_version="1.31.9"),
    ),
    "an extender": (
        {
            "scheduler": {
                "mode": "extender",
                "tls": {"secretName": "server"},
                "extender": {"clientCaSecret": "clients", "clusterIp": "10.96.0.99"},
            },
            "networkPolicy": {"enabled": True, "ingressFrom": [{"podSelector": {}}]},
        },
        PLAIN,
    ),
    "an extender that does not bind": (
        {
            "scheduler": {
                "mode": "extender",
                "replicas": 0,
                "updateStrategy": {"type": "RollingUpdate"},
                "tls": {"certManager": {"enabled": True, "issuerRef": {"name": "ca"}}},
                "extender": {"clientCaSecret": "clients", "bind": False},
            }
        },
        ALL_APIS,
    ),
    "an expander": (
        {
            "scheduler": {"expanderPort": 8444, "tls": {"secretName": "server"}},
            "networkPolicy": {"enabled": True},
        },
        PLAIN,
    ),
    "an expander beside an extender": (
        {
            "scheduler": {
                "mode": "extender",
                "expanderPort": 8444,
                "tls": {"secretName": "server"},
                "extender": {"clientCaSecret": "clients"},
            }
        },
        PLAIN,
    ),
    "provisioning requests": ({"scheduler": {"provisioningClass": "capacity.numalign.io"}}, PLAIN),
    "provisioning requests at an extender": (
        {
            "scheduler": {
                "mode": "extender",
                "tls": {"secretName": "server"},
                "extender": {"clientCaSecret": "clients"},
                "provisioningClass": "capacity.numalign.io",
            }
        },
        PLAIN,
    ),
    "a recording": ({"scheduler": {"recording": {"enabled": True, "size": "1Gi", "age": "90m"}}}, PLAIN),
    "a recording of an extender, which has none": (
        {
            "scheduler": {
                "mode": "extender",
                "recording": {"enabled": True},
                "tls": {"secretName": "server"},
                "extender": {"clientCaSecret": "clients"},
            }
        },
        PLAIN,
    ),
    "one replica without lease": (
        {"scheduler": {"replicas": 1, "config": {"leaderElection": {"leaderElect": False}}}},
        PLAIN,
    ),
    "the Go plugin's settings": (
        {
            "scheduler": {
                "flavour": "reference",
                "preemptionMode": "Enabled",
                "scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "nvidia.com/gpu"}]},
                "cache": {"resyncPeriodSeconds": 5, "foreignPodsDetect": "All", "informerMode": "Dedicated"},
            }
        },
        PLAIN,
    ),
    "a configuration of the user's": (
        {"scheduler": {"config": {"profiles": [{"schedulerName": "<a&b>"}], "clientConnection": {"qps": 1000000}}}},
        PLAIN,
    ),
    "a mirror": (
        {
            "global": {"imageRegistry": "mirror:5000", "imagePullSecrets": ["a"], "other": {"chart": 1}},
            "agent": {"image": {"pullSecrets": ["a", "b"], "digest": "sha256:" + "1" * 64}},
        },
        PLAIN,
    ),
    "a certificate": ({"scheduler": {"tls": {"secretName": "mine"}}}, PLAIN),
    "a certificate of cert-manager": (
        {"scheduler": {"tls": {"certManager": {"enabled": True, "issuerRef": {"name": "ca"}}}}},
        ALL_APIS,
    ),
    "the operator": ({**OPERATED, "operator": {"enabled": True}}, PLAIN),
    "the operator behind a network policy": (
        {**OPERATED, "operator": {"enabled": True}, "networkPolicy": {"enabled": True}, "commonLabels": {"a": "b"}},
        PLAIN,
    ),
    "the operator of a mirror": (
        {
            **OPERATED,
            "operator": {"enabled": True, "values": {"global": {"imageTag": "v3"}}},
            "global": {"imageRegistry": "mirror:5000", "imageTag": "v2", "imagePullSecrets": ["a"]},
        },
        PLAIN,
    ),
    "the operator with values": (
        {
            **OPERATED,
            "commonAnnotations": {"a": "b"},
            "commonLabels": {"c": "d"},
            "namespaceOverride": "numa",
            "fullnameOverride": "other",
            "crds": {"keep": False},
            "global": {"imagePullSecrets": ["a"], "imageRegistry": "mirror"},
            "operator": {
                "enabled": True,
                "imagePolicy": "trusted",
                "trustedDigests": ["sha256:" + "2" * 64],
                "values": {"agent": {"preset": "k3s", "removeStartupTaint": True}, "scheduler": {"replicas": 3}},
            },
        },
        ALL_APIS,
    ),
    "node groups": (
        {
            "agent": {
                "tolerations": [],
                "nodeGroups": [
                    {"name": "gpu", "nodeSelector": {"gpu": "yes"}, "tolerations": [{"operator": "Exists"}]},
                    {
                        "name": "old",
                        "nodeSelector": {"old": "yes"},
                        "preset": "k3s",
                        "configz": {"enabled": True},
                        "period": 1,
                    },
                    {
                        "name": "rte",
                        "nodeSelector": {"rte": "yes"},
                        "mode": "rte",
                        "exclude": {"*": ["memory"]},
                        "removeStartupTaint": True,
                    },
                    {"name": "direct", "directMode": True},
                ],
            }
        },
        ALL_APIS,
    ),
    "names that are numbers": ({"fullnameOverride": "1", "nameOverride": "2"}, PLAIN),
    "labels that are words of YAML": (
        {"commonLabels": {"a": "true", "b": "1"}, "commonAnnotations": {"c": "", "d": "no"}},
        PLAIN,
    ),
    "null removes": ({"agent": {"resources": {"limits": None}, "nodeSelector": {"kubernetes.io/os": None}}}, PLAIN),
    "a namespace": ({"namespace": {"create": True, "labels": {"team": "a"}}, "namespaceOverride": "numa"}, PLAIN),
    "no rights": ({"rbac": {"create": False}, **MONITORED}, ALL_APIS),
    "accounts of others": (
        {"agent": {"serviceAccount": {"create": False, "name": "theirs"}}, "rbac": {"create": True}},
        ALL_APIS,
    ),
    "the network of the host": ({"agent": {"hostNetwork": True}, "scheduler": {"hostNetwork": True}}, ALL_APIS),
    **{f"preset {name}": (_preset(name), PLAIN) for name in LAYOUTS},
}
