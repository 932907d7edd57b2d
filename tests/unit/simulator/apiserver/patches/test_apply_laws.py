"""Laws of server-side apply that hold whatever is applied."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from numalign.simulator.apiserver.patches import managedfields, typed
from numalign.simulator.apiserver.patches.apply import FieldManager
from numalign.simulator.apiserver.patches.typed import merged
from numalign.simulator.apiserver.schemas import builtin
from numalign.simulator.trees import Tree

DEPLOYMENT = ("apps", "v1", "Deployment")
NOW, LATER = "2026-11-16T05:00:00Z", "2026-11-16T05:00:09Z"
WORDS = st.sampled_from("123")


def maps(keys: str) -> st.SearchStrategy[Tree]:
    return st.dictionaries(st.sampled_from(keys), WORDS, min_size=1, max_size=3)


def keyed(names: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Tree]]:
    items = st.fixed_dictionaries({"name": st.sampled_from(names)}, optional=fields)
    return st.lists(items, min_size=1, max_size=3, unique_by=lambda item: item["name"])


def wishes(keys: str) -> st.SearchStrategy[Tree]:
    """What a manager wants; two managers with different keys want nothing in common but names."""
    env = keyed(keys.upper(), value=WORDS)
    args = st.lists(WORDS, max_size=2)
    containers = keyed(keys, image=WORDS, env=env, args=args)
    spec = st.fixed_dictionaries({}, optional={"template": containers.map(lambda c: {"spec": {"containers": c}})})
    return st.builds(
        lambda labels, spec: {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "d", "labels": labels},
            "spec": spec,
        },
        maps(keys),
        spec,
    )


ANY = wishes("abc")
START: Tree = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "uid": "1"}, "spec": {}}


def applied(live: Tree | None, wanted: Tree, manager: str, now: str = NOW) -> Tree:
    return FieldManager(DEPLOYMENT, now).apply(live, wanted, manager, force=True)


def unordered(value: Any) -> Any:
    """Without the order of lists with keys, which depends on who came first."""
    if isinstance(value, dict):
        return {key: unordered(child) for key, child in value.items()}
    if isinstance(value, list) and all(isinstance(item, dict) and "name" in item for item in value):
        return {item["name"]: unordered(item) for item in value}
    return value


@given(first=ANY, second=ANY)
def test_applying_twice_is_applying_once(first: Tree, second: Tree) -> None:
    once = applied(applied(None, first, "x"), second, "y")
    assert applied(once, second, "y", LATER) == once


@given(first=wishes("ab"), second=wishes("cd"))
def test_managers_that_want_different_things_do_not_mind_the_order(first: Tree, second: Tree) -> None:
    one = applied(applied(START, first, "x"), second, "y")
    other = applied(applied(START, second, "y"), first, "x")
    assert unordered(one) == unordered(other)


@given(first=ANY, second=ANY)
def test_what_was_applied_is_there_and_owned(first: Tree, second: Tree) -> None:
    shape = builtin.typedef(DEPLOYMENT)
    assert shape is not None
    live = applied(applied(None, first, "x"), second, "y")
    bare = {**live, "metadata": {key: value for key, value in live["metadata"].items() if key != "managedFields"}}
    assert typed.same(merged(bare, second, shape), bare)


@given(first=ANY, second=ANY)
def test_wanting_nothing_any_more_leaves_what_the_other_wants(first: Tree, second: Tree) -> None:
    nothing = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
    live = applied(applied(applied(None, second, "y"), first, "x"), second, "y")
    left = applied(live, nothing, "x")
    assert left["metadata"]["labels"] == second["metadata"]["labels"]
    assert {entry["manager"] for entry in left["metadata"]["managedFields"]} == {"y"}


@given(first=ANY, second=ANY)
def test_nobody_owns_what_is_not_there(first: Tree, second: Tree) -> None:
    live = FieldManager(DEPLOYMENT, NOW).update(applied(None, first, "x"), second, "u")
    spec, labels = ("f:spec", "f:template", "f:spec", "f:containers"), ("f:metadata", "f:labels")
    there = {f"f:{key}" for key in second["metadata"]["labels"]}
    template = second["spec"].get("template", {"spec": {"containers": []}})
    items = {f'k:{{"name":"{each["name"]}"}}' for each in template["spec"]["containers"]}
    for owned in managedfields.managers_of(live).values():
        assert {path[2] for path in owned.fields if path[:2] == labels and path[2:]} <= there
        assert {path[4] for path in owned.fields if path[:4] == spec and path[4:]} <= items
