"""CPU sets read and print the kubelet's list format, and refuse what cannot be one."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.api.decode import cpuset
from tests.strategies import api

TEXTS = {
    "empty": ("", 0),
    "one": ("0", 0b1),
    "range": ("0-3", 0b1111),
    "range and single": ("0-3,8", 0b1_0000_1111),
    "range of one": ("2-2", 0b100),
    "out of order": ("8,0-3", 0b1_0000_1111),
    "overlapping": ("0-2,1-3", 0b1111),
    "leading zeros": ("007", 0b1000_0000),
    "last CPU allowed": ("65535", 1 << 65535),
}


@pytest.mark.parametrize("text, mask", TEXTS.values(), ids=TEXTS)
def test_lists_are_read_as_masks(text: str, mask: int) -> None:
    assert cpuset.parse(text) == mask


MASKS = {
    "empty": (0, "", ()),
    "one": (0b100, "2", (2,)),
    "two neighbours": (0b11, "0-1", (0, 1)),
    "gap": (0b1101, "0,2-3", (0, 2, 3)),
    "past a machine word": (1 << 64 | 1 << 63, "63-64", (63, 64)),
}


@pytest.mark.parametrize("mask, text, members", MASKS.values(), ids=MASKS)
def test_masks_are_written_as_lists(mask: int, text: str, members: tuple[int, ...]) -> None:
    assert (cpuset.text(mask), cpuset.members(mask)) == (text, members)


REFUSED = {
    "backwards": ("3-1", '"3-1" runs backwards'),
    "open range": ("0-", "is not a CPU id or a range"),
    "negative": ("-3", "is not a CPU id or a range"),
    "empty part": ("0,,1", '"" is not a CPU id'),
    "trailing comma": ("0,", '"" is not a CPU id'),
    "space": ("0, 1", '" 1" is not a CPU id'),
    "new line": ("0\n", "is not a CPU id"),
    "three ends": ("1-2-3", "is not a CPU id or a range"),
    "sign": ("+1", "is not a CPU id"),
    "word": ("all", "is not a CPU id"),
    "digits of another script": ("٣", "is not a CPU id"),
    "id no machine has": ("65536", "larger than 65535"),
    "range no machine has": ("0-999999999999", "larger than 65535"),
    "megabyte of digits": ("9" * 10**6, "larger than 65535"),
}


@pytest.mark.parametrize("text, why", REFUSED.values(), ids=REFUSED)
def test_other_texts_are_refused_by_the_part_that_is_wrong(text: str, why: str) -> None:
    with pytest.raises(cpuset.CPUSetError, match=why) as refusal:
        cpuset.parse(text)
    assert len(str(refusal.value)) < 200


@pytest.mark.parametrize("cpu", [-1, 65536, 10**5000], ids=["negative", "too large", "absurd"])
def test_ids_out_of_range_are_refused(cpu: int) -> None:
    with pytest.raises(cpuset.CPUSetError, match="between 0 and 65535"):
        cpuset.of([0, cpu])


@given(api.cpu_masks())
def test_text_and_back(mask: int) -> None:
    assert cpuset.parse(cpuset.text(mask)) == mask


@given(st.sets(st.integers(0, 1023)))
def test_members_and_back(cpus: set[int]) -> None:
    assert cpuset.members(cpuset.of(cpus)) == tuple(sorted(cpus))


@given(api.cpu_masks())
def test_the_text_is_the_shortest_list(mask: int) -> None:
    ends = [tuple(map(int, part.split("-"))) for part in cpuset.text(mask).split(",") if part]
    assert all(left[-1] + 1 < right[0] for left, right in pairwise(ends))
