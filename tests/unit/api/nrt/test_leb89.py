"""Numbers as LEB89 text: upstream's texts exactly, and nothing that only looks like one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.api.nrt import leb89

TEXTS = {
    0: "!", 1: "#", 32: "E", 63: "e", 64: "f!", 800: "qE", 1663: "~e", 1664: "gf!", 2047: "gke", 40063: "~~e",
    40064: "gff!", 100_000: "hrqE",
}  # fmt: skip
LONGEST = {1: 63, 2: 1663, 3: 40_063, 4: 1_000_063, 5: 25_000_063}
REFUSED = {
    "ends inside a number": "f",
    "ends after two continuations": "f~",
    "quote is no symbol": '"',
    "ampersand after a number": "#&",
    "space is no symbol": " ",
    "letter outside ASCII": "é",
    "longer spelling of 64": "ff!",
    "larger than 32 bits": "~~~~~~e",
    "continuations without end": "~" * 5000,
}


def test_the_alphabet_is_printable_and_needs_no_escaping() -> None:
    assert len(leb89.ALPHABET) == 89
    assert not set(leb89.ALPHABET) & set('"&<>\\ ')


@pytest.mark.parametrize("value, text", TEXTS.items())
def test_numbers_have_the_texts_of_upstream(value: int, text: str) -> None:
    assert leb89.encode(value) == text
    assert leb89.decode(text) == value


@pytest.mark.parametrize("symbols, largest", LONGEST.items())
def test_each_symbol_more_reaches_further(symbols: int, largest: int) -> None:
    assert len(leb89.encode(largest)) == symbols
    assert len(leb89.encode(largest + 1)) == symbols + 1


@given(st.lists(st.integers(0, leb89.MAX_VALUE)))
def test_a_row_of_numbers_needs_no_separator(values: list[int]) -> None:
    assert leb89.decode_all(leb89.encode_all(values)) == values


@given(st.text(leb89.ALPHABET, max_size=12))
def test_no_number_has_two_texts(text: str) -> None:
    try:
        values = leb89.decode_all(text)
    except leb89.Leb89Error:
        return
    assert leb89.encode_all(values) == text


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_text_that_upstream_would_misread_is_refused(text: str) -> None:
    with pytest.raises(leb89.Leb89Error):
        leb89.decode_all(text)


@pytest.mark.parametrize("text", ["", "!#"], ids=["none", "two"])
def test_one_number_means_one(text: str) -> None:
    with pytest.raises(leb89.Leb89Error, match="instead of one"):
        leb89.decode(text)


@pytest.mark.parametrize("value", [-1, leb89.MAX_VALUE + 1])
def test_numbers_that_upstream_cannot_hold_have_no_text(value: int) -> None:
    with pytest.raises(leb89.Leb89Error, match="is not between"):
        leb89.encode(value)
