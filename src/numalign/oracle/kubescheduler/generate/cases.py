"""Generates and shrinks cases for kube-scheduler's plugins: a small cluster, a profile, and pods to place.

`sources` passes `draw` and `smaller` to campaigns. One cluster serves many pods, each on its own. Some questions remove
pods from nodes or add pods, as preemption and nominated pods do. When a case shrinks, required parts stay, and
questions about removed nodes and pods are removed as well."""

from collections.abc import Iterator
from random import Random
from typing import Any, Final

from numalign.oracle.harness import shrink
from numalign.oracle.harness.divergence import Case
from numalign.oracle.harness.draws import chance, some
from numalign.oracle.kubescheduler.generate import nodes, pods
from numalign.oracle.kubescheduler.generate import volumes as storage
from numalign.oracle.kubescheduler.generate.nodes import Object
from numalign.oracle.kubescheduler.generate.pods import FeatureRates, NamedObjects

NEEDED: Final = frozenset({"questions", "nodes", "containers", "nodeSelectorTerms", "values", "resources", "shape"})
"""Lists that are never empty."""
OPEN: Final = frozenset(
    (
        *("snapshot", "labels", "annotations", "affinity", "podAffinity", "podAntiAffinity", "nodeAffinity"),
        *("requests", "allocatable", "nodeSelector", "matchLabels"),
    )
)
"""Objects from which any entry can be removed."""
OPTIONAL: Final = frozenset(
    (
        *("profile", "what_if", "removed", "added"),
        *("unschedulable", "taints", "images", "declaredFeatures"),
        *("initContainers", "overhead", "resources", "ports", "hostIP", "restartPolicyRules", "volumeMounts"),
        *("affinity", "nodeSelector", "tolerations", "effect", "topologySpreadConstraints", "minDomains"),
        *("matchLabelKeys", "nodeAffinityPolicy", "nodeTaintsPolicy", "namespaces", "namespaceSelector"),
        *("volumes", "ownerReferences", "deletionTimestamp", "hostNetwork", "hostUsers"),
        *("containerStatuses", "initContainerStatuses", "allocatedResources", "conditions"),
        *("allowedTopologies", "nodeTopology", "maximumVolumeSize"),
    )
)
CLOSED: Final = frozenset({"args"})
"""Settings are removed per plugin only."""


def smaller(case: Case) -> Iterator[Case]:
    """Smaller cases, larger cuts first."""
    for candidate in shrink.candidates(case, _cuts(case)):
        if "snapshot" in candidate and "nodes" in candidate["snapshot"]:
            yield _mended(candidate)


def _cuts(case: Case) -> Iterator[tuple[shrink.Place, Any]]:
    """Places, each with the items or the key to remove there."""
    for place, thing in shrink.objects(case, closed=CLOSED):
        for key, child in thing.items():
            if key in OPTIONAL or (place and place[-1] in OPEN):
                yield place, key
            if isinstance(child, list) and len(child) > (1 if key in NEEDED else 0):
                blocks = (each for each in shrink.blocks(len(child)) if _leaves(key, child, each))
                yield from (((*place, key), slice(*each)) for each in blocks)


def _leaves(key: str, items: list[Any], block: tuple[int, int]) -> bool:
    return key not in NEEDED or len(items) > block[1] - block[0]


def _mended(case: Case) -> Case:
    nodes = {each["metadata"]["name"] for each in case["snapshot"]["nodes"]}
    there = {each["metadata"]["uid"]: each["spec"].get("nodeName") for each in case["snapshot"].get("pods") or ()}
    for question in case["questions"]:
        asked = [each for each in question.pop("what_if", ()) if each["node"] in nodes]
        for each in asked:
            if removed := [uid for uid in each.pop("removed", ()) if there.get(uid) == each["node"]]:
                each["removed"] = removed
        if asked:
            question["what_if"] = asked
    return case


SHAPE: Final = ((0, 0), (30, 4), (70, 9), (100, 10))
RESOURCES: Final = ("cpu", "memory", "ephemeral-storage", nodes.GPU, "hugepages-2Mi")


def generated_profile(rng: Random, names: list[str]) -> Object | None:
    """None is the default profile."""
    drawn = {
        "NodeResourcesFit": _fit(rng),
        "NodeResourcesBalancedAllocation": {"resources": _resources(rng, weighted=False)},
        "NodeAffinity": {"addedAffinity": pods.node_affinity(rng, names) or None},
        "PodTopologySpread": _spread(rng),
        "InterPodAffinity": {
            "hardPodAffinityWeight": rng.choice((0, 1, 10, 100)),
            "ignorePreferredTermsOfExistingPods": chance(rng, 0.3),
        },
        "VolumeBinding": {"shape": _shape(rng)},
    }
    chosen = {name: args for name, args in drawn.items() if chance(rng, 0.25)}
    if not chosen:
        return None
    return {"pluginConfig": [{"name": name, "args": _typed(name, args)} for name, args in chosen.items()]}


def _typed(name: str, args: Object) -> Object:
    given = {key: value for key, value in args.items() if value is not None}
    return {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": f"{name}Args", **given}


def _fit(rng: Random) -> Object:
    kind = rng.choice(("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"))
    strategy: Object = {"type": kind, "resources": _resources(rng, weighted=True)}
    if kind == "RequestedToCapacityRatio":
        strategy["requestedToCapacityRatio"] = {"shape": _shape(rng)}
    made: Object = {"scoringStrategy": strategy}
    if chance(rng, 0.3):
        made["ignoredResources"] = [nodes.NIC]
    if chance(rng, 0.2):
        made["ignoredResourceGroups"] = ["vendor.com"]
    return made


def _resources(rng: Random, *, weighted: bool) -> list[Object]:
    picked = some(rng, RESOURCES, 0.5) or ["cpu"]
    return [{"name": name, "weight": rng.choice((1, 2, 3, 7, 100)) if weighted else 1} for name in picked]


def _shape(rng: Random) -> list[Object]:
    points = some(rng, SHAPE, 0.6) or [SHAPE[-1]]
    scores = [score for _, score in points]
    if chance(rng, 0.5):
        scores = [10 - score for score in scores]
    return [{"utilization": point, "score": score} for (point, _), score in zip(points, scores, strict=True)]


def _spread(rng: Random) -> Object:
    keys = some(rng, list(nodes.SPREAD_KEYS), 0.4)
    constraints = [
        {
            "maxSkew": rng.choice((1, 2, 5)),
            "topologyKey": key,
            "whenUnsatisfiable": rng.choice(("ScheduleAnyway", "DoNotSchedule")),
        }
        for key in keys
    ]
    return {"defaultingType": "List", "defaultConstraints": constraints}


KINDS: Final = {
    "ReplicaSet": ("replicaSets", "apps/v1"),
    "StatefulSet": ("statefulSets", "apps/v1"),
    "ReplicationController": ("replicationControllers", "v1"),
}


def namespaces(rng: Random) -> list[Object]:
    return [
        {"metadata": {"name": name, "labels": nodes.labels(rng, nodes.NAMESPACE_LABELS, 0.6)}}
        for name in nodes.NAMESPACES
    ]


def service(rng: Random, number: int) -> Object:
    spec: Object = {"selector": nodes.one_label(rng, nodes.POD_LABELS)} if chance(rng, 0.9) else {}
    return {"metadata": {"name": f"s{number}", "namespace": rng.choice(nodes.NAMESPACES)}, "spec": spec}


def controller(rng: Random, number: int) -> tuple[str, Object, Object]:
    """The list that it belongs to, the object, and the owner reference and labels of its pods."""
    kind = rng.choice(list(KINDS))
    collection, version = KINDS[kind]
    name, namespace, labels = f"owner{number}", rng.choice(nodes.NAMESPACES), nodes.one_label(rng, nodes.POD_LABELS)
    selector: Object = labels if kind == "ReplicationController" else {"matchLabels": labels}
    if kind != "ReplicationController" and chance(rng, 0.2):
        selector = nodes.selector(rng, nodes.POD_LABELS)
    made = {
        "metadata": {"name": name, "namespace": namespace, "uid": f"owner-{number}"},
        "spec": {"selector": selector},
    }
    reference = {"apiVersion": version, "kind": kind, "name": name, "uid": f"owner-{number}", "controller": True}
    return collection, made, {"reference": reference, "namespace": namespace, "labels": labels}


FAMILY: Final = "scheduler"
QUESTIONS: Final = 12


def draw(seed: int, number: int) -> tuple[str, Case]:
    """The family and the case with this number."""
    return FAMILY, _CaseBuilder(Random(f"{FAMILY}/{seed}/{number}")).case(f"sched-{seed}-{number}")


class _CaseBuilder:
    """A cluster while it is generated, then the questions about it."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.nodes = [nodes.node(rng, number) for number in range(rng.randint(1, 12))]
        self.names: list[str] = [each["metadata"]["name"] for each in self.nodes]
        self.snapshot: Case = {"nodes": self.nodes, "namespaces": namespaces(rng)}
        if chance(rng, 0.04):
            self.snapshot["deviceClasses"] = [
                {"metadata": {"name": "gpus"}, "spec": {"extendedResourceName": nodes.GPU}}
            ]
        self.snapshot["services"] = [service(rng, number) for number in range(rng.choice((0, 1, 3)))]
        self.mixture = FeatureRates(rng)
        self._store()
        self.drawn = NamedObjects(self.names, self.snapshot["persistentVolumeClaims"], self._owners())
        count = rng.choice((0, 5, 15, 25, 40))
        self.assigned = [pods.assigned(rng, f"p{number}", self.mixture, self.drawn) for number in range(count)]
        self.snapshot["pods"] = self.assigned

    def case(self, name: str) -> Case:
        made: Case = {"id": name}
        profile = generated_profile(self.rng, self.names) if chance(self.rng, 0.4) else None
        if profile is not None:
            made["profile"] = profile
        questions = [self._question(number) for number in range(QUESTIONS)]
        self._make_claims([each["pod"] for each in questions] + self.assigned)
        used = {key: value for key, value in self.snapshot.items() if value}
        return {**made, "snapshot": used, "questions": questions}

    def _store(self) -> None:
        """Add storage, if pods have volumes."""
        rng = self.rng
        self.snapshot |= {"persistentVolumes": [], "persistentVolumeClaims": []}
        if not self.mixture.shares["volumes"]:
            return
        volumes = [storage.volume(rng, number, self.names) for number in range(rng.randint(2, 10))]
        self.snapshot["persistentVolumes"] = volumes
        self.snapshot["persistentVolumeClaims"] = [
            storage.claim(rng, f"claim{number}", self.mixture.namespace(rng), volumes, self.names)
            for number in range(rng.randint(2, 10))
        ]
        self.snapshot["storageClasses"] = storage.classes(rng)
        self.snapshot["csiNodes"] = [storage.csi_node(rng, name) for name in some(rng, self.names, 0.8)]
        self.snapshot["csiDrivers"] = [storage.csi_driver(rng, name) for name in some(rng, storage.DRIVERS, 0.7)]
        self.snapshot["csiStorageCapacities"] = storage.capacities(rng)
        self.snapshot["volumeAttachments"] = [
            storage.attachment(rng, number, volumes, self.names) for number in range(rng.choice((0, 1, 4)))
        ]

    def _owners(self) -> list[Object]:
        owners = []
        for number in range(self.rng.choice((0, 1, 3))):
            collection, made, owner = controller(self.rng, number)
            self.snapshot.setdefault(collection, []).append(made)
            owners.append(owner)
        return owners

    def _question(self, number: int) -> Object:
        made: Object = {"pod": pods.pod(self.rng, f"q{number}", self.mixture, self.drawn)}
        if chance(self.rng, 0.4):
            names = some(self.rng, self.names, 0.3) or [self.rng.choice(self.names)]
            made["what_if"] = [self._what_if(name, f"{number}-{name}") for name in names]
        return made

    def _what_if(self, node: str, name: str) -> Object:
        there = [each["metadata"]["uid"] for each in self.assigned if _is_on(each, node)]
        made: Object = {"node": node}
        if removed := some(self.rng, there, 0.5):
            made["removed"] = removed
        if chance(self.rng, 0.3):
            made["added"] = [pods.pod(self.rng, f"nominated-{name}", self.mixture, self.drawn)]
        return made

    def _make_claims(self, with_volumes: list[Object]) -> None:
        """Add the claims of ephemeral volumes, after all pods are known."""
        known = self.snapshot["persistentVolumeClaims"]
        for each in with_volumes:
            known += storage.of_ephemeral(self.rng, each, self.snapshot["persistentVolumes"], self.names)


def _is_on(pod: Object, node: str) -> bool:
    return pod["spec"].get("nodeName") == node and pod["status"]["phase"] in ("Running", "Pending")
