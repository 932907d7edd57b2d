"""What selectors in objects must keep to: label selectors, and the node selectors of affinity."""

from collections.abc import Iterator
from typing import Final

from numalign.simulator.apiserver.storage import labelsyntax
from numalign.simulator.apiserver.storage.errors import Cause
from numalign.simulator.apiserver.validation import rules
from numalign.simulator.trees import Tree

NODE_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
VALUED: Final = ("In", "NotIn")
BARE: Final = ("Exists", "DoesNotExist")
COMPARING: Final = ("Gt", "Lt")
NO_OPERATOR: Final = "not a valid selector operator"
NO_VALUES: Final = "must be specified when `operator` is 'In' or 'NotIn'"
TOO_MANY: Final = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
ONE_VALUE: Final = "must be specified single value when `operator` is 'Lt' or 'Gt'"


def label_selector(selector: Tree, path: str) -> list[Cause]:
    found = rules.label_map(f"{path}.matchLabels", selector.get("matchLabels"))
    for index, clause in enumerate(selector.get("matchExpressions") or ()):
        found += _clause(clause, f"{path}.matchExpressions[{index}]", comparing=False)
    return found


def affinity(tree: Tree, path: str) -> Iterator[Cause]:
    required = (tree.get("nodeAffinity") or {}).get(NODE_REQUIRED)
    if required is not None:
        here = f"{path}.nodeAffinity.{NODE_REQUIRED}.nodeSelectorTerms"
        terms = required.get("nodeSelectorTerms") or ()
        if not terms:
            yield rules.required(here, "must have at least one node selector term")
        for index, term in enumerate(terms):
            for place, clause in enumerate(term.get("matchExpressions") or ()):
                yield from _clause(clause, f"{here}[{index}].matchExpressions[{place}]", comparing=True)


def _clause(clause: Tree, path: str, *, comparing: bool) -> Iterator[Cause]:
    operator, values = clause.get("operator", ""), clause.get("values") or []
    if operator in VALUED and not values:
        yield rules.required(f"{path}.values", NO_VALUES)
    elif operator in BARE and values:
        yield rules.forbidden(f"{path}.values", TOO_MANY)
    elif comparing and operator in COMPARING and len(values) != 1:
        yield rules.required(f"{path}.values", ONE_VALUE)
    elif operator not in (*VALUED, *BARE, *(COMPARING if comparing else ())):
        yield rules.invalid(f"{path}.operator", operator, NO_OPERATOR)
    yield from rules.named(f"{path}.key", clause.get("key", ""), labelsyntax.key_problems)
