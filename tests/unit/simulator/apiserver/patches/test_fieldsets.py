"""Sets of fields and their wire form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.simulator.apiserver.patches import fieldsets
from numalign.simulator.apiserver.patches.fieldsets import FieldPath

WIRE = {
    "f:metadata": {"f:finalizers": {".": {}, 'v:"a/b"': {}}, "f:labels": {"f:app": {}}},
    "f:spec": {
        "f:containers": {'k:{"name":"c"}': {".": {}, "f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}}}}}
    },
}


def test_a_path_is_read_from_every_level() -> None:
    container = ("f:spec", "f:containers", 'k:{"name":"c"}')
    assert fieldsets.decode(WIRE) == {
        ("f:metadata", "f:finalizers"),
        ("f:metadata", "f:finalizers", 'v:"a/b"'),
        ("f:metadata", "f:labels", "f:app"),
        container,
        (*container, "f:ports", 'k:{"containerPort":80,"protocol":"TCP"}'),
    }


STEPS = st.one_of(
    st.sampled_from(["f:a", "f:b", "i:0", 'v:"x"', "v:1"]),
    st.builds(lambda value: fieldsets.by_keys({"name": value}), st.integers(0, 2) | st.text(max_size=2)),
)
SETS = st.sets(st.lists(STEPS, min_size=1, max_size=4).map(tuple), max_size=8)


@given(fields=SETS)
def test_what_is_written_is_read_again(fields: set[FieldPath]) -> None:
    assert fieldsets.decode(fieldsets.encode(fields)) == fields
    assert sorted(fieldsets.ordered(fields)) == sorted(fields)


def test_keys_are_sorted_and_escaped_as_go_does() -> None:
    assert fieldsets.by_keys({"b": 1, "a": "<&>"}) == 'k:{"a":"\\u003c\\u0026\\u003e","b":1}'
    assert fieldsets.decode({'k:{ "b": 1, "a": "x" }': {}}) == {('k:{"a":"x","b":1}',)}


TEXTS: dict[str, tuple[FieldPath, str]] = {
    "fields": (("f:spec", "f:replicas"), ".spec.replicas"),
    "a key": (("f:containers", 'k:{"name":"c"}', "f:image"), '.containers[name="c"].image'),
    "keys": (('k:{"containerPort":80,"protocol":"TCP"}',), '[containerPort=80,protocol="TCP"]'),
    "a value": (("f:finalizers", 'v:"a/b"'), '.finalizers[="a/b"]'),
    "a place": (("i:3",), "[3]"),
}


@pytest.mark.parametrize("path, text", TEXTS.values(), ids=TEXTS)
def test_paths_in_messages(path: FieldPath, text: str) -> None:
    assert fieldsets.text(path) == text


def test_members_of_a_level_come_before_what_is_below_and_fields_before_items() -> None:
    fields: set[FieldPath] = {("f:b", "f:x"), ("f:c",), ('k:{"n":2}',), ('k:{"n":10}',), ("f:a",), ("v:1",)}
    assert list(fieldsets.ordered(fields)) == [
        ("f:a",),
        ("f:c",),
        ('k:{"n":2}',),
        ('k:{"n":10}',),
        ("v:1",),
        ("f:b", "f:x"),
    ]


def test_excluding_a_path_excludes_what_is_below() -> None:
    fields: set[FieldPath] = {("f:status",), ("f:status", "f:x"), ("f:statusy",), ("f:spec",)}
    assert fieldsets.without(fields, [("f:status",)]) == {("f:statusy",), ("f:spec",)}
