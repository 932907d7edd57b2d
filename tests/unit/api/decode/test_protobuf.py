"""Messages by table: what is written reads back, what others write is read as the real programs read it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.api.decode import protobuf
from numalign.api.decode.protobuf import BadProtobuf, Message, MessageField

PART: Message = {1: MessageField("id", "int")}
WHOLE: Message = {
    1: MessageField("name", "string"),
    2: MessageField("size", "uint"),
    3: MessageField("on", "bool"),
    4: MessageField("raw", "bytes"),
    5: MessageField("part", PART),
    6: MessageField("parts", PART, many=True),
    7: MessageField("numbers", "int", many=True),
    8: MessageField("texts", "string", many=True),
    9: MessageField("pairs", protobuf.TEXTS, many=True),
    20: MessageField("far", "int"),
}
INT64 = st.integers(-(2**63), 2**63 - 1)
PARTS = st.fixed_dictionaries({}, optional={"id": INT64.filter(bool)})
TREES = st.fixed_dictionaries(
    {},
    optional={
        "name": st.text(min_size=1),
        "size": st.integers(1, 2**64 - 1),
        "on": st.just(True),
        "raw": st.binary(min_size=1),
        "part": PARTS,
        "parts": st.lists(PARTS, min_size=1),
        "numbers": st.lists(INT64, min_size=1),
        "texts": st.lists(st.text(), min_size=1),
        "far": INT64.filter(bool),
    },
)


@given(TREES)
def test_what_is_written_reads_back(tree: dict[str, Any]) -> None:
    assert protobuf.decode_message(protobuf.encode_message(tree, WHOLE), WHOLE) == tree


@given(TREES, st.binary(max_size=20))
def test_fields_that_the_table_does_not_name_are_skipped(tree: dict[str, Any], unknown: bytes) -> None:
    beside = protobuf.encode_field(99, unknown) + protobuf.encode_field(98, 7)
    assert protobuf.decode_message(beside + protobuf.encode_message(tree, WHOLE) + beside, WHOLE) == tree


READ = {
    "nothing": ("", {}),
    "zero and empty text that came": ("0a001000", {"name": "", "size": 0}),
    "an empty message is there": ("2a00", {"part": {}}),
    "numbers packed": ("3a03010203", {"numbers": [1, 2, 3]}),
    "numbers one by one": ("380138023803", {"numbers": [1, 2, 3]}),
    "numbers both ways": ("3a02010238033a0104", {"numbers": [1, 2, 3, 4]}),
    "a negative number": ("38ffffffffffffffffff01", {"numbers": [-1]}),
    "the last one counts": ("0a01610a0162", {"name": "b"}),
    "fixed numbers of unknown fields": ("9d0601020304" + "99060102030405060708", {}),
    "an entry of a map": ("4a060a016b120176", {"pairs": [{"key": "k", "value": "v"}]}),
}


@pytest.mark.parametrize("body, tree", READ.values(), ids=READ)
def test_bodies_of_others(body: str, tree: dict[str, Any]) -> None:
    assert protobuf.decode_message(bytes.fromhex(body), WHOLE) == tree


REFUSED = {
    "a text cut short": ("0a05616263", "unexpected EOF"),
    "a length beyond any body": ("0affffffffffffffffff01", "unexpected EOF"),
    "a number that never ends": ("10" + "ff" * 11, "integer overflow"),
    "field number zero": ("0001", "illegal tag"),
    "a group": ("0b", "illegal wireType 3"),
    "a number where a text belongs": ("0801", "wrong wireType = 0 for field name"),
    "a text where a number belongs": ("120161", "wrong wireType = 2 for field size"),
    "a fixed number where a number belongs": ("1501020304", "wrong wireType = 5 for field size"),
    "bytes that are no UTF-8": ("0a01ff", "name is not UTF-8"),
    "packed numbers cut short": ("3a01ff", "unexpected EOF"),
}


@pytest.mark.parametrize("body, why", REFUSED.values(), ids=REFUSED)
def test_an_unreadable_body_is_refused_with_a_reason(body: str, why: str) -> None:
    with pytest.raises(BadProtobuf, match=why):
        protobuf.decode_message(bytes.fromhex(body), WHOLE)


def test_zeros_are_left_out_and_empty_messages_are_not() -> None:
    tree = {"name": "", "size": 0, "on": False, "part": {}, "numbers": [], "texts": []}
    assert protobuf.encode_message(tree, WHOLE) == b"\x2a\x00"


def test_a_map_travels_as_its_entries() -> None:
    written = protobuf.encode_message({"pairs": protobuf.entries({"k": "v"})}, WHOLE)
    assert written == bytes.fromhex("4a060a016b120176")
