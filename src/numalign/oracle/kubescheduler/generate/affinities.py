"""Generates constraints of pods: node selectors and affinity, pod affinity, topology spread, tolerations."""

from __future__ import annotations

from random import Random
from typing import Final

from numalign.oracle.generate.draws import chance, some, weighted
from numalign.oracle.kubescheduler.generate import nodes, words
from numalign.oracle.kubescheduler.generate.words import Object

NODE_WORDS: Final = {
    "disk": ("ssd", "hdd"),
    "cores": ("4", "8", "16", "many"),
    words.ZONE: words.ZONES,
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
    return words.expression(rng, key, NODE_WORDS[key])


def _node_field(rng: Random, names: list[str]) -> Object:
    name = rng.choice(names) if chance(rng, 0.9) else "gone"
    return {"key": "metadata.name", "operator": "In" if chance(rng, 0.8) else "NotIn", "values": [name]}


def node_selector(rng: Random) -> dict[str, str]:
    return words.one_label(rng, NODE_WORDS)


def pod_affinity(rng: Random, *, required: float) -> Object:
    made: Object = {}
    if chance(rng, required):
        made[REQUIRED] = [_pod_term(rng) for _ in range(_few(rng))]
    if not made or chance(rng, 0.4):
        made[PREFERRED] = [{"weight": rng.choice(WEIGHTS), "podAffinityTerm": _pod_term(rng)} for _ in range(_few(rng))]
    return made


def _pod_term(rng: Random) -> Object:
    made: Object = {"topologyKey": weighted(rng, dict(words.SPREAD_KEYS))}
    if chance(rng, 0.96):
        made["labelSelector"] = words.selector(rng, words.POD_LABELS)
    scope = weighted(rng, {"own": 6.0, "named": 2.0, "selected": 2.0, "both": 0.5, "everywhere": 1.0})
    if scope in ("named", "both"):
        made["namespaces"] = some(rng, (*words.NAMESPACES, words.UNKNOWN_NAMESPACE), 0.4) or ["default"]
    if scope in ("selected", "both"):
        made["namespaceSelector"] = words.selector(rng, words.NAMESPACE_LABELS)
    if scope == "everywhere":
        made["namespaceSelector"] = {}
    if chance(rng, 0.05):
        # The API server has merged them into the selector; the plugin ignores them.
        made[rng.choice(("matchLabelKeys", "mismatchLabelKeys"))] = ["version"]
    return made


def spread_constraints(rng: Random) -> list[Object]:
    pairs = {(weighted(rng, dict(words.SPREAD_KEYS)), _action(rng)) for _ in range(_few(rng))}
    return [spread_constraint(rng, key, action) for key, action in sorted(pairs)]


def spread_constraint(rng: Random, key: str, action: str) -> Object:
    made: Object = {"maxSkew": weighted(rng, {1: 6.0, 2: 2.0, 5: 1.0}), "topologyKey": key, "whenUnsatisfiable": action}
    if chance(rng, 0.95):
        made["labelSelector"] = words.selector(rng, words.POD_LABELS)
    if action == "DoNotSchedule" and chance(rng, 0.25):
        made["minDomains"] = rng.randint(1, 4)
    if chance(rng, 0.25):
        made["nodeAffinityPolicy"] = rng.choice(("Honor", "Ignore"))
    if chance(rng, 0.25):
        made["nodeTaintsPolicy"] = rng.choice(("Honor", "Ignore"))
    if "labelSelector" in made and chance(rng, 0.15):
        made["matchLabelKeys"] = some(rng, list(words.POD_LABELS), 0.5) or ["version"]
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
