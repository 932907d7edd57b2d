"""Generates pods: those on nodes and those to place, with requests, constraints and resizes in progress.

The frequency of each feature is drawn once per case, so that some clusters are full of anti-affinity and some have
none."""

from random import Random
from typing import Final

from numalign.oracle.harness.draws import chance, some, weighted
from numalign.oracle.kubescheduler.generate import nodes, volumes
from numalign.oracle.kubescheduler.generate.nodes import Object

AMOUNTS: Final = {
    "cpu": ("100m", "250m", "1", "1500m", "2", "0", "333m", "500m"),
    "memory": ("64Mi", "200Mi", "1Gi", "3Gi", "0", "100M", "1536Mi"),
    "ephemeral-storage": ("1Gi", "10Gi", "0"),
}
UNKNOWN: Final = "gpu"
"""Neither native nor extended: the scheduler does not count it."""


def containers(rng: Random) -> Object:
    """Container lists for the spec. A third of all pods have containers without some amounts."""
    count = weighted(rng, {1: 6.0, 2: 3.0, 3: 1.0})
    made: Object = {"containers": [container(rng, f"c{number}") for number in range(count)]}
    if chance(rng, 0.2):
        made["initContainers"] = [_init(rng, f"i{number}") for number in range(rng.choice((1, 1, 2, 3)))]
    if chance(rng, 0.05):
        made["overhead"] = {"cpu": "250m", "memory": "64Mi"}
    if chance(rng, 0.06):
        made["resources"] = {"requests": _native(rng, ("cpu", "memory"))}
    return made


def container(rng: Random, name: str) -> Object:
    made: Object = {"name": name, "image": rng.choice((*nodes.IMAGES, nodes.DIGEST, "other"))}
    if asked := _requests(rng):
        made["resources"] = {"requests": asked}
    return made


def _init(rng: Random, name: str) -> Object:
    made = container(rng, name)
    return {**made, "restartPolicy": "Always"} if chance(rng, 0.5) else made


def _requests(rng: Random) -> dict[str, str]:
    if chance(rng, 0.15):
        return {}
    made = _native(rng, some(rng, ("cpu", "memory"), 0.8))
    if chance(rng, 0.15):
        made |= _native(rng, ("ephemeral-storage",))
    for scalar in some(rng, nodes.SCALARS, 0.05):
        made[scalar] = rng.choice(("2Mi", "64Mi")) if scalar.startswith("hugepages") else str(rng.choice((1, 1, 2, 0)))
    if chance(rng, 0.01):
        made[UNKNOWN] = "1"
    return made


def _native(rng: Random, names: list[str] | tuple[str, ...]) -> dict[str, str]:
    return {name: rng.choice(AMOUNTS[name]) for name in names}


def resized(rng: Random, spec: Object) -> Object:
    """The status of a pod during an in-place resize: allocated resources and current ones."""
    made: Object = {"containerStatuses": [_resized(rng, each) for each in spec["containers"]]}
    if "initContainers" in spec:
        made["initContainerStatuses"] = [_resized(rng, each) for each in spec["initContainers"]]
    if "resources" in spec and chance(rng, 0.5):
        made["resources"] = {"requests": _native(rng, ("cpu", "memory"))}
        if chance(rng, 0.6):
            made["allocatedResources"] = _native(rng, ("cpu", "memory"))
    if chance(rng, 0.3):
        reason = rng.choice(("Infeasible", "Deferred"))
        made["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    return made


def _resized(rng: Random, container: Object) -> Object:
    """Empty amounts are omitted, the object around them is not."""
    made: Object = {"name": container["name"]}
    if allocated := _native(rng, some(rng, ("cpu", "memory"), 0.7)):
        made["allocatedResources"] = allocated
    if chance(rng, 0.7):
        in_force = _native(rng, some(rng, ("cpu", "memory"), 0.8))
        made["resources"] = {"requests": in_force} if in_force else {}
    return made


NODE_WORDS: Final = {
    "disk": ("ssd", "hdd"),
    "cores": ("4", "8", "16", "many"),
    nodes.ZONE: nodes.ZONES,
    "rack": ("1", "2", "3", "4"),
}
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
WEIGHTS: Final = (1, 2, 5, 10, 33, 50, 99, 100)


def node_affinity(rng: Random, names: list[str]) -> Object:
    made: Object = {}
    if chance(rng, 0.6):
        made[REQUIRED] = {"nodeSelectorTerms": [_node_term(rng, names) for _ in range(_few(rng))]}
    if chance(rng, 0.6):
        made[PREFERRED] = [
            {"weight": rng.choice(WEIGHTS), "preference": _node_term(rng, names)} for _ in range(_few(rng))
        ]
    return made


def _node_term(rng: Random, names: list[str]) -> Object:
    by = weighted(rng, {"labels": 7.0, "name": 2.0, "both": 1.0, "nothing": 0.15})
    made: Object = {}
    if by in ("labels", "both"):
        keys = some(rng, list(NODE_WORDS), 0.35) or [rng.choice(list(NODE_WORDS))]
        made["matchExpressions"] = [_node_expression(rng, key) for key in keys]
    if by in ("name", "both"):
        made["matchFields"] = [_node_field(rng, names) for _ in range(weighted(rng, {1: 8.0, 2: 1.0}))]
    return made


def _node_expression(rng: Random, key: str) -> Object:
    if key == "cores" and chance(rng, 0.5):
        return {"key": key, "operator": rng.choice(("Gt", "Lt")), "values": [rng.choice(("4", "7", "8", "15"))]}
    return nodes.expression(rng, key, NODE_WORDS[key])


def _node_field(rng: Random, names: list[str]) -> Object:
    name = rng.choice(names) if chance(rng, 0.9) else "gone"
    return {"key": "metadata.name", "operator": "In" if chance(rng, 0.8) else "NotIn", "values": [name]}


def node_selector(rng: Random) -> dict[str, str]:
    return nodes.one_label(rng, NODE_WORDS)


def pod_affinity(rng: Random, *, required: float) -> Object:
    made: Object = {}
    if chance(rng, required):
        made[REQUIRED] = [_pod_term(rng) for _ in range(_few(rng))]
    if not made or chance(rng, 0.4):
        made[PREFERRED] = [{"weight": rng.choice(WEIGHTS), "podAffinityTerm": _pod_term(rng)} for _ in range(_few(rng))]
    return made


def _pod_term(rng: Random) -> Object:
    made: Object = {"topologyKey": weighted(rng, dict(nodes.SPREAD_KEYS))}
    if chance(rng, 0.96):
        made["labelSelector"] = nodes.selector(rng, nodes.POD_LABELS)
    scope = weighted(rng, {"own": 6.0, "named": 2.0, "selected": 2.0, "both": 0.5, "everywhere": 1.0})
    if scope in ("named", "both"):
        made["namespaces"] = some(rng, (*nodes.NAMESPACES, nodes.UNKNOWN_NAMESPACE), 0.4) or ["default"]
    if scope in ("selected", "both"):
        made["namespaceSelector"] = nodes.selector(rng, nodes.NAMESPACE_LABELS)
    if scope == "everywhere":
        made["namespaceSelector"] = {}
    if chance(rng, 0.05):
        # The API server has merged them into the selector; the plugin ignores them.
        made[rng.choice(("matchLabelKeys", "mismatchLabelKeys"))] = ["version"]
    return made


def spread_constraints(rng: Random) -> list[Object]:
    pairs = {(weighted(rng, dict(nodes.SPREAD_KEYS)), _action(rng)) for _ in range(_few(rng))}
    return [spread_constraint(rng, key, action) for key, action in sorted(pairs)]


def spread_constraint(rng: Random, key: str, action: str) -> Object:
    made: Object = {"maxSkew": weighted(rng, {1: 6.0, 2: 2.0, 5: 1.0}), "topologyKey": key, "whenUnsatisfiable": action}
    if chance(rng, 0.95):
        made["labelSelector"] = nodes.selector(rng, nodes.POD_LABELS)
    if action == "DoNotSchedule" and chance(rng, 0.25):
        made["minDomains"] = rng.randint(1, 4)
    if chance(rng, 0.25):
        made["nodeAffinityPolicy"] = rng.choice(("Honor", "Ignore"))
    if chance(rng, 0.25):
        made["nodeTaintsPolicy"] = rng.choice(("Honor", "Ignore"))
    if "labelSelector" in made and chance(rng, 0.15):
        made["matchLabelKeys"] = some(rng, list(nodes.POD_LABELS), 0.5) or ["version"]
    return made


def tolerations(rng: Random) -> list[Object]:
    return [_toleration(rng) for _ in range(weighted(rng, {1: 5.0, 2: 3.0, 3: 1.0}))]


def _toleration(rng: Random) -> Object:
    if chance(rng, 0.12):
        return {"operator": "Exists", **({"effect": rng.choice(list(nodes.EFFECTS))} if chance(rng, 0.5) else {})}
    key, values = rng.choice(nodes.TAINTS)
    made: Object = {"key": key}
    if chance(rng, 0.4):
        made["operator"] = "Exists"
    else:
        made |= {"operator": "Equal", "value": rng.choice(values)}
    if chance(rng, 0.6):
        made["effect"] = rng.choice(list(nodes.EFFECTS))
    return made


def _action(rng: Random) -> str:
    return weighted(rng, {"DoNotSchedule": 1.0, "ScheduleAnyway": 1.0})


def _few(rng: Random) -> int:
    return weighted(rng, {1: 6.0, 2: 3.0, 3: 1.0})


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


class FeatureRates:
    """How often a pod has each feature. Clusters with a single feature leave more nodes to score."""

    def __init__(self, rng: Random) -> None:
        self.shares = {feature: rng.choice((0.0, 0.05, 0.2, 0.5)) for feature in FEATURES}
        if chance(rng, 0.3):
            self.shares = {**dict.fromkeys(FEATURES, 0.0), rng.choice((*FEATURES, "volumes", "volumes")): 0.9}
        self.shares["taints"] = rng.choice((0.1, 0.5, 0.9))
        self._elsewhere = rng.choice((0.1, 0.3, 0.8))

    def namespace(self, rng: Random) -> str:
        """Most pods get the same namespace, because topology spread counts the pods of one namespace."""
        if not chance(rng, self._elsewhere):
            return nodes.NAMESPACES[0]
        return weighted(rng, {**dict.fromkeys(nodes.NAMESPACES, 5.0), nodes.UNKNOWN_NAMESPACE: 0.5})


class NamedObjects:
    """What pods can name: nodes, claims, controllers."""

    def __init__(self, names: list[str], claims: list[Object], owners: list[Object]) -> None:
        self.names = names
        self.claims = claims
        self.owners = owners


def pod(rng: Random, name: str, mixture: FeatureRates, drawn: NamedObjects) -> Object:
    """A pod that waits for a node."""
    metadata = {"name": name, "namespace": mixture.namespace(rng), "uid": f"uid-{name}"}
    made: Object = {"metadata": {**metadata, "labels": nodes.labels(rng, nodes.POD_LABELS, 0.6)}, "spec": {}}
    made["spec"] = {**containers(rng), "priority": rng.choice((0, 0, 5, 100))}
    _own(rng, made, drawn)
    _place(rng, made, mixture, drawn)
    return made


def assigned(rng: Random, name: str, mixture: FeatureRates, drawn: NamedObjects) -> Object:
    """A pod on a node, which may be gone; running, ended or terminating."""
    made = pod(rng, name, mixture, drawn)
    made["spec"]["nodeName"] = rng.choice(drawn.names) if chance(rng, 0.98) else "gone"
    made["status"] = {"phase": weighted(rng, PHASES)}
    if chance(rng, 0.06):
        made["metadata"]["deletionTimestamp"] = LONG_AGO
    if chance(rng, 0.1):
        made["status"] |= resized(rng, made["spec"])
    return made


def _place(rng: Random, made: Object, mixture: FeatureRates, drawn: NamedObjects) -> None:
    spec, affinity = made["spec"], {}
    features = {feature for feature, share in mixture.shares.items() if chance(rng, share)}
    if "selector" in features:
        spec["nodeSelector"] = node_selector(rng)
    if "node affinity" in features:
        affinity["nodeAffinity"] = node_affinity(rng, drawn.names)
    if "pod affinity" in features:
        affinity["podAffinity"] = pod_affinity(rng, required=0.5)
    if "pod anti-affinity" in features:
        affinity["podAntiAffinity"] = pod_affinity(rng, required=0.5)
    if affinity:
        spec["affinity"] = affinity
    if "spread" in features:
        spec["topologySpreadConstraints"] = spread_constraints(rng)
    if "taints" in features:
        spec["tolerations"] = tolerations(rng)
    if "volumes" in features:
        spec["volumes"] = volumes.of_pod(rng, made["metadata"]["namespace"], drawn.claims)
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


def _rarities(rng: Random, spec: Object, drawn: NamedObjects) -> None:
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


def _own(rng: Random, made: Object, drawn: NamedObjects) -> None:
    """Some pods belong to a controller and mostly have the labels that it selects."""
    if not drawn.owners or not chance(rng, 0.5):
        return
    owner = rng.choice(drawn.owners)
    made["metadata"]["ownerReferences"] = [owner["reference"]]
    made["metadata"]["namespace"] = owner["namespace"]
    if chance(rng, 0.9):
        made["metadata"]["labels"] |= owner["labels"]
