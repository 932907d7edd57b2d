"""Patterns of schemas find what Python's matcher finds, and hostile ones end."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.simulator.apiserver.schemas import patterns

ATOMS = ["a", "b", ".", "[ab]", "[^a]", r"\d", r"\W", "", "^", "$", "(a|b)", "(|a)", "-"]
REPEATS = ["", "*", "+", "?", "{2}", "{1,3}", "{2,}", "*?"]
PIECES = st.tuples(st.sampled_from(ATOMS), st.sampled_from(REPEATS)).map(
    lambda piece: "".join(piece) if piece[0] not in ("", "^", "$") else piece[0]
)
SEQUENCES = st.lists(PIECES, max_size=4).map("".join)
PATTERNS = st.recursive(
    SEQUENCES,
    lambda inner: st.one_of(
        st.builds("({})*{}".format, inner, inner),
        st.builds("{}({}|{})+".format, inner, inner, inner),
        st.builds("(?i:{}){{1,2}}".format, inner),
    ),
    max_leaves=3,
)


@given(PATTERNS, st.text("abAB-1\n", max_size=6))
def test_what_is_found_is_what_python_finds(pattern: str, text: str) -> None:
    # Only at the very end does `$` match in Go.
    found = re.search(pattern.replace("$", r"\Z"), text, re.ASCII) is not None
    if "(?i:" not in pattern or "[^" not in pattern:
        assert patterns.matches(pattern, text) is found


USUAL = {
    "a name": (r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", "a-b.c", "a-.c"),
    "a quantity": (r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE])?$", "1.5Gi", "1.5Gib"),
    "an escape": (r"^\$\.x\\$", "$.x\\", "$.x"),
    "letters of any case": (r"(?i)^on$", "On", "no"),
}


@pytest.mark.parametrize("pattern, good, bad", USUAL.values(), ids=USUAL)
def test_usual_patterns(pattern: str, good: str, bad: str) -> None:
    assert (patterns.matches(pattern, good), patterns.matches(pattern, bad)) == (True, False)


HOSTILE = {
    "nested": (r"^(a+)+$", "a" * 50_000 + "!"),
    "alternatives": (r"^(a|a)*$", "a" * 50_000 + "!"),
    "one after the other": (r"a*a*a*a*a*b", "a" * 50_000),
    "from every place": (r"a+b", "a" * 50_000),
}


@pytest.mark.parametrize("pattern, text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_patterns_end(pattern: str, text: str) -> None:
    assert not patterns.matches(pattern, text)


def test_counts_of_counts_are_not_enforced() -> None:
    assert patterns.matches("((a{1000}){1000}){1000}", "b")
