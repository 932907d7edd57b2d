"""Values of an installation that can be used, made from the model: each field is left out or gets a value of its type.
Pieces of Kubernetes objects are sampled from valid ones, so that schemas and API servers take what is rendered."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from msgspec import inspect

from numalign.api.errors import BadObject
from numalign.deploy import values
from numalign.deploy.model import Values

Object = dict[str, Any]
MOST_FIELDS: Final = 5
TEXTS: Final[SearchStrategy[dict[str, str]]] = st.dictionaries(
    st.sampled_from(["example.com/team", "tier", "zone.example.com/a-b"]), st.sampled_from(["a", "B-2", "true", "1"])
)
FRAGMENTS: Final[dict[str, SearchStrategy[Any]]] = {
    "resources": st.sampled_from([{}, {"requests": {"cpu": "1"}}, {"limits": {"cpu": 2, "memory": "1Gi"}}]),
    "affinity": st.sampled_from(
        [
            {},
            {
                "nodeAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "weight": 5,
                            "preference": {
                                "matchExpressions": [{"key": "numa", "operator": "In", "values": ["a & b"]}]
                            },
                        }
                    ]
                }
            },
        ]
    ),
    "tolerations": st.sampled_from(
        [[], [{"operator": "Exists"}], [{"key": "gpu", "effect": "NoExecute", "tolerationSeconds": 100000000}]]
    ),
    "securityContext": st.sampled_from([{}, {"readOnlyRootFilesystem": False}]),
    "podSecurityContext": st.sampled_from([{}, {"fsGroup": 10000000}, {"seLinuxOptions": {"type": "spc_t"}}]),
    "extraEnv": st.sampled_from([[], [{"name": "HTTPS_PROXY", "value": "http://proxy:3128/?a=<b>&c"}]]),
    "extraVolumes": st.sampled_from([[], [{"name": "more", "emptyDir": {"sizeLimit": "1Gi"}}]]),
    "extraVolumeMounts": st.sampled_from([[], [{"name": "sys", "mountPath": "/more"}]]),
    "initContainers": st.sampled_from([[], [{"name": "first", "image": "x", "command": ["sh", "-c", "true"]}]]),
    "topologySpreadConstraints": st.sampled_from(
        [[], [{"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]]
    ),
    "updateStrategy": st.sampled_from([{}, {"rollingUpdate": {"maxUnavailable": 1}}]),
    "issuerRef": st.sampled_from([{"name": "ca"}, {"name": "ca", "kind": "ClusterIssuer"}]),
    "ingressFrom": st.sampled_from([[], [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}]]),
    "relabelings": st.sampled_from([[], [{"action": "labeldrop", "regex": "pod"}]]),
    "metricRelabelings": st.sampled_from([[], [{"action": "drop", "sourceLabels": ["le"]}]]),
    "tlsConfig": st.sampled_from([{}, {"serverName": "numalign"}]),
    "additionalRules": st.sampled_from([[], [{"alert": "More", "expr": "up < 1"}]]),
    "exclude": st.sampled_from([{}, {"resourceExclude": {"*": ["memory"]}}]),
    "extraArgs": st.sampled_from([[], ["--log-format=json"], ["-v", "4"]]),
    "pullSecrets": st.sampled_from([[], ["one"], ["one", "two"]]),
    "imagePullSecrets": st.sampled_from([[], ["all"], ["one"]]),
    "operator": st.just({}),
    "config": st.sampled_from(
        [
            {},
            {"leaderElection": {"leaderElect": True, "leaseDuration": "1m", "resourceName": "other"}},
            {"leaderElection": {"resourceNamespace": "kube-system"}, "podMaxBackoffSeconds": 10000000},
            {"leaderElection": {"leaderElect": False}},
            {"profiles": [{"schedulerName": "a"}, {"schedulerName": "b", "percentageOfNodesToScore": 0}]},
            {"clientConnection": {"qps": 12.5, "burst": 20}, "delayCacheUntilActive": False},
        ]
    ),
    "bearerTokenFile": st.sampled_from(["", "/token"]),
    "registry": st.sampled_from(["", "registry.example.com:5000/mirror"]),
    "imageRegistry": st.sampled_from(["", "registry.example.com:5000/mirror"]),
    "repository": st.sampled_from(["numalign/scheduler", "a/b"]),
    "tag": st.sampled_from(["", "v1", "2024.1"]),
    "imageTag": st.sampled_from(["", "v2"]),
    "bindAddress": st.sampled_from(["0.0.0.0", "::"]),
    "priorityClassName": st.sampled_from(["", "system-node-critical", "own"]),
    "seLinuxType": st.sampled_from(["spc_t", "container_device_plugin_t"]),
    "secretName": st.sampled_from(["", "certificate"]),
    "clientCaSecret": st.sampled_from(["", "clients"]),
    "clusterIp": st.sampled_from(["", "10.96.0.99", "fd00::1"]),
    "resourceNamespace": st.sampled_from(["", "leases"]),
    "resourceName": st.sampled_from(["", "numalign.lease"]),
    "namespaceOverride": st.sampled_from(["", "other"]),
    "nameOverride": st.sampled_from(["", "numa", "n" * 63]),
    "fullnameOverride": st.sampled_from(["", "numa", "a" * 39 + "-b", "long-" * 12 + "x"]),
    "kubeletDir": st.sampled_from(["", "/var/lib/kubelet", "/srv/kubelet"]),
    "kubeletConfig": st.sampled_from(["", "/etc/kubelet.yaml"]),
    "podResourcesSocket": st.sampled_from(["", "/run/pod-resources/kubelet.sock", "/var/lib/kubelet/p/s.sock"]),
    "certificateAuthority": st.sampled_from(["", "/etc/ca.crt"]),
    "path": st.sampled_from(["/etc/kubernetes", "/opt/kubelet.conf"]),
}


def documents() -> SearchStrategy[Object]:
    """Values files that can be used."""
    return _of(inspect.type_info(Values), "").filter(_usable)


def _usable(document: Object) -> bool:
    try:
        values.read(document)
    except BadObject:
        return False
    return True


def _of(info: inspect.Type, name: str) -> SearchStrategy[Any]:
    if name in FRAGMENTS:
        return FRAGMENTS[name]
    match info:
        case inspect.StructType():
            return _struct(info)
        case inspect.ListType():
            return st.lists(_of(info.item_type, ""), max_size=2)
        case inspect.DictType():
            return TEXTS
        case inspect.BoolType():
            return st.booleans()
        case inspect.LiteralType():
            return st.sampled_from(info.values)
        case inspect.IntType():
            return st.integers(info.ge or 0, min(info.le or 100, 1 << 20))
        case inspect.StrType():
            return st.sampled_from(_texts(info.pattern or ""))
    raise AssertionError(f"no values for {info}")


def _texts(pattern: str) -> list[str]:
    if "sha256" in pattern:
        return ["", "sha256:" + "0123456789abcdef" * 4]
    return ["20s", "1m30s"] if "ms|s" in pattern else ["a", "some-name", "x1"]


def _struct(info: inspect.StructType) -> SearchStrategy[Object]:
    """A few fields at a time, and those without a default."""
    needed = {each.encode_name: _of(each.type, each.encode_name) for each in info.fields if each.required}
    others = {each.encode_name: each.type for each in info.fields if not each.required}
    chosen = st.lists(st.sampled_from(sorted(others)), unique=True, max_size=MOST_FIELDS) if others else st.just([])
    return chosen.flatmap(
        lambda names: st.fixed_dictionaries(needed | {name: _of(others[name], name) for name in names})
    )
