"""Salvaging a document: what fits is kept, and only the smallest part that does not is left out."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numalign.api.attributes.repairs import Guess, GuessCode
from numalign.api.nrt import wire


class Leaf(msgspec.Struct, frozen=True):
    name: str = ""
    size: int | None = None


class Tree(msgspec.Struct, frozen=True, rename="camel"):
    the_leaves: tuple[Leaf, ...] = ()
    words: tuple[str, ...] = ()
    labels: dict[str, str] = {}
    best: Leaf | None = None


KEPT: dict[str, tuple[dict[str, Any], Tree, list[tuple[str, str]]]] = {
    "all in order": ({"theLeaves": [{"name": "a", "size": 1}]}, Tree((Leaf("a", 1),)), []),
    "a field": ({"theLeaves": [{"name": "a", "size": "1"}]}, Tree((Leaf("a"),)), [("theLeaves[0].size", '"1"')]),
    "an item leaves its place": (
        {"theLeaves": [7, {"name": "b"}]}, Tree((Leaf(), Leaf("b"))), [("theLeaves[0]", "7")],
    ),
    "a word": ({"words": ["a", 1, "b"]}, Tree(words=("a", "b")), [("words[1]", "1")]),
    "an entry": ({"labels": {"a": "x", "b": []}}, Tree(labels={"a": "x"}), [("labels[b]", "a list")]),
    "a whole field": ({"labels": 5, "words": ["a"]}, Tree(words=("a",)), [("labels", "5")]),
    "an optional struct": ({"best": {"name": 1}}, Tree(best=Leaf()), [("best.name", "1")]),
    "nulls are absent": ({"best": None, "words": None, "labels": 1}, Tree(), [("labels", "1")]),
}  # fmt: skip
JUNK = st.recursive(
    st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from(["name", "size", "best", "words"]) | st.text(), inner)
    ),
)


@pytest.mark.parametrize("document, tree, dropped", KEPT.values(), ids=KEPT)
def test_only_what_does_not_fit_is_left_out(
    document: dict[str, Any], tree: Tree, dropped: list[tuple[str, str]]
) -> None:
    notes = [Guess(GuessCode.UNREADABLE, field, found) for field, found in dropped]
    assert wire.salvage(document, Tree) == (tree, notes)


@given(st.dictionaries(st.sampled_from(["theLeaves", "words", "labels", "best"]), JUNK))
@settings(max_examples=50)
def test_nothing_is_lost_without_a_note(document: dict[str, Any]) -> None:
    tree, dropped = wire.salvage(document, Tree)
    if not dropped:
        assert tree == msgspec.convert(document, Tree)
