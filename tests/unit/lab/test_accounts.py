"""The rights of our programs: as their pages tell them, and as roles grant them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from numalign.lab import accounts
from numalign.lab.accounts import Holder, Right

DOCS = Path(__file__).parents[3] / "docs" / "use"
WORD = re.compile("`([^`]+)`")
VERBS = {"get", "list", "watch", "create", "update", "patch", "delete"}
PAGES = [
    ("scheduler.md", "What it needs", accounts.SCHEDULER_RIGHTS),
    ("agent.md", "What it needs", accounts.AGENT_RIGHTS),
    ("agent.md", "Reports of nodes that are gone", accounts.COLLECTOR_RIGHTS),
]
HOLDER = Holder("User", "somebody")


def told(page: str, heading: str) -> set[tuple[str, str, str]]:
    """The table under the heading: group, resource, verb."""
    section = (DOCS / page).read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = [row.split("|")[1:4] for row in section.splitlines() if row.startswith("| ")][1:]
    return {
        (group.strip(" `"), resource, verb)
        for group, resources, verbs in rows
        for resource in WORD.findall(resources.partition(", in ")[0])
        for verb in WORD.findall(verbs)
        if verb in VERBS
    }


def granted(objects: Iterable[dict[str, Any]], holder: str) -> list[dict[str, Any]]:
    """The rules of its roles."""
    return [
        rule for each in objects if each["metadata"]["name"] == holder and "rules" in each for rule in each["rules"]
    ]


@pytest.mark.parametrize("page, heading, data", PAGES, ids=["scheduler", "agent", "gc"])
def test_pages_tell_of_these_rights_and_no_others(page: str, heading: str, data: tuple[Right, ...]) -> None:
    listed = {(each.group, resource, verb) for each in data for resource in each.resources for verb in each.verbs}
    assert told(page, heading) == listed


def test_a_right_in_one_namespace_is_granted_there_alone() -> None:
    wide, narrow = Right("", ("nodes",), ("get",)), Right("", ("events",), ("create",), namespace="here")
    found = accounts.roles(HOLDER, [wide, narrow])
    assert [(each["kind"], each["metadata"].get("namespace")) for each in found] == [
        ("ClusterRole", None),
        ("ClusterRoleBinding", None),
        ("Role", "here"),
        ("RoleBinding", "here"),
    ]
    assert [rule["resources"] for rule in granted(found, HOLDER.name)] == [["nodes"], ["events"]]
    assert {each["subjects"][0]["name"] for each in found if "subjects" in each} == {HOLDER.name}


def test_an_agent_has_rights_to_the_node_and_the_report_of_its_own_name_alone() -> None:
    found = list(accounts.wanted(["one", "two"]))
    for name in ("one", "two"):
        rules = granted(found, accounts.agent_user(name))
        assert {resource for rule in rules for resource in rule["resources"]} == {"nodes", "noderesourcetopologies"}
        assert [rule["resourceNames"] for rule in rules] == [[name], [name]]
    assert {resource for rule in granted(found, accounts.AGENTS) for resource in rule["resources"]} == {
        "pods",
        "events",
    }


def test_what_only_an_option_would_need_is_not_granted() -> None:
    every = [
        resource
        for each in accounts.wanted(["one"])
        for rule in each.get("rules", ())
        for resource in rule["resources"]
    ]
    assert not {"nodes/proxy", "tokenreviews", "subjectaccessreviews"} & set(every)
