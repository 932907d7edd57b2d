"""Strategic merge patches, answers and words as a real server gave them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.simulator.apiserver.patches import BadPatch, strategic
from numalign.simulator.trees import Tree

POD = ("", "v1", "Pod")
TREE: Tree = {
    "metadata": {"name": "p", "labels": {"x": "1", "y": "2"}, "finalizers": ["a/1", "a/2"]},
    "spec": {
        "containers": [
            {"name": "a", "image": "x", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
            {"name": "b", "image": "y", "args": ["-v"]},
        ],
        "volumes": [{"name": "v", "emptyDir": {}}],
        "tolerations": [{"key": "k"}],
    },
}


def patched(patch: Tree) -> Tree:
    return strategic.applied(TREE, patch, POD)


def containers(*items: Tree, **more: Any) -> list[Any]:
    found: list[Any] = patched({"spec": {"containers": list(items), **more}})["spec"]["containers"]
    return found


def names(items: list[Any]) -> list[str]:
    return [item["name"] for item in items]


def test_items_are_merged_by_their_key() -> None:
    assert containers({"name": "b", "image": "z"})[1] == {"name": "b", "image": "z", "args": ["-v"]}


def test_lists_within_items_are_merged_too() -> None:
    env = containers({"name": "a", "env": [{"name": "B", "value": "9"}, {"name": "C", "value": "3"}]})[0]["env"]
    assert env == [{"name": "A", "value": "1"}, {"name": "B", "value": "9"}, {"name": "C", "value": "3"}]


def test_lists_without_a_strategy_are_replaced() -> None:
    assert containers({"name": "b", "args": ["-q"]})[1]["args"] == ["-q"]
    assert patched({"spec": {"tolerations": []}})["spec"]["tolerations"] == []


ORDERS = {
    "new items come first": ([{"name": "n"}], ["n", "a", "b"]),
    "known items keep their place": ([{"name": "b"}], ["a", "b"]),
    "the patch decides among its own": ([{"name": "b"}, {"name": "a"}], ["b", "a"]),
    "what only the server has is woven in": ([{"name": "b"}, {"name": "n"}], ["a", "b", "n"]),
    "deleted": ([{"name": "a", "$patch": "delete"}], ["b"]),
    "deleted and not there": ([{"name": "q", "$patch": "delete"}], ["a", "b"]),
    "replaced": ([{"name": "n"}, {"$patch": "replace"}], ["n"]),
}


@pytest.mark.parametrize("items, order", ORDERS.values(), ids=ORDERS)
def test_the_order_and_extent_of_a_merged_list(items: list[Tree], order: list[str]) -> None:
    assert names(containers(*items)) == order


FINALIZERS: dict[str, tuple[Tree, list[str]]] = {
    "merged": ({"finalizers": ["a/3"]}, ["a/3", "a/1", "a/2"]),
    "once each": ({"finalizers": ["a/2"]}, ["a/1", "a/2"]),
    "deleted": ({"$deleteFromPrimitiveList/finalizers": ["a/1"]}, ["a/2"]),
    "ordered": ({"$setElementOrder/finalizers": ["a/2", "a/1"]}, ["a/2", "a/1"]),
    "ordered and merged": ({"$setElementOrder/finalizers": ["n", "a/2"], "finalizers": ["n"]}, ["n", "a/1", "a/2"]),
    "a deletion that is no list": ({"$deleteFromPrimitiveList/finalizers": "a/1"}, ["a/1", "a/2"]),
}


@pytest.mark.parametrize("metadata, kept", FINALIZERS.values(), ids=FINALIZERS)
def test_lists_of_plain_values(metadata: Tree, kept: list[str]) -> None:
    assert patched({"metadata": metadata})["metadata"]["finalizers"] == kept


def test_an_order_for_items_with_keys() -> None:
    order = [{"name": "b"}, {"name": "a"}]
    assert names(containers({"name": "a", "image": "n"}, **{"$setElementOrder/containers": order})) == ["b", "a"]


def test_retained_keys_clear_all_others() -> None:
    volume = {"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}
    volumes = patched({"spec": {"volumes": [volume]}})["spec"]["volumes"]
    assert volumes == [{"name": "v", "hostPath": {"path": "/x"}}]


MAPS: dict[str, tuple[Tree, Tree | None]] = {
    "merged": ({"labels": {"z": "3"}}, {"x": "1", "y": "2", "z": "3"}),
    "null removes": ({"labels": {"x": None, "q": None}}, {"y": "2"}),
    "null removes all": ({"labels": None}, None),
    "replaced": ({"labels": {"z": "3", "$patch": "replace"}}, {"z": "3"}),
    "deleted": ({"labels": {"$patch": "delete"}}, {}),
}


@pytest.mark.parametrize("metadata, labels", MAPS.values(), ids=MAPS)
def test_maps(metadata: Tree, labels: Tree | None) -> None:
    assert patched({"metadata": metadata})["metadata"].get("labels") == labels


def test_directives_and_nulls_in_something_new_leave_no_trace() -> None:
    note = {"annotations": {"x": "1", "y": None}, "ownerReferences": [{"uid": "1", "$patch": "delete"}]}
    metadata = patched({"metadata": note})["metadata"]
    assert (metadata["annotations"], metadata["ownerReferences"]) == ({"x": "1"}, [])
    assert "annotations" not in patched({"metadata": {"annotations": {"x": "1", "$patch": "replace"}}})["metadata"]


REFUSALS: dict[str, tuple[Tree, int, str]] = {
    "no key": (
        {"spec": {"containers": [{"image": "z"}]}},
        500,
        "map: map[image:z] does not contain declared merge key: name",
    ),
    "no key to delete": (
        {"spec": {"containers": [{"$patch": "delete"}]}},
        500,
        "map: map[$patch:delete] does not contain declared merge key: name",
    ),
    "unknown directive in a map": (
        {"metadata": {"$patch": "bogus"}},
        500,
        "unknown patch type: bogus in map: map[$patch:bogus]",
    ),
    "unknown directive in an item": (
        {"spec": {"containers": [{"name": "a", "$patch": "bogus"}]}},
        500,
        "unknown patch type: bogus in map: map[$patch:bogus name:a]",
    ),
    "merge in an item": (
        {"spec": {"containers": [{"name": "a", "$patch": "merge"}]}},
        500,
        "merging lists cannot yet be specified in the patch",
    ),
    "mixed items": (
        {"metadata": {"finalizers": [5]}},
        500,
        "list element types are not identical: [[a/1 a/2] [5]]",
    ),
    "order that contradicts": (
        {"metadata": {"$setElementOrder/finalizers": ["a/2", "a/1"], "finalizers": ["a/9"]}},
        500,
        "The order in patch list:\n[a/9]\n doesn't match $setElementOrder list:\n[a/2 a/1]\n",
    ),
    "order that is no list": (
        {"metadata": {"$setElementOrder/finalizers": "x"}},
        500,
        "expected a []interface {}, but received a string",
    ),
    "directive without a slash": (
        {"metadata": {"$deleteFromPrimitiveListfinalizers": ["a/1"]}},
        400,
        "invalid patch format of primitive list",
    ),
    "more than is retained": (
        {"spec": {"volumes": [{"name": "v", "$retainKeys": ["name"], "emptyDir": {}}]}},
        400,
        "invalid patch format of retainKeys",
    ),
    "retained is no list": (
        {"spec": {"volumes": [{"name": "v", "$retainKeys": "x"}]}},
        400,
        "invalid patch format of retainKeys",
    ),
}


@pytest.mark.parametrize("patch, code, message", REFUSALS.values(), ids=REFUSALS)
def test_refusals(patch: Tree, code: int, message: str) -> None:
    with pytest.raises(BadPatch) as refused:
        patched(patch)
    assert (refused.value.code, refused.value.message) == (code, message)


def test_custom_kinds_have_no_strategic_patch() -> None:
    with pytest.raises(BadPatch, match="strategic merge patch format is not supported"):
        strategic.applied({}, {}, ("ex.com", "v1", "Thing"))


ITEMS = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("abcd")}, optional={"image": st.sampled_from("xy")}),
    max_size=4,
    unique_by=lambda item: item["name"],
)


@given(items=ITEMS)
def test_a_patch_twice_is_a_patch_once(items: list[Tree]) -> None:
    patch = {"spec": {"containers": items}}
    once = patched(patch)
    assert strategic.applied(once, patch, POD) == once


@given(items=ITEMS)
def test_no_item_is_lost_and_none_is_there_twice(items: list[Tree]) -> None:
    found = names(containers(*items))
    assert sorted(found) == sorted({"a", "b", *names(items)})
