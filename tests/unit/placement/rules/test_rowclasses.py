"""Rows with equal values share a class, and an answer is worked out once per class."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from numalign.placement.rules.rowclasses import ABSENT, RowClasses

ROWS = 6
values = st.one_of(st.none(), st.sampled_from("abcd"))


@given(st.lists(st.tuples(st.integers(0, ROWS - 1), values), max_size=40))
def test_a_table_follows_every_change(changes: list[tuple[int, str | None]]) -> None:
    facet: RowClasses[str] = RowClasses(ROWS)
    known: list[str | None] = [None] * ROWS
    for row, value in changes:
        known[row] = value
        facet.put(row, value)
        assert [facet.values[number] for number in facet.ids] == known
        assert facet.table("order", lambda each: ord(each) if each else 0).tolist() == [
            ord(v) if v else 0 for v in known
        ]


@given(st.lists(values, min_size=ROWS, max_size=ROWS), st.integers(0, ROWS - 1), values)
def test_filling_equals_putting_one_by_one(filled: list[str | None], row: int, value: str | None) -> None:
    facet: RowClasses[str] = RowClasses(ROWS)
    facet.fill(filled)
    facet.put(row, value)
    assert [facet.values[number] for number in facet.ids] == [*filled[:row], value, *filled[row + 1 :]]
    assert all(
        (facet.number(each) is not None) is (each in [*filled[:row], value, *filled[row + 1 :]]) for each in "abcd"
    )


def test_an_answer_is_worked_out_once_per_class() -> None:
    facet: RowClasses[str] = RowClasses(ROWS)
    asked: list[str] = []

    def answer(value: str | None) -> int:
        asked.append(value or "nothing")
        return 0

    facet.fill(["a", "a", "b", None, "a", "b"])
    for value in ("c", "c", "a"):
        facet.table("key", answer)
        facet.put(3, value)
    assert sorted(asked) == ["a", "b", "c", "nothing"]


def test_classes_are_reused_so_that_nothing_grows_with_time() -> None:
    facet: RowClasses[str] = RowClasses(ROWS)
    for number in range(100):
        facet.put(0, str(number))
        assert facet.table("key", lambda value: int(value or 0))[0] == number
    assert len(facet.values) <= 3
    assert facet.number("98") is None


def test_new_rows_have_no_value() -> None:
    facet: RowClasses[str] = RowClasses(1)
    facet.put(0, "a")
    assert facet.table("key", lambda value: 7 if value else 1).tolist() == [7]
    facet.grow(3)
    assert facet.table("key", lambda value: 7 if value else 1).tolist() == [7, 1, 1]
    assert facet.ids[2] == ABSENT
