from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from numalign.oracle.harness import divergence
from numalign.oracle.harness.divergence import Difference

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "1"]) | st.sampled_from([0.0, 1.0]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c-d"]), inner, max_size=3),
)

DIFFERENT: dict[str, tuple[Any, Any, list[Difference]]] = {
    "a changed value": ({"a": 1}, {"a": 2}, [Difference("a", 1, 2)]),
    "deep inside": ({"a": [{"b": "x"}]}, {"a": [{"b": "y"}]}, [Difference("a[0].b", "x", "y")]),
    "a number and a truth": ({"a": 1}, {"a": True}, [Difference("a", 1, True)]),
    "a number and its float": ({"a": 1}, {"a": 1.0}, [Difference("a", 1, 1.0)]),
    "a number and its text": ([1], ["1"], [Difference("[0]", 1, "1")]),
    "null and nothing": ({"a": None}, {}, [Difference("a", None, UNSET)]),
    "nothing and null": ({}, {"a": None}, [Difference("a", UNSET, None)]),
    "null and empty": ({"a": None}, {"a": {}}, [Difference("a", None, {})]),
    "an item too many": ([1, 2], [1], [Difference("[1]", 2, UNSET)]),
    "an item too few": ([1], [1, [2]], [Difference("[1]", UNSET, [2])]),
    "another order": ([1, 2], [2, 1], [Difference("[0]", 1, 2), Difference("[1]", 2, 1)]),
    "an object and a list": ({"a": {}}, {"a": []}, [Difference("a", {}, [])]),
    "a key that is no word": ({"hugepages-2Mi": 1}, {"hugepages-2Mi": 2}, [Difference("[hugepages-2Mi]", 1, 2)]),
    "a key with a line break": ({"a\n": 1}, {"a\n": 2}, [Difference("[a\\n]", 1, 2)]),
}


def between(expected: Any, answered: Any) -> list[Difference]:
    return list(divergence.between(divergence.canonical(expected), divergence.canonical(answered)))


@pytest.mark.parametrize("expected, answered, differences", DIFFERENT.values(), ids=DIFFERENT)
def test_a_difference_has_its_path_and_both_sides(expected: Any, answered: Any, differences: list[Difference]) -> None:
    assert between(expected, answered) == differences


def test_the_order_of_keys_does_not_count() -> None:
    assert between({"a": 1, "b": [2]}, {"b": [2], "a": 1}) == []


@given(VALUES)
def test_a_value_does_not_differ_from_itself(value: Any) -> None:
    assert between(value, value) == []


@given(VALUES, VALUES)
def test_values_without_difference_are_the_same_json(one: Any, other: Any) -> None:
    assert (between(one, other) == []) == (divergence.canonical(one) == divergence.canonical(other))


@given(VALUES, VALUES)
def test_swapping_the_sides_swaps_every_difference(one: Any, other: Any) -> None:
    swapped = [Difference(each.path, each.answered, each.expected) for each in between(other, one)]
    assert between(one, other) == swapped
