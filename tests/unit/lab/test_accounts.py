"""The accounts of a lab: what its roles grant to the programs of numalign."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from numalign.api.schedulerconfig.configuration import LeaderElection
from numalign.lab import accounts

OWN = LeaderElection(resource_name="numalign")


def granted(objects: Iterable[dict[str, Any]], holder: str) -> list[dict[str, Any]]:
    """The rules of its roles."""
    return [
        rule for each in objects if each["metadata"]["name"] == holder and "rules" in each for rule in each["rules"]
    ]


def test_an_agent_has_rights_to_the_node_and_the_report_of_its_own_name_alone() -> None:
    found = list(accounts.wanted(["one", "two"], OWN))
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
        for each in accounts.wanted(["one"], OWN)
        for rule in each.get("rules", ())
        for resource in rule["resources"]
    ]
    assert not {"nodes/configz", "tokenreviews", "subjectaccessreviews"} & set(every)


def test_the_scheduler_may_change_only_the_lease_that_it_leads_by() -> None:
    rules = granted(accounts.wanted((), LeaderElection(resource_name="kube-scheduler")), accounts.SCHEDULER)
    named = [rule["resourceNames"] for rule in rules if "leases" in rule["resources"] and "update" in rule["verbs"]]
    assert named == [["kube-scheduler"]]
