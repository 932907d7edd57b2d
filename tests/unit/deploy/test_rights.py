"""The rights of our programs: as their pages list them, as roles grant them, and as the manifest ships them."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from numalign.api.decode import yamltext
from numalign.deploy import rights
from numalign.deploy.rights import Holder, Right

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs/use"
WORD = re.compile("`([^`]+)`")
VERBS = {"get", "list", "watch", "create", "update", "patch", "delete"}
PAGES = [
    ("scheduler.md", "What it needs", rights.SCHEDULER),
    ("extender.md", "What it needs", rights.EXTENDER),
    ("agent.md", "What it needs", rights.AGENT),
    ("agent.md", "Reports of nodes that are gone", rights.COLLECTOR),
    ("doctor.md", "What it needs", rights.DOCTOR),
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


@pytest.mark.parametrize("page, heading, data", PAGES, ids=["scheduler", "extender", "agent", "gc", "doctor"])
def test_pages_tell_of_these_rights_and_no_others(page: str, heading: str, data: tuple[Right, ...]) -> None:
    listed = {(each.group, resource, verb) for each in data for resource in each.resources for verb in each.verbs}
    assert told(page, heading) == listed


def test_a_right_in_one_namespace_is_granted_there_alone() -> None:
    wide, narrow = Right("", ("nodes",), ("get",)), Right("", ("events",), ("create",), namespace="here")
    found = rights.roles(HOLDER, [wide, narrow])
    assert [(each["kind"], each["metadata"].get("namespace")) for each in found] == [
        ("ClusterRole", None),
        ("ClusterRoleBinding", None),
        ("Role", "here"),
        ("RoleBinding", "here"),
    ]
    assert [rule["resources"] for rule in granted(found, HOLDER.name)] == [["nodes"], ["events"]]
    assert {each["subjects"][0]["name"] for each in found if "subjects" in each} == {HOLDER.name}


def test_a_right_to_named_objects_is_granted_for_these_alone() -> None:
    named = Right("", ("nodes",), ("get",), names=("a", "b"))
    assert granted(rights.roles(HOLDER, [named]), HOLDER.name)[0]["resourceNames"] == ["a", "b"]


def test_the_scheduler_reads_and_renews_no_lease_but_its_own() -> None:
    leases = [rule for rule in granted(rights.manifest(), "numalign-scheduler") if rule["resources"] == ["leases"]]
    assert [(rule["verbs"], rule.get("resourceNames")) for rule in leases] == [
        (["create"], None),
        (["get", "update"], ["numalign"]),
    ]


WIDE = {"*", "secrets", "nodes/proxy", "pods/exec", "pods/attach", "pods/portforward", "serviceaccounts/token"}


@pytest.mark.parametrize("table", [rights.SCHEDULER, rights.AGENT, rights.COLLECTOR], ids=["scheduler", "agent", "gc"])
def test_no_right_leads_into_pods_or_to_secrets(table: tuple[Right, ...]) -> None:
    assert not WIDE & {word for each in table for word in (each.group, *each.resources, *each.verbs)}


def test_agents_that_share_an_account_are_limited_by_the_policy() -> None:
    policy, binding = rights.own_report_policy(rights.AGENT_ACCOUNT)
    rule, nodes = policy["spec"]["matchConstraints"]["resourceRules"]
    written = {"create": "CREATE", "patch": "UPDATE", "update": "UPDATE", "delete": "DELETE"}
    reports = [each for each in rights.AGENT if each.resources == rights.REPORTS]
    assert {written[verb] for each in reports for verb in each.verbs if verb in written} <= set(rule["operations"])
    changed = {each for right in rights.AGENT for each in right.resources if right.verbs == ("patch",)}
    assert changed == {"nodes", "nodes/status"} == set(nodes["resources"])
    assert (policy["spec"]["failurePolicy"], binding["spec"]["validationActions"]) == ("Fail", ["Deny"])


def test_the_manifest_in_the_examples_has_these_rights() -> None:
    """Written by `make rbac`."""
    file = ROOT / "examples/rbac.yaml"
    assert [each.value for each in yamltext.documents(file.read_text(), file.name)] == rights.manifest()
