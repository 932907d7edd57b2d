"""Decoded objects: paths into them, and copies that share nothing."""

import pytest

from numalign.simulator import trees

TREE: trees.Tree = {"metadata": {"name": "a", "labels": None}, "spec": {"list": [1], "deep": {"er": "x"}}}
PATHS = {
    "there": (("spec", "deep", "er"), "x"),
    "absent": (("spec", "no", "where"), None),
    "through": (("spec", "list", "x"), None),
}


@pytest.mark.parametrize("path, found", PATHS.values(), ids=PATHS)
def test_a_path_ends_where_nothing_is(path: tuple[str, ...], found: object) -> None:
    assert trees.at(TREE, *path) == found


def test_text_is_never_none() -> None:
    assert (trees.text(TREE, "metadata", "labels"), trees.text(TREE, "metadata", "name")) == ("", "a")


def test_a_copy_shares_nothing() -> None:
    copy = trees.copied(TREE)
    copy["spec"]["deep"]["er"] = "y"
    assert (TREE["spec"]["deep"]["er"], trees.metadata({})) == ("x", {})
