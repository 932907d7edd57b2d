"""Generates pods: those on nodes, and those to place.

The frequency of each feature is drawn once per case, so that some clusters are full of anti-affinity and some have
none."""

from __future__ import annotations

from random import Random
from typing import Final

from numalign.oracle.generate.draws import chance, some, weighted
from numalign.oracle.kubescheduler.generate import affinities, amounts, claims, nodes, words
from numalign.oracle.kubescheduler.generate.words import Object

FEATURES: Final = (
    "selector",
    "node affinity",
    "pod affinity",
    "pod anti-affinity",
    "spread",
    "ports",
    "volumes",
    "taints",
)
PHASES: Final = {"Running": 8.0, "Pending": 2.0, "Succeeded": 0.5, "Failed": 0.5}
LONG_AGO: Final = "2026-01-01T00:00:00Z"


class Mixture:
    """How often a pod has each feature. Clusters with a single feature leave more nodes to score."""

    def __init__(self, rng: Random) -> None:
        self.shares = {feature: rng.choice((0.0, 0.05, 0.2, 0.5)) for feature in FEATURES}
        if chance(rng, 0.3):
            self.shares = {**dict.fromkeys(FEATURES, 0.0), rng.choice((*FEATURES, "volumes", "volumes")): 0.9}
        self.shares["taints"] = rng.choice((0.1, 0.5, 0.9))
        self._elsewhere = rng.choice((0.1, 0.3, 0.8))

    def namespace(self, rng: Random) -> str:
        """Mostly the same namespace: topology spread counts the pods of one namespace."""
        if not chance(rng, self._elsewhere):
            return words.NAMESPACES[0]
        return weighted(rng, {**dict.fromkeys(words.NAMESPACES, 5.0), words.UNKNOWN_NAMESPACE: 0.5})


class Drawn:
    """What pods can name: nodes, claims, controllers."""

    def __init__(self, names: list[str], claims: list[Object], owners: list[Object]) -> None:
        self.names = names
        self.claims = claims
        self.owners = owners


def pod(rng: Random, name: str, mixture: Mixture, drawn: Drawn) -> Object:
    """A pod that waits for a node."""
    metadata = {"name": name, "namespace": mixture.namespace(rng), "uid": f"uid-{name}"}
    made: Object = {"metadata": {**metadata, "labels": words.labels(rng, words.POD_LABELS, 0.6)}, "spec": {}}
    made["spec"] = {
        **amounts.containers(rng),
        "priority": rng.choice((0, 0, 5, 100)),
    }
    _own(rng, made, drawn)
    _place(rng, made, mixture, drawn)
    return made


def assigned(rng: Random, name: str, mixture: Mixture, drawn: Drawn) -> Object:
    """A pod on a node, which may be gone; running, ended or terminating."""
    made = pod(rng, name, mixture, drawn)
    made["spec"]["nodeName"] = rng.choice(drawn.names) if chance(rng, 0.98) else "gone"
    made["status"] = {"phase": weighted(rng, PHASES)}
    if chance(rng, 0.06):
        made["metadata"]["deletionTimestamp"] = LONG_AGO
    if chance(rng, 0.1):
        made["status"] |= amounts.resized(rng, made["spec"])
    return made


def _place(rng: Random, made: Object, mixture: Mixture, drawn: Drawn) -> None:
    spec, affinity = made["spec"], {}
    features = {feature for feature, share in mixture.shares.items() if chance(rng, share)}
    if "selector" in features:
        spec["nodeSelector"] = affinities.node_selector(rng)
    if "node affinity" in features:
        affinity["nodeAffinity"] = affinities.node_affinity(rng, drawn.names)
    if "pod affinity" in features:
        affinity["podAffinity"] = affinities.pod_affinity(rng, required=0.5)
    if "pod anti-affinity" in features:
        affinity["podAntiAffinity"] = affinities.pod_affinity(rng, required=0.5)
    if affinity:
        spec["affinity"] = affinity
    if "spread" in features:
        spec["topologySpreadConstraints"] = affinities.spread_constraints(rng)
    if "taints" in features:
        spec["tolerations"] = affinities.tolerations(rng)
    if "volumes" in features:
        spec["volumes"] = claims.of_pod(rng, made["metadata"]["namespace"], drawn.claims)
    if "ports" in features:
        _ports(rng, spec)
    _rarities(rng, spec, drawn)


def _ports(rng: Random, spec: Object) -> None:
    for each in some(rng, (*spec["containers"], *spec.get("initContainers", ())), 0.7):
        each["ports"] = [_port(rng) for _ in range(rng.choice((1, 1, 2)))]


def _port(rng: Random) -> Object:
    made: Object = {"containerPort": 80, "protocol": weighted(rng, {"TCP": 5.0, "UDP": 1.0})}
    if chance(rng, 0.85):
        made["hostPort"] = rng.choice((8080, 8081, 8082, 8083))
    if chance(rng, 0.4):
        made["hostIP"] = rng.choice(("127.0.0.1", "10.0.0.1", "0.0.0.0", ""))
    return made


def _rarities(rng: Random, spec: Object, drawn: Drawn) -> None:
    """Rare fields: a node name, and fields that only some kubelets know."""
    if chance(rng, 0.01):
        spec["nodeName"] = rng.choice(drawn.names)
    if chance(rng, 0.04):
        spec |= {"hostNetwork": True, "hostUsers": False}
    if chance(rng, 0.03):
        spec["containers"][0]["restartPolicyRules"] = [{"action": rng.choice(("Restart", "RestartAllContainers"))}]
    if chance(rng, 0.03):
        spec["containers"][0]["volumeMounts"] = [{"name": "v0", "mountPath": "/v", "bindMountOptions": ["noexec"]}]
    if chance(rng, 0.002):
        spec["resourceClaims"] = [{"name": "device", "resourceClaimName": "missing"}]
    if chance(rng, 0.01):
        spec["containers"][0].setdefault("resources", {}).setdefault("requests", {})[nodes.GPU] = "64"


def _own(rng: Random, made: Object, drawn: Drawn) -> None:
    """Some pods belong to a controller and mostly have the labels that it selects."""
    if not drawn.owners or not chance(rng, 0.5):
        return
    owner = rng.choice(drawn.owners)
    made["metadata"]["ownerReferences"] = [owner["reference"]]
    made["metadata"]["namespace"] = owner["namespace"]
    if chance(rng, 0.9):
        made["metadata"]["labels"] |= owner["labels"]
