"""The kubelet's admission checks of node affinity and taints.

`loop` calls `misfit` for pods that fit the node's resources. The kubelet checks affinity after the resources and before
host ports (kubelet spec 1). Of taints, it checks NoExecute only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from numalign.api.objects.node import Taint
from numalign.api.objects.pod import Pod, Toleration
from numalign.kubelet.predicates import Lacking
from numalign.simulator.trees import Tree, at

AFFINITY = Lacking("NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector")
TAINT = Lacking("TaintToleration", "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate")
NO_EXECUTE = "NoExecute"


def misfit(pod: Pod, spec: Tree, labels: Mapping[str, str], taints: Iterable[Taint]) -> Lacking | None:
    """Why the node rejects the pod. `spec` is the whole spec; `pod` has the part that admission reads."""
    selector = pod.spec.node_selector
    chosen = all(labels.get(key) == value for key, value in selector.items())
    if not chosen or not _required(spec, pod.spec.node_name, labels):
        return AFFINITY
    if any(taint.effect == NO_EXECUTE and not _tolerated(taint, pod.spec.tolerations) for taint in taints):
        return TAINT
    return None


def _required(spec: Tree, name: str, labels: Mapping[str, str]) -> bool:
    terms = at(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    return terms is None or any(_term(term, name, labels) for term in terms)


def _term(term: Mapping[str, Any], name: str, labels: Mapping[str, str]) -> bool:
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False  # an empty term matches nothing
    return all(_matches(each, labels) for each in expressions) and all(
        _matches(each, {"metadata.name": name}) for each in fields
    )


def _matches(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value, values = labels.get(expression.get("key", "")), expression.get("values") or []
    match expression.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return _numbers(value, values) and int(value or 0) > int(values[0])
        case "Lt":
            return _numbers(value, values) and int(value or 0) < int(values[0])
    return False


def _numbers(value: str | None, values: list[str]) -> bool:
    texts = [value or "", *values]
    return len(values) == 1 and all(text.removeprefix("-").isdecimal() for text in texts)


def _tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    return any(_tolerates(each, taint) for each in tolerations)


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in ("", taint.effect):
        return False
    if toleration.key == "":
        return toleration.operator == "Exists"
    return toleration.key == taint.key and (toleration.operator == "Exists" or toleration.value == taint.value)
