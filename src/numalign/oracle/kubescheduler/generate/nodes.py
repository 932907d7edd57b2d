"""Generates nodes, and holds the vocabulary of all generated objects.

Selectors are drawn over the same labels that objects have. A small vocabulary makes matches and near misses common."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

from numalign.oracle.harness.draws import chance, some, weighted

Object = dict[str, Any]

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
OLD_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
OLD_REGION: Final = "failure-domain.beta.kubernetes.io/region"
ZONES: Final = ("us-east1-a", "us-east1-b", "us-east1-c")
"""In the form that translations of in-tree volumes expect."""
REGIONS: Final = ("r1", "r2")

NAMESPACES: Final = ("default", "team-a", "team-b")
UNKNOWN_NAMESPACE: Final = "unknown"
"""A namespace with pods but without a Namespace object."""

POD_LABELS: Final[Mapping[str, Sequence[str]]] = {
    "app": ("web", "db", "cache"),
    "tier": ("front", "back"),
    "version": ("v1", "v2"),
}
NAMESPACE_LABELS: Final[Mapping[str, Sequence[str]]] = {"team": ("a", "b"), "env": ("prod", "test")}
SPREAD_KEYS: Final[Mapping[str, float]] = {HOSTNAME: 4.0, ZONE: 5.0, REGION: 1.0, "rack": 1.0, "nowhere": 0.1}


def labels(rng: Random, words: Mapping[str, Sequence[str]], share: float) -> dict[str, str]:
    return {key: rng.choice(values) for key, values in words.items() if chance(rng, share)}


def selector(rng: Random, words: Mapping[str, Sequence[str]]) -> Object:
    """A selector: most have labels, some have expressions, and a few match everything."""
    style = weighted(rng, {"labels": 6.0, "expressions": 3.0, "both": 0.7, "everything": 0.6})
    made: Object = {}
    if style in ("labels", "both"):
        made["matchLabels"] = labels(rng, words, 0.5) or one_label(rng, words)
    if style in ("expressions", "both"):
        keys = some(rng, list(words), 0.5) or [rng.choice(list(words))]
        made["matchExpressions"] = [expression(rng, key, words[key]) for key in keys]
    return made


def one_label(rng: Random, words: Mapping[str, Sequence[str]]) -> dict[str, str]:
    key = rng.choice(list(words))
    return {key: rng.choice(words[key])}


def expression(rng: Random, key: str, values: Sequence[str]) -> Object:
    operator = weighted(rng, {"In": 4.0, "NotIn": 2.0, "Exists": 1.0, "DoesNotExist": 1.0})
    if operator in ("Exists", "DoesNotExist"):
        return {"key": key, "operator": operator}
    return {"key": key, "operator": operator, "values": some(rng, values, 0.5) or [rng.choice(values)]}


TAINTS: Final = (("dedicated", ("gpu", "infra")), ("flaky", ("",)), ("node.kubernetes.io/unschedulable", ("",)))
EFFECTS: Final = {"NoSchedule": 4.0, "PreferNoSchedule": 4.0, "NoExecute": 2.0}
IMAGES: Final = ("registry.example/web:v1", "registry.example/web", "db:latest", "db", "example.com:5000/cache")
DIGEST: Final = "registry.example/web@sha256:" + "a" * 64
FEATURES: Final = (
    "RestartAllContainersOnContainerExits",
    "UserNamespacesHostNetworkSupport",
    "VolumeBindMountOptions",
    "GuaranteedQoSPodCPUResize",
)
MEMORY: Final = (*("4Gi", "16Gi", "33554431Ki", "15872Mi") * 8, "1Ei")
"""The last one is so large that a hundred times as much does not fit into 64 bits."""
GPU: Final = "vendor.com/gpu"
NIC: Final = "vendor.com/nic"
SCALARS: Final = (GPU, NIC, "hugepages-2Mi", "batch.kubernetes.io/slots", "attachable-volumes-csi-fast.example")


def node(rng: Random, number: int) -> Object:
    name = f"n{number}"
    metadata = {"name": name, "labels": _labels(rng, name), "uid": f"node-{number}"}
    status: Object = {"allocatable": _allocatable(rng)}
    if images := [_image(rng, each) for each in some(rng, (*IMAGES, DIGEST), 0.3)]:
        status["images"] = images
    if features := some(rng, FEATURES, 0.3):
        status["declaredFeatures"] = features
    return {"metadata": metadata, "spec": _spec(rng), "status": status}


def _labels(rng: Random, name: str) -> dict[str, str]:
    made = {"cores": rng.choice(("4", "8", "16", "many", "007")), "disk": rng.choice(("ssd", "hdd"))}
    made = {key: value for key, value in made.items() if chance(rng, 0.7)}
    if chance(rng, 0.95):
        made[HOSTNAME] = name if chance(rng, 0.97) else "n0"
    if chance(rng, 0.92):
        made[ZONE] = rng.choice(ZONES)
    if chance(rng, 0.6):
        made[REGION] = rng.choice(REGIONS)
    if chance(rng, 0.05):
        made[OLD_ZONE] = rng.choice(ZONES)
        made[OLD_REGION] = rng.choice(REGIONS)
    if chance(rng, 0.5):
        made["rack"] = rng.choice(("1", "2", "3", "4"))
    return made


def _spec(rng: Random) -> Object:
    made: Object = {}
    if chance(rng, 0.08):
        made["unschedulable"] = True
    if taints := [_taint(rng, key, values) for key, values in TAINTS if chance(rng, 0.13)]:
        made["taints"] = taints
    return made


def _taint(rng: Random, key: str, values: tuple[str, ...]) -> Object:
    value = rng.choice(values)
    return {"key": key, **({"value": value} if value else {}), "effect": weighted(rng, EFFECTS)}


def _allocatable(rng: Random) -> dict[str, str]:
    made = {"cpu": rng.choice(("2", "4", "7910m", "16")), "memory": rng.choice(MEMORY)}
    if chance(rng, 0.97):
        made["pods"] = weighted(rng, {"110": 9.0, "8": 1.0, "3": 0.5, "1": 0.2, "0": 0.2})
    if chance(rng, 0.7):
        made["ephemeral-storage"] = rng.choice(("100Gi", "1Gi", "0", "93211435Ki"))
    for scalar in some(rng, SCALARS, 0.35):
        made[scalar] = "256Mi" if scalar.startswith("hugepages") else str(rng.choice((0, 1, 2, 4, 8)))
    # Rarely a node lacks an amount, or has zero of it.
    if chance(rng, 0.03):
        made[rng.choice(("cpu", "memory"))] = "0"
    return made


def _image(rng: Random, name: str) -> Object:
    names = [name, DIGEST] if chance(rng, 0.1) else [name]
    return {"names": names, "sizeBytes": rng.choice((0, 5 << 20, 60 << 20, 300 << 20, 900 << 20, 1234567891))}
