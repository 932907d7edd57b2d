"""Merge patches and their laws."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.api.decode import decode

Tree = dict[str, Any]

# The table of the standard, as far as both sides are objects.
CASES: dict[str, tuple[Tree, Tree, Tree]] = {
    "replace": ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    "add": ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    "remove": ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    "remove nothing": ({"a": "b"}, {"c": None}, {"a": "b"}),
    "list for text": ({"a": "b"}, {"a": ["c"]}, {"a": ["c"]}),
    "lists as a whole": ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    "deeper": ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    "object for list": ({"a": [1]}, {"a": {"b": 1}}, {"a": {"b": 1}}),
    "nulls in something new": ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    "null that is there": ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
}


@pytest.mark.parametrize("tree, patch, merged", CASES.values(), ids=CASES)
def test_a_patch_is_laid_over_the_object(tree: Tree, patch: Tree, merged: Tree) -> None:
    assert decode.merge_patch(tree, patch) == merged


KEYS = st.sampled_from("abc")
LEAVES = st.integers(0, 2) | st.lists(st.integers(0, 1), max_size=2)


def objects(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Tree]:
    inner = st.recursive(leaves, lambda more: st.dictionaries(KEYS, more, max_size=3), max_leaves=6)
    return st.dictionaries(KEYS, inner, max_size=3)


TREES, PATCHES = objects(LEAVES), objects(LEAVES | st.none())


@given(tree=TREES, patch=PATCHES)
def test_a_patch_twice_is_a_patch_once(tree: Tree, patch: Tree) -> None:
    once = decode.merge_patch(tree, patch)
    assert decode.merge_patch(once, patch) == once


@given(tree=TREES)
def test_an_empty_patch_and_an_object_itself_change_nothing(tree: Tree) -> None:
    assert decode.merge_patch(tree, {}) == tree
    assert decode.merge_patch(tree, tree) == tree


@given(tree=TREES, patch=PATCHES)
def test_no_null_of_a_patch_is_left(tree: Tree, patch: Tree) -> None:
    def has_null(value: Any) -> bool:
        return value is None or (isinstance(value, dict) and any(map(has_null, value.values())))

    assert not has_null(decode.merge_patch(tree, patch))
