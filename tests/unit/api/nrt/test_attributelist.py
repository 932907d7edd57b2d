"""Lists of attributes: the first of a name counts, order is kept, nothing is changed in place."""

import pytest

from numalign.api.attributes.repairs import Guess, GuessCode
from numalign.api.nrt import attributelist
from numalign.api.nrt.wire import Attribute

Pairs = list[tuple[str, str]]


def listed(*pairs: tuple[str, str]) -> list[Attribute]:
    return [Attribute(name=name, value=value) for name, value in pairs]


FULL: Pairs = [("foo", "ff"), ("bar", "b2"), ("buz", "u3")]
FOUND: dict[str, tuple[Pairs, str, str | None]] = {
    "nothing in an empty list": ([], "foo", None),
    "not even an empty name": ([], "", None),
    "absent": (FULL, "abc", None),
    "present": (FULL, "bar", "b2"),
    "the first of two": ([*FULL, ("bar", "A2")], "bar", "b2"),
}
INSERTED: dict[str, tuple[Pairs, tuple[str, str], Pairs]] = {
    "without a name": (FULL, ("", "42"), FULL),
    "into an empty list": ([], ("foo", "42"), [("foo", "42")]),
    "at the end": (FULL[1:], ("foo", "42"), [*FULL[1:], ("foo", "42")]),
    "in place": (FULL, ("foo", "42"), [("foo", "42"), *FULL[1:]]),
}
MERGED: dict[str, tuple[Pairs, Pairs, Pairs]] = {
    "nothing": (FULL, [], FULL),
    "into nothing": ([], FULL, FULL),
    "new ones go to the end": (FULL, [("x", "1"), ("a", "2")], [*FULL, ("x", "1"), ("a", "2")]),
    "known ones stay in place": (FULL, [("bar", "new"), ("a", "2")], [FULL[0], ("bar", "new"), FULL[2], ("a", "2")]),
    "only the first of two changes": ([("a", "1"), ("a", "2")], [("a", "3")], [("a", "3"), ("a", "2")]),
}


@pytest.mark.parametrize("existing, name, value", FOUND.values(), ids=FOUND)
def test_get(existing: Pairs, name: str, value: str | None) -> None:
    assert attributelist.get(listed(*existing), name) == value


@pytest.mark.parametrize("existing, new, expected", INSERTED.values(), ids=INSERTED)
def test_insert(existing: Pairs, new: tuple[str, str], expected: Pairs) -> None:
    assert attributelist.insert(listed(*existing), listed(new)[0]) == listed(*expected)


@pytest.mark.parametrize("existing, updated, expected", MERGED.values(), ids=MERGED)
def test_merge(existing: Pairs, updated: Pairs, expected: Pairs) -> None:
    assert attributelist.merge(listed(*existing), listed(*updated)) == listed(*expected)


def test_delete_all_takes_every_match() -> None:
    assert attributelist.delete_all(listed(*FULL, ("buz", "pp")), "buz") == listed(*FULL[:2])


def test_lists_are_not_changed_in_place() -> None:
    existing = listed(*FULL)
    attributelist.merge(existing, listed(("foo", "new")))
    attributelist.delete_all(existing, "foo")
    assert existing == listed(*FULL)


def test_by_name_notes_what_does_not_count() -> None:
    guesses: list[Guess] = []
    found = attributelist.by_name(listed(("b", "1"), ("", "2"), ("b", "3"), ("a", "4")), "attributes", guesses)
    assert list(found.items()) == [("a", "4"), ("b", "1")]
    assert guesses == [
        Guess(GuessCode.ATTRIBUTE_UNNAMED, "attributes[1]", '"2"'),
        Guess(GuessCode.ATTRIBUTE_DUPLICATE, "attributes[2]", '"3"', '"1"'),
    ]
