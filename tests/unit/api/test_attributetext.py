"""The pieces of which our attributes are written: each is read back exactly, and nothing else is read."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.api import attributetext, cpuset
from numalign.api.attributetext import AttributeTextError
from numalign.api.quantity import INT64_MAX
from tests import topology_strategies as some

REFUSED: dict[str, tuple[Callable[[str], object], str]] = {
    "no version tag": (attributetext.version_and_body, "static"),
    "version without an end": (attributetext.version_and_body, "v1"),
    "version of many digits": (attributetext.version_and_body, "v" + "1" * 5000 + ";"),
    "word with a separator": (attributetext.from_word, "a;b"),
    "word of nothing": (attributetext.from_word, ""),
    "half an escape": (attributetext.from_word, "a%2"),
    "escape in lower case": (attributetext.from_word, "%2f"),
    "escapes that are not UTF-8": (attributetext.from_word, "%FF"),
    "negative number": (attributetext.number, "-1"),
    "number of many digits": (attributetext.number, "1" * 5000),
    "number over int64": (attributetext.number, str(INT64_MAX + 1)),
    "zone that no mask holds": (attributetext.zone, "65536"),
    "size that is no quantity": (attributetext.from_size, "much"),
    "half a byte": (attributetext.from_size, "500m"),
    "negative size": (attributetext.from_size, "-1Gi"),
    "size over int64": (attributetext.from_size, "9223372036854775808"),
    "zones with commas": (attributetext.from_zones, "0,1"),
    "amount without a name": (attributetext.from_sizes, "1Gi"),
    "amount twice": (attributetext.from_sizes, "memory=1,memory=2"),
}


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_text_survives_as_a_word(text: str) -> None:
    word = attributetext.word(text)
    assert attributetext.from_word(word) == text
    assert not set(word) & set(" ,;:=|+*@~!\"'&<>\\")


@given(st.integers(0, INT64_MAX))
def test_a_size_is_exact(size: int) -> None:
    assert attributetext.from_size(attributetext.size(size)) == size


@pytest.mark.parametrize(
    "size, text", [(0, "0"), (1 << 30, "1Gi"), (1000, "1k"), (1536 << 20, "1536Mi"), (1025, "1025")]
)
def test_a_size_is_short(size: int, text: str) -> None:
    assert attributetext.size(size) == text


@given(some.ZONE_SETS)
def test_a_zone_set_is_read_back(zones: int) -> None:
    assert attributetext.from_zones(attributetext.zones(zones)) == zones


def test_a_zone_set_is_written_without_commas() -> None:
    assert attributetext.zones(cpuset.of([0, 2, 3])) == "0+2-3"


@given(st.dictionaries(some.TEXT, some.SIZES))
def test_sizes_by_name_are_read_back(sizes: dict[str, int]) -> None:
    assert attributetext.from_sizes(attributetext.sizes(sizes)) == sizes


@pytest.mark.parametrize("size", [-1, INT64_MAX + 1])
def test_an_impossible_size_is_not_written(size: int) -> None:
    with pytest.raises(AttributeTextError):
        attributetext.size(size)


@pytest.mark.parametrize("read, text", REFUSED.values(), ids=REFUSED)
def test_other_texts_are_refused(read: Callable[[str], object], text: str) -> None:
    with pytest.raises(AttributeTextError):
        read(text)


def test_a_word_is_never_empty() -> None:
    with pytest.raises(AttributeTextError, match="must not be empty"):
        attributetext.word("")
