import pytest

from numalign.simulator.controllers.framework import matching
from numalign.simulator.trees import Tree


def expression(key: str, operator: str, *values: str) -> Tree:
    return {"key": key, "operator": operator, "values": list(values)}


LABELS = {"app": "web", "cores": "16"}
EXPRESSIONS = {
    "in": (expression("app", "In", "web", "db"), True),
    "in, other value": (expression("app", "In", "db"), False),
    "in, no label": (expression("tier", "In", "db"), False),
    "not in": (expression("app", "NotIn", "db"), True),
    "not in, no label": (expression("tier", "NotIn", "db"), True),
    "exists": (expression("app", "Exists"), True),
    "does not exist": (expression("app", "DoesNotExist"), False),
    "only node selectors compare": (expression("cores", "Gt", "8"), False),
    "unknown operator": (expression("app", "Like", "w"), False),
}


@pytest.mark.parametrize("written, matches", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_expressions(written: Tree, matches: bool) -> None:
    assert matching.selector({"matchExpressions": [written]})(LABELS) is matches


@pytest.mark.parametrize("written", [None, {}, {"matchLabels": {}}], ids=["absent", "empty", "no labels"])
def test_an_empty_selector_selects_nothing(written: Tree | None) -> None:
    assert not matching.selector(written)(LABELS)


def test_an_empty_selector_of_a_budget_selects_everything() -> None:
    assert matching.everything_if_empty({})(LABELS)
    assert not matching.everything_if_empty(None)(LABELS)


def affine(*terms: Tree) -> Tree:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"affinity": {"nodeAffinity": required}}


WEB, DB = {"matchExpressions": [expression("app", "In", "web")]}, {"matchExpressions": [expression("app", "In", "db")]}
HERE, THERE = ({"matchFields": [expression("metadata.name", "In", name)]} for name in ("a", "b"))
SPECS = {
    "nothing asked": ({}, True),
    "selector": ({"nodeSelector": {"app": "web"}}, True),
    "selector, other value": ({"nodeSelector": {"app": "db"}}, False),
    "any term": (affine(DB, WEB), True),
    "no term": (affine(DB), False),
    "no terms at all": (affine(), False),
    "empty term": (affine({}), False),
    "by name": (affine(HERE), True),
    "by another name": (affine(THERE), False),
    "all of a term": (affine(THERE | WEB), False),
    "greater": (affine({"matchExpressions": [expression("cores", "Gt", "8")]}), True),
    "greater, equal": (affine({"matchExpressions": [expression("cores", "Gt", "16")]}), False),
    "less": (affine({"matchExpressions": [expression("cores", "Lt", "17")]}), True),
    "less, not a number": (affine({"matchExpressions": [expression("app", "Lt", "17")]}), False),
    "selector and affinity": ({"nodeSelector": {"app": "db"}} | affine(WEB), False),
}


@pytest.mark.parametrize("spec, matches", SPECS.values(), ids=SPECS)
def test_nodes_by_selector_and_affinity(spec: Tree, matches: bool) -> None:
    assert matching.node_matches(spec, {"metadata": {"name": "a", "labels": LABELS}}) is matches
