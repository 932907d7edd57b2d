"""Label selectors and node selectors of API objects, as predicates over labels.

The controllers of workloads, budgets and claims use it. Selectors in query strings belong to the API server. A selector
that cannot be parsed matches nothing (kube-scheduler spec 1.2)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from numalign.simulator.trees import Tree

Labels = Mapping[str, str]
Selects = Callable[[Labels], bool]

NAME_FIELD: Final = "metadata.name"


def selector(written: Tree | None) -> Selects:
    """The selector of a workload. An absent or empty selector matches nothing."""
    wanted: Labels = (written or {}).get("matchLabels") or {}
    expressions: Sequence[Tree] = (written or {}).get("matchExpressions") or ()
    if not wanted and not expressions:
        return lambda labels: False
    return lambda labels: wanted.items() <= labels.items() and all(_holds(each, labels) for each in expressions)


def everything_if_empty(written: Tree | None) -> Selects:
    """The selector of a PodDisruptionBudget: `{}` matches all pods, an absent one matches none."""
    if written is not None and not written.get("matchLabels") and not written.get("matchExpressions"):
        return lambda labels: True
    return selector(written)


def node_matches(spec: Tree, node: Tree) -> bool:
    """Whether the pod's nodeSelector and required node affinity match the node."""
    labels: Labels = node["metadata"].get("labels") or {}
    if not (spec.get("nodeSelector") or {}).items() <= labels.items():
        return False
    required = required_affinity(spec)
    if required is None:
        return True
    fields = {NAME_FIELD: node["metadata"]["name"]}
    return any(_term_holds(term, labels, fields) for term in required.get("nodeSelectorTerms") or ())


def required_affinity(spec: Tree) -> Tree | None:
    node_affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required: Tree | None = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return required


def _term_holds(term: Tree, labels: Labels, fields: Labels) -> bool:
    expressions, on_fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not on_fields:
        return False
    return all(_holds(each, labels) for each in expressions) and all(_holds(each, fields) for each in on_fields)


def _holds(expression: Tree, labels: Labels) -> bool:
    found = labels.get(expression.get("key", ""))
    values: Sequence[str] = expression.get("values") or ()
    match expression.get("operator"):
        case "In":
            return found in values
        case "NotIn":
            return found not in values
        case "Exists":
            return found is not None
        case "DoesNotExist":
            return found is None
        case "Gt" | "Lt" as operator:
            return _compares(operator, found, values)
    return False


def _compares(operator: str, found: str | None, values: Sequence[str]) -> bool:
    try:
        left, right = int(found or ""), int(values[0])
    except (ValueError, IndexError):
        return False
    return left > right if operator == "Gt" else left < right
