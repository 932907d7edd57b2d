"""Names what about a node keeps a pod away: the taints, the cordon, or the labels that a selector does not find.

The scheduler's `explanations` asks for every node that a plugin refuses, so that nodes with the same obstacle are one
cause; `relax` looks for the change that removes it, and `capacity` names taints. kube-scheduler's own texts name none
of them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from numalign.api.objects import nodematching
from numalign.api.objects.node import Node, Taint
from numalign.api.objects.pod import NodeSelectorRequirement, NodeSelectorTerm, Pod, Toleration
from numalign.placement.explain.reasons import Obstacle
from numalign.placement.rules.clusterstate import TaintKey
from numalign.placement.rules.nodes import nodespec
from numalign.placement.rules.nodes.nodeaffinity import NodeAffinity
from numalign.placement.rules.nodes.nodespec import NodeUnschedulable, TaintToleration

SYMBOLS: Final = {"In": "in", "NotIn": "notin", "Gt": ">", "Lt": "<"}


def of(plugin: str, pod: Pod, node: Node) -> Obstacle | None:
    """None: the plugin refuses for something that is not written on the node."""
    if plugin == NodeUnschedulable.name:
        return Obstacle(cordoned=True)
    if plugin == TaintToleration.name:
        return Obstacle(taints=tuple(map(taint_text, untolerated(node.spec.taints, pod.spec.tolerations))))
    unmatched = tuple(_unmatched(pod, node)) if plugin == NodeAffinity.name else ()
    return Obstacle(labels=unmatched) if unmatched else None


def untolerated(taints: Sequence[Taint], own: Sequence[Toleration]) -> tuple[TaintKey, ...]:
    keys = ((taint.key, taint.value, taint.effect) for taint in taints if taint.effect in nodespec.KEEPS_AWAY)
    return tuple(key for key in keys if not nodematching.tolerated(*key, own))


def taint_text(taint: TaintKey) -> str:
    """As `kubectl taint` writes it."""
    key, value, effect = taint
    return f"{key}={value}:{effect}" if value else f"{key}:{effect}"


def _unmatched(pod: Pod, node: Node) -> Iterator[str]:
    """The requirements on labels that the node does not meet, as selectors of kubectl; alternatives joined by `or`."""
    labels = node.metadata.labels
    yield from (f"{key}={value}" for key, value in pod.spec.node_selector.items() if labels.get(key) != value)
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    terms = affinity.required.node_selector_terms if affinity and affinity.required else ()
    if terms and not any(nodematching.matches(term, node.metadata.name, labels) for term in terms):
        missed = [missing for term in terms if (missing := _missing(term, labels))]
        if len(missed) == len(terms):
            yield " or ".join(dict.fromkeys(missed))


def _missing(term: NodeSelectorTerm, labels: Mapping[str, str]) -> str:
    if not nodematching.is_valid(term):
        return ""
    failed = [each for each in term.match_expressions if not nodematching.holds(each, labels.get(each.key))]
    return ",".join(map(_requirement_text, failed))


def _requirement_text(asked: NodeSelectorRequirement) -> str:
    match asked.operator:
        case "Exists":
            return asked.key
        case "DoesNotExist":
            return f"!{asked.key}"
        case "In" if len(asked.values) == 1:
            return f"{asked.key}={asked.values[0]}"
        case "Gt" | "Lt":
            return f"{asked.key}{SYMBOLS[asked.operator]}{asked.values[0]}"
    return f"{asked.key} {SYMBOLS[asked.operator]} ({', '.join(asked.values)})"
