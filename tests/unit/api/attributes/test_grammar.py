"""The pieces of which our attributes are written: each is read back exactly, and nothing else is read."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.api.attributes import grammar
from numalign.api.attributes.grammar import AttributeTextError
from numalign.api.decode import cpuset
from numalign.api.decode.quantity import INT64_MAX
from tests import topology_strategies as some

REFUSED: dict[str, tuple[Callable[[str], object], str]] = {
    "no version tag": (grammar.version_and_body, "static"),
    "version without an end": (grammar.version_and_body, "v1"),
    "version of many digits": (grammar.version_and_body, "v" + "1" * 5000 + ";"),
    "word with a separator": (grammar.from_word, "a;b"),
    "word of nothing": (grammar.from_word, ""),
    "half an escape": (grammar.from_word, "a%2"),
    "escape in lower case": (grammar.from_word, "%2f"),
    "escapes that are not UTF-8": (grammar.from_word, "%FF"),
    "negative number": (grammar.number, "-1"),
    "number of many digits": (grammar.number, "1" * 5000),
    "number over int64": (grammar.number, str(INT64_MAX + 1)),
    "zone that no mask holds": (grammar.zone, "65536"),
    "size that is no quantity": (grammar.from_size, "much"),
    "half a byte": (grammar.from_size, "500m"),
    "negative size": (grammar.from_size, "-1Gi"),
    "size over int64": (grammar.from_size, "9223372036854775808"),
    "zones with commas": (grammar.from_zones, "0,1"),
    "amount without a name": (grammar.from_sizes, "1Gi"),
    "amount twice": (grammar.from_sizes, "memory=1,memory=2"),
}


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_text_survives_as_a_word(text: str) -> None:
    word = grammar.word(text)
    assert grammar.from_word(word) == text
    assert not set(word) & set(" ,;:=|+*@~!\"'&<>\\")


@given(st.integers(0, INT64_MAX))
def test_a_size_is_exact(size: int) -> None:
    assert grammar.from_size(grammar.size(size)) == size


@pytest.mark.parametrize(
    "size, text", [(0, "0"), (1 << 30, "1Gi"), (1000, "1k"), (1536 << 20, "1536Mi"), (1025, "1025")]
)
def test_a_size_is_short(size: int, text: str) -> None:
    assert grammar.size(size) == text


@given(some.ZONE_SETS)
def test_a_zone_set_is_read_back(zones: int) -> None:
    assert grammar.from_zones(grammar.zones(zones)) == zones


def test_a_zone_set_is_written_without_commas() -> None:
    assert grammar.zones(cpuset.of([0, 2, 3])) == "0+2-3"


@given(st.dictionaries(some.TEXT, some.SIZES))
def test_sizes_by_name_are_read_back(sizes: dict[str, int]) -> None:
    assert grammar.from_sizes(grammar.sizes(sizes)) == sizes


@pytest.mark.parametrize("size", [-1, INT64_MAX + 1])
def test_an_impossible_size_is_not_written(size: int) -> None:
    with pytest.raises(AttributeTextError):
        grammar.size(size)


@pytest.mark.parametrize("read, text", REFUSED.values(), ids=REFUSED)
def test_other_texts_are_refused(read: Callable[[str], object], text: str) -> None:
    with pytest.raises(AttributeTextError):
        read(text)


def test_a_word_is_never_empty() -> None:
    with pytest.raises(AttributeTextError, match="must not be empty"):
        grammar.word("")
