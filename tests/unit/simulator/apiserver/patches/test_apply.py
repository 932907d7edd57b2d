"""Server-side apply: who owns what, who is in whose way, and what goes when nobody wants it any more."""

from typing import Any

import pytest

from numalign.simulator.apiserver.patches import ApplyConflict, BadPatch, apply, managedfields
from numalign.simulator.apiserver.patches.apply import FieldManager
from numalign.simulator.trees import Tree

CONFIG_MAP = ("", "v1", "ConfigMap")
NOW, LATER = "2026-11-16T05:00:00Z", "2026-11-16T05:00:09Z"


def config(data: Tree | None = None, **metadata: Any) -> Tree:
    tree: Tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **metadata}}
    return tree if data is None else {**tree, "data": data}


def applied(
    live: Tree | None, wanted: Tree, manager: str = "x", *, now: str = NOW, subresource: str = "", force: bool = False
) -> Tree:
    return FieldManager(CONFIG_MAP, now, subresource).apply(live, wanted, manager, force=force)


def tracked(before: Tree, after: Tree, manager: str = "u", *, now: str = NOW, subresource: str = "") -> Tree:
    return FieldManager(CONFIG_MAP, now, subresource).update(before, after, manager)


def owners(tree: Tree) -> dict[tuple[str, str], Tree]:
    entries = tree["metadata"].get("managedFields", ())
    return {(entry["manager"], entry["operation"]): entry["fieldsV1"] for entry in entries}


def data_of(*keys: str) -> Tree:
    return {"f:data": {f"f:{key}": {} for key in keys}}


def test_applying_what_is_not_there_creates_it_with_an_owner() -> None:
    entry = {"manager": "x", "operation": "Apply", "apiVersion": "v1", "time": NOW, "fieldsType": "FieldsV1"}
    made = applied(None, config({"a": "1"}))
    assert made["metadata"]["managedFields"] == [{**entry, "fieldsV1": data_of("a")}]
    assert made["data"] == {"a": "1"}


def test_applying_the_same_again_changes_nothing_not_even_the_time() -> None:
    made = applied(None, config({"a": "1"}))
    assert applied(made, config({"a": "1"}), now=LATER) == made


def test_two_managers_that_agree_share_a_field() -> None:
    shared = applied(applied(None, config({"a": "1"})), config({"a": "1"}), "y")
    assert owners(shared) == {("x", "Apply"): data_of("a"), ("y", "Apply"): data_of("a")}
    # Nothing was written, so the entry has no time; the real server does so too.
    assert ["time" in entry for entry in shared["metadata"]["managedFields"]] == [False, True]


def test_a_conflict_names_the_manager_and_the_field() -> None:
    with pytest.raises(ApplyConflict) as refused:
        applied(applied(None, config({"a": "1"})), config({"a": "2"}), "y")
    assert refused.value.message == 'Apply failed with 1 conflict: conflict with "x": .data.a'
    assert refused.value.causes == [('"x"', ".data.a")]


def test_a_conflict_with_a_manager_that_updates_names_its_version() -> None:
    live = tracked(applied(None, config({"a": "1"})), config({"a": "2"}), "edit")
    with pytest.raises(ApplyConflict, match=r'conflict with "edit" using v1: \.data\.a'):
        applied(live, config({"a": "1"}))


def test_several_conflicts_are_listed_by_manager() -> None:
    live = applied(applied(None, config({"a": "1", "b": "1"}), "z"), config({"b": "1"}), "y")
    with pytest.raises(ApplyConflict) as refused:
        applied(live, config({"a": "2", "b": "2"}), "n")
    listed = 'conflicts with "y":\n- .data.b\nconflicts with "z":\n- .data.a\n- .data.b'
    assert refused.value.message == f"Apply failed with 3 conflicts: {listed}"


def test_force_takes_the_field_away() -> None:
    taken = applied(applied(None, config({"a": "1", "b": "1"})), config({"a": "2"}), "y", force=True)
    assert taken["data"] == {"a": "2", "b": "1"}
    assert owners(taken) == {("x", "Apply"): data_of("b"), ("y", "Apply"): data_of("a")}


def test_a_manager_left_with_nothing_is_forgotten() -> None:
    taken = applied(applied(None, config({"a": "1"})), config({"a": "2"}), "y", force=True)
    assert owners(taken) == {("y", "Apply"): data_of("a")}


def test_what_is_no_longer_applied_goes_unless_somebody_else_has_it() -> None:
    live = applied(applied(None, config({"a": "1", "b": "1", "c": "1"})), config({"b": "1"}), "y")
    assert applied(live, config({"c": "1"}))["data"] == {"b": "1", "c": "1"}


def test_what_was_never_applied_stays() -> None:
    live = tracked(applied(None, config({"a": "1"})), config({"a": "1", "b": "2"}))
    assert applied(live, config({}))["data"] == {"b": "2"}


def test_giving_up_the_last_field_of_a_map_gives_up_the_map() -> None:
    live = applied(None, config({"a": "1"}))
    assert "data" not in applied(live, config())


def test_the_first_apply_credits_what_was_there_to_nobody_in_particular() -> None:
    live = {**config({"a": "1", "b": "1"}), "metadata": {"name": "a", "uid": "1", "labels": {"l": "1"}}}
    first = owners(applied(live, config({"a": "1"})))
    assert first["x", "Apply"] == data_of("a")
    labels: Tree = {"f:metadata": {"f:labels": {".": {}, "f:l": {}}}}
    assert first["before-first-apply", "Update"] == {"f:data": {".": {}, "f:a": {}, "f:b": {}}, **labels}


def test_an_update_takes_over_what_it_changes_and_what_it_adds() -> None:
    live = tracked(applied(None, config({"a": "1", "b": "1"})), config({"a": "2", "b": "1", "c": "3"}))
    assert owners(live) == {("x", "Apply"): data_of("b"), ("u", "Update"): data_of("a", "c")}


def test_an_update_that_removes_a_field_removes_it_from_the_books() -> None:
    assert owners(tracked(applied(None, config({"a": "1", "b": "1"})), config({"a": "1"}))) == {
        ("x", "Apply"): data_of("a")
    }


def test_objects_without_books_pass_untouched() -> None:
    after = config({"a": "2"})
    assert tracked(config({"a": "1"}), after) is after


@pytest.mark.parametrize("entries", [[], [{}]], ids=["no entry", "one empty entry"])
def test_a_client_can_ask_to_forget_the_books(entries: list[Tree]) -> None:
    live = applied(None, config({"a": "1"}))
    assert owners(tracked(live, config({"a": "1"}, managedFields=entries))) == {}


def test_a_client_can_write_the_books_itself_but_not_by_a_part() -> None:
    live = applied(None, config({"a": "1"}))
    entry = {**live["metadata"]["managedFields"][0], "manager": "other"}
    own = config({"a": "1"}, managedFields=[entry])
    assert list(owners(tracked(live, own))) == [("other", "Apply")]
    assert list(owners(tracked(live, own, subresource="status"))) == [("x", "Apply")]


def test_books_that_cannot_be_read_are_replaced_by_those_that_are_there() -> None:
    live = applied(None, config({"a": "1"}))
    assert owners(tracked(live, config({"a": "1"}, managedFields=[{"manager": "q"}]))) == owners(live)


def test_ten_updaters_are_remembered_and_the_oldest_thrown_together() -> None:
    live = applied(None, config({"a": "1"}))
    for number in range(12):
        data = {**live["data"], f"k{number}": "1"}
        live = tracked(live, config(data), f"u{number:02}", now=f"2026-11-16T05:00:{number:02}Z")
    names = [entry["manager"] for entry in live["metadata"]["managedFields"]]
    assert names == ["x", "ancient-changes", *(f"u{number:02}" for number in range(3, 12))]
    assert owners(live)["ancient-changes", "Update"] == data_of("k0", "k1", "k2")


REFUSALS: dict[str, tuple[Tree, int, str]] = {
    "another version": ({**config(), "apiVersion": "v2"}, 400, "invalid object type: /v2, Kind=ConfigMap"),
    "another kind": ({**config(), "kind": "Pod"}, 400, "invalid object type: /v1, Kind=Pod"),
    "no version": ({"kind": "ConfigMap", "metadata": {}}, 400, "invalid object type: /, Kind=ConfigMap"),
    "books": (config(managedFields=[]), 400, "metadata.managedFields must be nil"),
    "unknown field": (
        {**config(), "dat": {}},
        500,
        "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .dat: field not declared in schema",
    ),
    "wrong type": (
        config({"a": 2}),
        500,
        "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .data.a: expected string, "
        "got &value.valueUnstructured{Value:2}",
    ),
    "text for a map": (
        {**config(), "data": "x"},
        500,
        "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .data: expected map, got &{x}",
    ),
    "an item twice": (
        config(finalizers=["a/b", "a/b"]),
        500,
        "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .metadata.finalizers: "
        'duplicate entries for key [="a/b"]',
    ),
}


@pytest.mark.parametrize("wanted, code, message", REFUSALS.values(), ids=REFUSALS)
def test_refusals(wanted: Tree, code: int, message: str) -> None:
    with pytest.raises(BadPatch) as refused:
        applied(None, wanted)
    assert (refused.value.code, refused.value.message) == (code, message)


def test_kubectl_takes_over_what_it_set_by_client_side_apply() -> None:
    note = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"1"}}'
    live = config({"a": "1"}, annotations={apply.LAST_APPLIED: note})
    taken = applied(live, config({"a": "2"}), "kubectl")
    assert taken["data"] == {"a": "2"}
    assert '"data":{"a":"2"}' in taken["metadata"]["annotations"][apply.LAST_APPLIED]
    with pytest.raises(ApplyConflict, match="before-first-apply"):
        applied(live, config({"a": "2"}), "other")


def test_kubectl_does_not_take_over_what_was_changed_since() -> None:
    note = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"0"}}'
    live = config({"a": "1"}, annotations={apply.LAST_APPLIED: note})
    with pytest.raises(ApplyConflict, match=r"\.data\.a"):
        applied(live, config({"a": "2"}), "kubectl")


def test_a_write_that_changes_only_times_is_none() -> None:
    live = applied(None, config({"a": "1"}))
    later = applied(None, config({"a": "1"}), now=LATER)
    assert apply.unless_only_times_differ(live, later) is live
    assert apply.unless_only_times_differ(live, applied(None, config({"a": "2"}))) != live


def test_the_manager_of_an_entry_without_a_name_is_unknown() -> None:
    assert managedfields.identifier("", "Update", "v1", "").name == "unknown"
