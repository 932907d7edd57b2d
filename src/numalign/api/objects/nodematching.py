"""Matches tolerations with taints, and node selectors with the labels and name of one node.

The scheduler's rules, the controllers and the kubelets of the embedded cluster call this. The rules of `placement` ask
once per distinct value instead of once per node. A term that the API server rejects matches no node, and the operators
`Lt` and `Gt` of tolerations, which are behind a disabled feature gate, tolerate nothing (kube-scheduler spec 1.2)."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from numalign.api.objects import selectors
from numalign.api.objects.pod import Affinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Toleration

NAME_FIELD: Final = "metadata.name"
INT64: Final = range(-(2**63), 2**63)

INTEGER: Final = re.compile(r"[+-]?[0-9]+")
LABEL_NAME: Final = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
DNS_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
LABEL_KEY: Final = re.compile(rf"((?=[^/]{{1,253}}/){DNS_LABEL}(\.{DNS_LABEL})*/)?{LABEL_NAME}")
LABEL_VALUE: Final = re.compile(rf"({LABEL_NAME})?")


def tolerates(toleration: Toleration, key: str, value: str, effect: str) -> bool:
    """Whether the toleration tolerates the taint `key=value:effect`."""
    if toleration.effect not in ("", effect) or toleration.key not in ("", key):
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == value
    return toleration.operator == "Exists"


def tolerated(key: str, value: str, effect: str, tolerations: Iterable[Toleration]) -> bool:
    return any(tolerates(each, key, value, effect) for each in tolerations)


def allows(node_selector: Mapping[str, str], affinity: Affinity | None, name: str, labels: Mapping[str, str]) -> bool:
    """Whether nodeSelector and required node affinity allow the node."""
    if not node_selector.items() <= labels.items():
        return False
    required = affinity.node_affinity.required if affinity and affinity.node_affinity else None
    return required is None or selected(required, name, labels)


def selected(selector: NodeSelector, name: str, labels: Mapping[str, str]) -> bool:
    """Whether one of the selector's terms matches the node."""
    return any(matches(term, name, labels) for term in selector.node_selector_terms)


def matches(term: NodeSelectorTerm, name: str, labels: Mapping[str, str]) -> bool:
    return is_valid(term) and (
        all(holds(each, labels.get(each.key)) for each in term.match_expressions)
        # A field other than the name is empty for every node.
        and all(holds(each, name if each.key == NAME_FIELD else "") for each in term.match_fields)
    )


def holds(requirement: NodeSelectorRequirement, value: str | None) -> bool:
    """Whether a valid requirement holds for the value of its label; None: the node does not have the label."""
    if requirement.operator not in ("Gt", "Lt"):
        return selectors.holds(requirement.operator, requirement.values, value)
    number, limit = _integer(value or ""), int(requirement.values[0])
    return number is not None and (number > limit if requirement.operator == "Gt" else number < limit)


def is_valid(term: NodeSelectorTerm) -> bool:
    """Whether the API server accepts it. A term without requirements is accepted, and matches nothing."""
    expressions, fields = term.match_expressions, term.match_fields
    return bool(expressions or fields) and all(map(_is_valid, expressions)) and all(map(_is_valid_field, fields))


def _is_valid(requirement: NodeSelectorRequirement) -> bool:
    values = requirement.values
    if not LABEL_KEY.fullmatch(requirement.key) or not all(map(LABEL_VALUE.fullmatch, values)):
        return False
    match requirement.operator:
        case "In" | "NotIn":
            return bool(values)
        case "Exists" | "DoesNotExist":
            return not values
        case "Gt" | "Lt":
            return len(values) == 1 and _integer(values[0]) is not None
    return False


def _is_valid_field(requirement: NodeSelectorRequirement) -> bool:
    return requirement.operator in ("In", "NotIn") and len(requirement.values) == 1


def _integer(text: str) -> int | None:
    number = int(text) if INTEGER.fullmatch(text) and len(text) < 100 else None
    return number if number is not None and number in INT64 else None
