"""A node selector picks the same nodes whether they are asked one by one or all at once."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.api.objects.pod import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from numalign.placement.rules.nodes import nodeaffinity
from tests.unit.placement.rules import worlds

KEYS, VALUES = ("a", "b"), ("", "x", "y", "1", "5", "10")
NAMES = tuple("pqrs")


def requirement(operator: str, *values: str, key: str = "a") -> NodeSelectorRequirement:
    return NodeSelectorRequirement(key=key, operator=operator, values=values)


def holds(requirement: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    """One requirement beside the labels of one node, by kube-scheduler spec 1.2."""
    value, values = labels.get(requirement.key), requirement.values
    match requirement.operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values and bool(values)
        case "Exists":
            return value is not None and not values
        case "DoesNotExist":
            return value is None and not values
        case "Gt" | "Lt" if len(values) == 1 and values[0].isdigit() and value is not None and value.isdigit():
            return int(value) > int(values[0]) if requirement.operator == "Gt" else int(value) < int(values[0])
    return False


def matches(term: NodeSelectorTerm, name: str, labels: Mapping[str, str]) -> bool:
    named = all((each.values == (name,)) is (each.operator == "In") for each in term.match_fields)
    held = all(holds(each, labels) for each in term.match_expressions)
    return named and held and bool(term.match_fields or term.match_expressions)


operators = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Near"])
requirements = st.builds(
    NodeSelectorRequirement,
    key=st.sampled_from(KEYS),
    operator=operators,
    values=st.lists(st.sampled_from(VALUES), max_size=2).map(tuple),
)
fields = st.builds(
    NodeSelectorRequirement,
    key=st.just("metadata.name"),
    operator=st.sampled_from(["In", "NotIn"]),
    values=st.sampled_from(NAMES).map(lambda name: (name,)),
)
terms = st.builds(
    NodeSelectorTerm,
    match_expressions=st.lists(requirements, max_size=2).map(tuple),
    match_fields=st.lists(fields, max_size=1).map(tuple),
)
labellings = st.lists(
    st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES)), min_size=len(NAMES), max_size=len(NAMES)
)


@given(st.lists(terms, max_size=3), labellings, labellings)
def test_all_rows_at_once_equal_one_by_one_also_after_changes(
    terms: list[NodeSelectorTerm], before: list[dict[str, str]], after: list[dict[str, str]]
) -> None:
    selector = NodeSelector(node_selector_terms=tuple(terms))
    world = worlds.world([worlds.node(name, labels=labels) for name, labels in zip(NAMES, before, strict=True)])
    for labels in (before, after):
        for row, name in enumerate(NAMES):
            world.put_node(row, worlds.node(name, labels=labels[row]))
        picked = nodeaffinity.picked(world, selector)[: len(NAMES)].tolist()
        assert picked == [
            any(matches(term, name, own) for term in terms) for name, own in zip(NAMES, labels, strict=True)
        ]


@pytest.mark.parametrize(
    "unsound",
    [
        pytest.param(requirement("In"), id="In without a value"),
        pytest.param(requirement("NotIn"), id="NotIn without a value"),
        pytest.param(requirement("DoesNotExist", "x"), id="DoesNotExist with a value"),
        pytest.param(requirement("Lt", "x"), id="a limit that is no number"),
        pytest.param(requirement("Lt", "99999999999999999999"), id="a limit beyond int64"),
        pytest.param(requirement("Lt", "1", "2"), id="two limits"),
        pytest.param(requirement("NotIn", "no value!"), id="a value that no label has"),
        pytest.param(requirement("NotIn", "x", key="a/b/c"), id="a key that no label has"),
        pytest.param(requirement("NotIn", "x", key="UPPER.example/c"), id="a domain that is none"),
        pytest.param(requirement("Near", "x"), id="an unknown operator"),
    ],
)
def test_a_term_that_cannot_be_right_picks_nothing(unsound: NodeSelectorRequirement) -> None:
    world = worlds.world([worlds.node("n")])
    assert not nodeaffinity.matching(world, NodeSelectorTerm(match_expressions=(unsound,))).any()


@pytest.mark.parametrize(
    "field, picked",
    [
        (requirement("In", "n", "m", key="metadata.name"), False),
        (requirement("Exists", key="metadata.name"), False),
        (requirement("In", "x", key="spec.other"), False),
        (requirement("NotIn", "x", key="spec.other"), True),
        (requirement("In", "", key="spec.other"), True),
    ],
    ids=["two names", "another operator", "another field", "not another field", "no other field"],
)
def test_fields_are_names_one_at_a_time(field: NodeSelectorRequirement, picked: bool) -> None:
    world = worlds.world([worlds.node("n")])
    assert nodeaffinity.matching(world, NodeSelectorTerm(match_fields=(field,)))[0] == picked


def test_a_selector_without_terms_picks_nothing() -> None:
    assert not nodeaffinity.picked(worlds.world([worlds.node("n")]), NodeSelector()).any()
