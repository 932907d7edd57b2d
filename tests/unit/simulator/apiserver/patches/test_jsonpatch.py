"""JSON patches, each answer as a real server gave it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.simulator.apiserver.patches import BadPatch, jsonpatch
from numalign.simulator.apiserver.patches.errors import REJECTED
from numalign.simulator.trees import Tree

OBJECT: Tree = {"data": {"k": "v", "a/b": "1", "c~d": "2"}, "list": ["x", "y"], "none": None}


def op(name: str, path: str, **more: Any) -> Tree:
    return {"op": name, "path": path, **more}


APPLY = {
    "add a field": ([op("add", "/data/n", value=1)], ("data", "n"), 1),
    "add over a field": ([op("add", "/data/k", value=1)], ("data", "k"), 1),
    "add without a value is null": ([op("add", "/data/k")], ("data", "k"), None),
    "add into a list": ([op("add", "/list/1", value="n")], ("list",), ["x", "n", "y"]),
    "add behind a list": ([op("add", "/list/2", value="n")], ("list",), ["x", "y", "n"]),
    "append": ([op("add", "/list/-", value="n")], ("list",), ["x", "y", "n"]),
    "count from the end": ([op("add", "/list/-1", value="n")], ("list",), ["x", "y", "n"]),
    "remove from a list": ([op("remove", "/list/0")], ("list",), ["y"]),
    "remove the last": ([op("remove", "/list/-1")], ("list",), ["x"]),
    "replace in a list": ([op("replace", "/list/0", value="n")], ("list",), ["n", "y"]),
    "replace what is not there": ([op("replace", "/data/n", value="n")], ("data", "n"), "n"),
    "a slash in a name": ([op("replace", "/data/a~1b", value="n")], ("data", "a/b"), "n"),
    "a tilde in a name": ([op("replace", "/data/c~0d", value="n")], ("data", "c~d"), "n"),
    "move": ([op("move", "/data/n", **{"from": "/data/k"})], ("data",), {"a/b": "1", "c~d": "2", "n": "v"}),
    "copy": ([op("copy", "/data/n", **{"from": "/data/k"})], ("data", "n"), "v"),
    "test what holds": ([op("test", "/data/k", value="v")], ("data", "k"), "v"),
    "test null where nothing is": ([op("test", "/data/zz", value=None)], ("data", "k"), "v"),
    "no slash in front": ([op("add", "data/k", value=1)], ("k",), 1),
    "the whole object": ([op("replace", "", value={"a": 1})], (), {"a": 1}),
    "one after the other": ([op("add", "/n", value={}), op("add", "/n/m", value=1)], ("n",), {"m": 1}),
    "nothing": ([], (), OBJECT),
}


@pytest.mark.parametrize("operations, path, value", APPLY.values(), ids=APPLY)
def test_an_operation_changes_the_place_it_names(operations: list[Tree], path: tuple[str, ...], value: Any) -> None:
    found: Any = jsonpatch.applied(OBJECT, operations)
    for step in path:
        found = found[step]
    assert found == value


REFUSE = {
    "test of another value": [op("test", "/data/k", value="no")],
    "test of a missing field": [op("test", "/data/zz", value="no")],
    "true is not one": [op("add", "/data/k", value=1), op("test", "/data/k", value=True)],
    "remove what is not there": [op("remove", "/data/zz")],
    "no such parent": [op("add", "/nope/zz", value=1)],
    "parent is text": [op("remove", "/data/k/x")],
    "index too high": [op("add", "/list/5", value=1)],
    "index too high to remove": [op("remove", "/list/2")],
    "no index": [op("add", "/list/x", value=1)],
    "append to nothing": [op("add", "/nope/-", value=1)],
    "unknown operation": [op("bogus", "/data/k")],
    "no operation": [{"path": "/data/k"}],
    "no path": [{"op": "add", "value": 1}],
    "copy from nowhere said": [op("copy", "/data/k")],
    "move into itself": [op("move", "/data/k/z", **{"from": "/data/k"})],
    "not an object any more": [op("replace", "", value=[])],
}


@pytest.mark.parametrize("operations", REFUSE.values(), ids=REFUSE)
def test_what_does_not_apply_is_refused_in_the_server_s_one_sentence(operations: list[Tree]) -> None:
    with pytest.raises(BadPatch) as refused:
        jsonpatch.applied(OBJECT, operations)
    assert (refused.value.code, refused.value.message) == (422, REJECTED)


def test_a_patch_of_too_many_operations_is_refused() -> None:
    with pytest.raises(BadPatch, match="maximum operations in a JSON patch is 10000, got 10001"):
        jsonpatch.applied(OBJECT, [op("test", "/none", value=None)] * 10_001)


def test_the_object_patched_stays_as_it_was() -> None:
    jsonpatch.applied(OBJECT, [op("remove", "/list/0"), op("add", "/data/n", value=1)])
    assert OBJECT["list"] == ["x", "y"]
    assert "n" not in OBJECT["data"]


def test_a_copied_list_is_not_shared() -> None:
    patch = [op("copy", "/other", **{"from": "/list"}), op("add", "/other/-", value="n")]
    assert jsonpatch.applied(OBJECT, patch)["list"] == ["x", "y"]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(key=st.text(), value=VALUES)
def test_what_was_added_is_found_by_test_and_gone_after_remove(key: str, value: Any) -> None:
    path = "/data/" + key.replace("~", "~0").replace("/", "~1")
    added = jsonpatch.applied({"data": {}}, [op("add", path, value=value), op("test", path, value=value)])
    assert jsonpatch.applied(added, [op("remove", path)]) == {"data": {}}


def test_copies_of_a_value_into_itself_are_refused_before_they_grow() -> None:
    grows = [op("add", "/x", value={"a": "b"})]
    grows += [op("copy", f"/x/{number}", **{"from": "/x"}) for number in range(40)]
    with pytest.raises(BadPatch, match=REJECTED) as refused:
        jsonpatch.applied({}, grows)
    assert refused.value.code == 422
    assert len(jsonpatch.applied({}, grows[:15])["x"]) == 15
